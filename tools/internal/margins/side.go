package margins

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// side is one side of a case: its tokens and its logit dump.
type side struct {
	name        Side
	path        string
	json        string
	rows, vocab int
	// told are the output_ids of the case's file, nil when it tells none.
	told  []int
	stop  []int
	row   func(i int, dst []float64) error
	close func() error
}

func openSide(name Side, c *dumpfmt.Case, logits string) (*side, error) {
	s := &side{name: name, path: c.LogitsPath, json: c.JSONPath, told: c.File.OutputIDs, stop: c.File.Stop}
	var h dumpfmt.LogitHeader
	var err error
	if logits == dumpfmt.LogitsInt32 {
		var f *dumpfmt.Int32Logits
		if f, err = c.OpenInt32Logits(); err == nil {
			h, s.row, s.close = f.Header(), f.Row64, f.Close
		}
	} else {
		var f *dumpfmt.FloatLogits
		if f, err = c.OpenFloatLogits(); err == nil {
			h, s.row, s.close = f.Header(), f.Row64, f.Close
		}
	}
	if err != nil {
		return nil, &Fault{Side: name, Kind: Format, File: c.LogitsPath, Row: -1, Err: err}
	}
	s.rows, s.vocab = h.Rows, h.Vocab
	return s, nil
}

// read reads row i, and refuses one that chooses no token.
func (s *side) read(i int, dst []float64) error {
	if err := s.row(i, dst); err != nil {
		return &Fault{Side: s.name, Kind: Format, File: s.path, Row: i, Err: err}
	}
	class := metric.Classify(dst)
	if !class.Degenerate() {
		return nil
	}
	got := fmt.Sprintf("%s (%v throughout)", class.Kind, dst[0])
	if class.Kind == metric.NonFinite {
		got = fmt.Sprintf("%v at id %d", class.Value, class.Index)
	}
	return &Fault{Side: s.name, Kind: Values, File: s.path, Row: i, What: "logits", Got: got, Want: "finite numbers that differ"}
}

// token is what the side chose at row i, held to the row: top is its largest
// logit.
func (s *side) token(i, top int) (int, error) {
	if s.told == nil {
		return top, nil
	}
	id := s.told[i]
	switch {
	case id < 0 || id >= s.vocab:
		return 0, &Fault{Side: s.name, Kind: Contract, File: s.json, Row: i, What: "output_ids",
			Got: fmt.Sprint(id), Want: fmt.Sprintf("an id below the vocabulary of %d", s.vocab)}
	case id != top:
		return 0, &Fault{Side: s.name, Kind: Contract, File: s.path, Row: i, What: "token",
			Got:  fmt.Sprintf("%d (output_ids)", id),
			Want: fmt.Sprintf("%d, the row's largest logit, the lowest index on ties", top)}
	}
	return id, nil
}

// stops reports whether an id ends the output. told is false when neither side
// says which do.
func stops(ref, cand *side, id int) (ends, told bool) {
	list := ref.stop
	if list == nil {
		list = cand.stop
	}
	for _, s := range list {
		if s == id {
			return true, true
		}
	}
	return false, list != nil
}

// checkPrompt refuses two sides that ran other prompts.
func checkPrompt(cand, ref *dumpfmt.Case) error {
	differs := func(what, got, want string) error {
		return &Fault{Side: Candidate, Kind: Provenance, File: cand.JSONPath, Row: -1, What: what, Got: got, Want: want}
	}
	c, r := cand.File.TokenIDs, ref.File.TokenIDs
	for i := range min(len(c), len(r)) {
		if c[i] != r[i] {
			return differs(fmt.Sprintf("token_ids: id %d", i), fmt.Sprint(c[i]), fmt.Sprintf("%d as in %s", r[i], ref.JSONPath))
		}
	}
	if len(c) != len(r) {
		return differs("token_ids", fmt.Sprintf("%d ids", len(c)), fmt.Sprintf("%d as in %s", len(r), ref.JSONPath))
	}
	if a, b := cand.File.Text, ref.File.Text; a != b {
		at := 0
		for at < min(len(a), len(b)) && a[at] == b[at] {
			at++
		}
		return differs("text", fmt.Sprintf("%d bytes that differ from byte %d on", len(a), at), fmt.Sprintf("the %d bytes of %s", len(b), ref.JSONPath))
	}
	return nil
}
