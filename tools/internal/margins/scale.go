package margins

import (
	"context"
	"math"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Scale is how many steps of a candidate's int32 logits make one of the
// reference's logits: one least-squares slope over all comparable positions.
type Scale struct {
	Value     float64
	Positions int
	// Min and Max are the smallest and the largest slope of one row. Far apart,
	// the engine has a unit for each row, and KL at the common scale holds that.
	Min, Max float64
}

// scale estimates the candidate's scale where its logits have none, and reads
// the cases again for KL.
func (res *Result) scale(ctx context.Context, candFolder, refFolder *dumpfmt.Folder) error {
	if !res.CandInt32 || res.RefInt32 {
		return nil
	}
	s := Scale{Min: math.Inf(1), Max: math.Inf(-1)}
	var dot, sq float64
	for i := range res.Cases {
		for j := range res.Cases[i].Positions {
			if p := &res.Cases[i].Positions[j]; p.Comparable() {
				dot, sq = dot+p.dot, sq+p.refSq
				s.Min, s.Max = math.Min(s.Min, p.Scale), math.Max(s.Max, p.Scale)
				s.Positions++
			}
		}
	}
	if s.Positions == 0 {
		return nil
	}
	s.Value = dot / sq
	res.Scale = &s
	for i := range res.Cases {
		out := &res.Cases[i]
		if !out.Compared() {
			continue
		}
		r, err := refFolder.Case(out.Name)
		if err != nil {
			return err
		}
		c, err := candFolder.Case(out.Name)
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		err = eachSides(c, r, candFolder, refFolder, func(cand, ref *side) error { return out.klAt(s.Value, cand, ref) })
		if err != nil {
			out.Err, out.Positions = err, nil
		}
	}
	return nil
}

// klAt reads the rows again, which have been looked at.
func (c *Case) klAt(scale float64, cand, ref *side) error {
	refRow, candRow := make([]float64, ref.vocab), make([]float64, cand.vocab)
	for i := range c.Positions {
		p := &c.Positions[i]
		for _, s := range []struct {
			*side
			dst []float64
		}{{ref, refRow}, {cand, candRow}} {
			if err := s.row(i, s.dst); err != nil {
				return &Fault{Side: s.name, Kind: Format, File: s.path, Row: i, Err: err}
			}
		}
		kl := metric.KLAtScales(refRow, candRow, scale, p.Scale)
		p.KL, p.KLRowScale = kl[0], kl[1]
	}
	return nil
}
