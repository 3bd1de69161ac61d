package margins

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Case is the outcome on one case. Without Err and without Skipped it has
// positions.
type Case struct {
	Name string
	// Prompt is the user's prompt, when the case file tells it.
	Prompt string
	// RefTokens and CandTokens are what the sides chose, to the end of each.
	RefTokens, CandTokens []int
	// FirstFlip is the first position whose tokens differ, or -1.
	FirstFlip int
	// Positions are those that both sides have.
	Positions []Position
	// Notes say what was assumed.
	Notes []string
	// Err is a *Fault, or an error of the system's.
	Err error
	// Skipped says why there was nothing to compare, which is no fault.
	Skipped string
}

// Compared reports whether the case has figures.
func (c *Case) Compared() bool { return c.Err == nil && c.Skipped == "" }

// Agree counts the positions with the same token.
func (c *Case) Agree() int {
	n := 0
	for i := range c.Positions {
		if c.Positions[i].Agree() {
			n++
		}
	}
	return n
}

// Comparable counts the positions with the same input.
func (c *Case) Comparable() int {
	n := 0
	for i := range c.Positions {
		if c.Positions[i].Comparable() {
			n++
		}
	}
	return n
}

// Result is everything that two folders say about each other.
type Result struct {
	// Cases are those of the reference in name order, then those that only the
	// candidate has.
	Cases []Case
	// Top is the N of the top-N figures.
	Top int
	// RefInt32 and CandInt32 tell whose logits have no unit.
	RefInt32, CandInt32 bool
	// Scale is the candidate's, where its logits have no unit and the
	// reference's have; nil otherwise, and without a comparable position.
	Scale *Scale
}

// Compare compares every case of ref, and lists the cases that only cand has as
// skipped. top is the N of the top-N figures. step, if not nil, is called after
// each case. The error is ctx's.
func Compare(ctx context.Context, cand, ref *dumpfmt.Folder, top int, step func(name string)) (*Result, error) {
	out := &Result{Top: top, RefInt32: ref.Engine().Logits == dumpfmt.LogitsInt32, CandInt32: cand.Engine().Logits == dumpfmt.LogitsInt32}
	for _, r := range ref.Cases() {
		c := Case{Name: r.Name, FirstFlip: -1}
		out.compareCase(ctx, &c, cand, ref, r)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.Err != nil {
			c.Positions = nil
		}
		out.Cases = append(out.Cases, c)
		if step != nil {
			step(c.Name)
		}
	}
	if err := out.scale(ctx, cand, ref); err != nil {
		return nil, err
	}
	for _, c := range cand.Cases() {
		if _, err := ref.Case(c.Name); err != nil {
			out.Cases = append(out.Cases, Case{Name: c.Name, FirstFlip: -1, Skipped: "the reference folder has no such case"})
		}
	}
	return out, nil
}

func (res *Result) compareCase(ctx context.Context, out *Case, candFolder, refFolder *dumpfmt.Folder, r *dumpfmt.Case) {
	if r.File.Prompt != nil {
		out.Prompt = *r.File.Prompt
	}
	if r.Err != nil {
		out.Err = &Fault{Side: Reference, Kind: Format, File: r.JSONPath, Row: -1, Err: r.Err}
		return
	}
	c, err := candFolder.Case(r.Name)
	switch {
	case err != nil:
		out.Err = &Fault{Side: Candidate, Kind: Missing, File: r.Name, Row: -1}
	case c.Err != nil:
		out.Err = &Fault{Side: Candidate, Kind: Format, File: c.JSONPath, Row: -1, Err: c.Err}
	case r.LogitsPath == "":
		out.Skipped = "the reference has no logit dump of it"
	case c.LogitsPath == "":
		out.Skipped = "the candidate has no logit dump of it"
	default:
		if out.Err = checkPrompt(c, r); out.Err == nil {
			out.Err = eachSides(c, r, candFolder, refFolder, func(cand, ref *side) error {
				return res.compareSides(ctx, out, cand, ref)
			})
		}
	}
}

// eachSides opens both sides of a case for fn.
func eachSides(c, r *dumpfmt.Case, candFolder, refFolder *dumpfmt.Folder, fn func(cand, ref *side) error) (err error) {
	ref, err := openSide(Reference, r, refFolder.Engine().Logits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ref.close()) }()
	cand, err := openSide(Candidate, c, candFolder.Engine().Logits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cand.close()) }()
	return fn(cand, ref)
}

func (res *Result) compareSides(ctx context.Context, out *Case, cand, ref *side) error {
	if ref.rows == 0 && cand.rows == 0 {
		out.Skipped = "neither side decoded a token"
		return nil
	}
	if ref.rows > 0 && cand.rows > 0 && cand.vocab != ref.vocab {
		return &Fault{Side: Candidate, Kind: Provenance, File: cand.path, Row: -1, What: "vocabulary",
			Got: fmt.Sprint(cand.vocab), Want: fmt.Sprintf("%d as in %s", ref.vocab, ref.path)}
	}
	for _, s := range []*side{ref, cand} {
		if s.told == nil {
			out.Notes = append(out.Notes, fmt.Sprintf("the %s doesn't tell its output_ids: the largest logit of each row stands in, the lowest index on ties", s.name))
		}
	}
	m := &meter{top: res.Top, refUnit: !res.RefInt32, candInt: res.CandInt32}
	refRow, candRow := make([]float64, ref.vocab), make([]float64, cand.vocab)
	// Rows that only one side has are read too: they may be broken.
	for i := range max(ref.rows, cand.rows) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var first, second int
		if i < ref.rows {
			if err := ref.read(i, refRow); err != nil {
				return err
			}
			first, second = metric.Top2(refRow)
			token, err := ref.token(i, first)
			if err != nil {
				return err
			}
			out.RefTokens = append(out.RefTokens, token)
		}
		if i < cand.rows {
			if err := cand.read(i, candRow); err != nil {
				return err
			}
			token, err := cand.token(i, metric.ArgMax(candRow))
			if err != nil {
				return err
			}
			out.CandTokens = append(out.CandTokens, token)
		}
		if i < min(ref.rows, cand.rows) {
			p := Position{Index: i, RefToken: out.RefTokens[i], CandToken: out.CandTokens[i], AfterFlip: out.FirstFlip >= 0}
			m.measure(&p, refRow, candRow, first, second)
			if !p.Agree() && out.FirstFlip < 0 {
				out.FirstFlip = i
			}
			out.Positions = append(out.Positions, p)
		}
	}
	return checkLengths(out, cand, ref)
}

// checkLengths tells an output that ended early with reason from a dump that
// lacks rows: both sides run to the same count, or to a stop id.
func checkLengths(c *Case, cand, ref *side) error {
	short, long := cand, ref
	tokens := c.CandTokens
	switch {
	case ref.rows == cand.rows:
		return nil
	case ref.rows < cand.rows:
		short, long, tokens = ref, cand, c.RefTokens
	}
	fault := func(s *side, want string) error {
		return &Fault{Side: s.name, Kind: Contract, File: s.path, Row: -1, What: "rows", Got: fmt.Sprint(s.rows), Want: want}
	}
	ends, told := false, true
	if len(tokens) > 0 {
		ends, told = stops(ref, cand, tokens[len(tokens)-1])
	}
	switch {
	case !told && c.FirstFlip >= 0:
		return nil // the outputs went apart before, and either may have met a stop id that the files don't name
	case !told:
		return fault(cand, fmt.Sprintf("%d as in %s: no stop ids are told that could end either output", ref.rows, ref.path))
	case !ends:
		return fault(cand, fmt.Sprintf("%d as in %s: the shorter output doesn't end with a stop id", ref.rows, ref.path))
	case c.FirstFlip < 0:
		// The same tokens up to a stop id, which one side ran past.
		return fault(long, fmt.Sprintf("%d: row %d chose the stop id %d", short.rows, short.rows-1, tokens[len(tokens)-1]))
	}
	return nil
}
