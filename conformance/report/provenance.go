package report

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// provenance says of each side what it was.
func provenance(r *conformance.Report) []string {
	out := []string{"candidate: " + infoText(r.Candidate), "reference: " + infoText(r.Reference)}
	if g := r.Golden; g != nil {
		out = append(out, fmt.Sprintf("golden: %s, made by %s, %s of this run", g.Name, g.Engine, plural(g.Cases, "case")))
	}
	out = append(out, "judged by: "+toolText(r.Tool))
	if t := r.Times; t != nil {
		out = append(out, fmt.Sprintf("run: started %s, took %.3g s", t.Started, float64(t.Seconds)))
	}
	return out
}

func infoText(i engine.Info) string {
	if i.Name == "" {
		return "none"
	}
	parts := []string{i.Name}
	for _, p := range [][2]string{{"version", i.Version}, {"model", i.Model}, {"weights", i.Weights}, {"activations", i.Activations},
		{"KV cache", i.KVCache}, {"arithmetic", i.DType}, {"layers", i.Layers}, {"logits", i.Logits}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

func toolText(t conformance.ToolInfo) string {
	s := "plumbline " + t.Version
	if t.Revision != "" {
		s += ", revision " + t.Revision
	}
	if t.Modified {
		s += " with changes"
	}
	return s + fmt.Sprintf(", %s, %s/%s", t.Go, t.OS, t.Arch)
}
