package page

import (
	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// side is who or what took part, as pairs of a name and a value.
type side struct {
	Title, Says string
	Facts       []fact
}

type fact struct {
	Name, Value string
	Code        bool
}

func provenanceOf(r *conformance.Report) []side {
	golden := side{Title: "Golden", Says: "what the reference was held to"}
	if g := r.Golden; g != nil {
		golden.add("recording", g.Name)
		golden.add("made by", g.Engine)
		golden.add("its cases", thousands(g.Cases))
	} else {
		golden.Says = "the reference was held to no recording in this run"
	}
	ref := engineSide("Reference engine", "recomputes every layer in this process", r.Reference)
	cand := engineSide("Candidate", "the engine under test", r.Candidate)
	tool := side{Title: "Plumbline", Says: "what judged"}
	tool.add("version", r.Tool.Version)
	tool.add("revision", r.Tool.Revision)
	if r.Tool.Modified {
		tool.add("changed since", "yes: the checkout had changes that are in no commit")
	}
	tool.add("Go", r.Tool.Go)
	if r.Tool.OS != "" {
		tool.add("machine", r.Tool.OS+"/"+r.Tool.Arch)
	}
	if t := r.Times; t != nil {
		tool.add("started", t.Started)
		tool.add("seconds", figure(t.Seconds))
	}
	tool.add("report schema", thousands(r.SchemaVersion))
	return []side{golden, ref, cand, tool}
}

func engineSide(title, what string, i engine.Info) side {
	s := side{Title: title, Says: what}
	for _, f := range [][2]string{{"name", i.Name}, {"version", i.Version}, {"model", i.Model}, {"layers", i.Layers}, {"logits", i.Logits},
		{"weights", i.Weights}, {"activations", i.Activations}, {"KV cache", i.KVCache}, {"arithmetic", i.DType}} {
		s.add(f[0], f[1])
	}
	if len(s.Facts) == 0 {
		s.Says = "none in this run"
	}
	return s
}

func (s *side) add(name, value string) {
	if value != "" {
		s.Facts = append(s.Facts, fact{Name: name, Value: value})
	}
}
