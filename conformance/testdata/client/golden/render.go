// Package golden is what the engine's own golden files are about: a decode, as
// text. It has nothing to do with Plumbline's goldens, and shares no flag with them.
package golden

import (
	"fmt"
	"strings"

	"example.com/tinyllm/tinyllm"
)

// Transcript renders a decode, a line per token.
func Transcript(out *tinyllm.Output) string {
	var b strings.Builder
	for i, id := range out.IDs {
		fmt.Fprintf(&b, "%d: %d\n", i, id)
	}
	return b.String()
}
