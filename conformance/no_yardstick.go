package conformance

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// noYardstick is the error of a Config that has nothing to bound a quantised
// candidate by. It says by which declaration the candidate is one.
func noYardstick(d engine.Info) error {
	var said []string
	for _, f := range [][2]string{
		{"layers", d.Layers}, {"logits", d.Logits}, {"weights", d.Weights}, {"activations", d.Activations}, {"kv_cache", d.KVCache}, {"dtype", d.DType},
	} {
		if f[1] != "" && f[1] != engine.LayersFloat32 {
			said = append(said, fmt.Sprintf("%s %q", f[0], f[1]))
		}
	}
	return fmt.Errorf("conformance: Config.Yardstick is nil: the candidate declares %s, so its bounds come from an emulation of that arithmetic; "+
		"want Yardstick: quant.New(ref) (package engine/quant), ref being Config.Reference", strings.Join(said, ", "))
}
