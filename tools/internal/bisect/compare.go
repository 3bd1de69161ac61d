package bisect

import (
	"context"
	"errors"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Row holds the figures of one dump row, candidate against reference. They are
// NaN where they aren't defined; see package metric.
type Row struct {
	// Index is the dump row: 0 is the embedding.
	Index                          int
	Spearman, Pearson, MaxZDiff    float64
	RelativeL2, NormRatio          float64
	CandidateClass, ReferenceClass metric.Class
}

// Case is the outcome on one case. Without Err and without Skipped it has rows.
type Case struct {
	Name string
	// Prompt is the user's prompt, when the case file tells it.
	Prompt string
	Rows   []Row
	// Err is a *Fault, or an error of the system's.
	Err error
	// Skipped says why there was nothing to compare, which is no fault.
	Skipped string
}

// Compared reports whether the case has figures.
func (c *Case) Compared() bool { return c.Err == nil && c.Skipped == "" }

// Compare compares every case of ref, and lists the cases that only cand has as
// skipped; in name order. step, if not nil, is called after each case. The error
// is ctx's.
func Compare(ctx context.Context, cand, ref *dumpfmt.Folder, step func(name string)) ([]Case, error) {
	var out []Case
	for _, r := range ref.Cases() {
		c := compareCase(ctx, cand, ref, r)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(out, c)
		if step != nil {
			step(c.Name)
		}
	}
	for _, c := range cand.Cases() {
		if _, err := ref.Case(c.Name); err != nil {
			out = append(out, Case{Name: c.Name, Skipped: "the reference folder has no such case"})
		}
	}
	return out, nil
}

func compareCase(ctx context.Context, candFolder, refFolder *dumpfmt.Folder, r *dumpfmt.Case) Case {
	out := Case{Name: r.Name}
	if r.File.Prompt != nil {
		out.Prompt = *r.File.Prompt
	}
	if r.Err != nil {
		out.Err = &Fault{Side: Reference, Kind: Format, File: r.JSONPath, Row: -1, Err: r.Err}
		return out
	}
	c, err := candFolder.Case(r.Name)
	switch {
	case err != nil:
		out.Err = &Fault{Side: Candidate, Kind: Missing, File: r.Name, Row: -1}
	case c.Err != nil:
		out.Err = &Fault{Side: Candidate, Kind: Format, File: c.JSONPath, Row: -1, Err: c.Err}
	case r.LayersPath == "":
		out.Skipped = "the reference has no layer dump of it"
	case c.LayersPath == "":
		out.Skipped = "the candidate has no layer dump of it"
	default:
		out.Rows, out.Err = compareDumps(ctx,
			func() (*dump, error) { return openDump(Candidate, c, candFolder.Engine().Layers) },
			func() (*dump, error) { return openDump(Reference, r, refFolder.Engine().Layers) })
	}
	return out
}

func compareDumps(ctx context.Context, openCand, openRef func() (*dump, error)) (rows []Row, err error) {
	ref, err := openRef()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ref.close()) }()
	cand, err := openCand()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cand.close()) }()
	if err := checkProvenance(cand, ref); err != nil {
		return nil, err
	}
	c, r := make([]float64, ref.header.width), make([]float64, ref.header.width)
	for i := range int(ref.header.rows) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, s := range []struct {
			d   *dump
			dst []float64
		}{{ref, r}, {cand, c}} {
			if err := s.d.row(i, s.dst); err != nil {
				return nil, &Fault{Side: s.d.side, Kind: Format, File: s.d.path, Row: i, Err: err}
			}
		}
		rows = append(rows, measure(i, c, r))
	}
	return rows, nil
}

func measure(i int, cand, ref []float64) Row {
	return Row{
		Index:          i,
		Spearman:       metric.Spearman(cand, ref),
		Pearson:        metric.PearsonZ(cand, ref),
		MaxZDiff:       metric.MaxZDiff(cand, ref),
		RelativeL2:     metric.RelativeL2(cand, ref),
		NormRatio:      metric.NormRatio(cand, ref),
		CandidateClass: metric.Classify(cand),
		ReferenceClass: metric.Classify(ref),
	}
}
