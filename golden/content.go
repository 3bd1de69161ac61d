package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// content checks what the hashes can't: that the files belong together. Whoever
// changes a golden and its hashes alike still has to make them agree with the
// prompts, with each other and with what the manifest says of them.
func (s *Set) content(prompts []byte) []Problem {
	var out []Problem
	add := func(file, what, got, want string) {
		out = append(out, Problem{s.Manifest.Goldens.Folder + "/" + file, what, got, want})
	}
	var engine struct{ Name, Version, DType, Layers, Logits string }
	if data, err := fs.ReadFile(s.fsys, "engine.json"); err == nil && json.Unmarshal(data, &engine) == nil {
		ref := s.Manifest.Reference
		if engine.Name != ref.Library || engine.Version != ref.Versions[ref.Library] || engine.DType != s.Manifest.Arithmetic.DType {
			add("engine.json", "engine", fmt.Sprintf("%s %s in %q", engine.Name, engine.Version, engine.DType),
				fmt.Sprintf("%s %s in %q, as the manifest says", ref.Library, ref.Versions[ref.Library], s.Manifest.Arithmetic.DType))
		}
	}
	wanted, err := promptsOf(prompts)
	if err != nil {
		return append(out, Problem{s.Manifest.Prompts.Written.Path, "prompts", err.Error(), "a list of name, text and token_ids"})
	}
	for _, name := range s.Manifest.Cases {
		data, err := fs.ReadFile(s.fsys, name+".json")
		if err != nil {
			continue // named as missing already
		}
		c, err := dumpfmt.ParseCaseFile(name+".json", data)
		if err != nil {
			add(name+".json", "case file", err.Error(), "a readable one")
			continue
		}
		w, ok := wanted[name]
		switch {
		case !ok:
			add(name+".json", "prompt", "none of this name", "the case's prompt in "+s.Manifest.Prompts.Written.Path)
		case c.Text != w.Text || !slices.Equal(c.TokenIDs, w.TokenIDs):
			add(name+".json", "text and token_ids", "another prompt", "those of "+s.Manifest.Prompts.Written.Path)
		}
		if what, got, want := s.logits(name, c); what != "" {
			add(name+".logits.bin", what, got, want)
		}
	}
	return out
}

// logits holds a case's logit dump to its tokens: one row per token, whose
// largest value, the lowest index on ties, is the token.
func (s *Set) logits(name string, c dumpfmt.CaseFile) (what, got, want string) {
	data, err := fs.ReadFile(s.fsys, name+".logits.bin")
	if err != nil {
		return "", "", ""
	}
	d, err := dumpfmt.NewFloatLogits(bytes.NewReader(data), int64(len(data)), name+".logits.bin")
	if err != nil {
		return "logit dump", err.Error(), "a readable one"
	}
	h := d.Header()
	if h.Rows != len(c.OutputIDs) {
		return "rows", fmt.Sprint(h.Rows), fmt.Sprintf("%d, one per output token", len(c.OutputIDs))
	}
	row := make([]float32, h.Vocab)
	for i, id := range c.OutputIDs {
		if err := d.Row(i, row); err != nil {
			return "logit dump", err.Error(), "a readable one"
		}
		best := 0
		for k, x := range row {
			if x > row[best] {
				best = k
			}
		}
		if best != id {
			return fmt.Sprintf("row %d", i), fmt.Sprintf("its largest logit at %d", best), fmt.Sprintf("at the output token %d", id)
		}
	}
	return "", "", ""
}

type prompt struct {
	Name     string `json:"name"`
	Text     string `json:"text"`
	TokenIDs []int  `json:"token_ids"`
}

func promptsOf(data []byte) (map[string]prompt, error) {
	var ps []prompt
	if err := json.Unmarshal(data, &ps); err != nil {
		return nil, err
	}
	out := map[string]prompt{}
	for _, p := range ps {
		out[p.Name] = p
	}
	return out, nil
}
