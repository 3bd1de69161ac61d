package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// curve is a profile reduced to ratios: over one case, or the medians of many.
// A ratio is unmeasured where there was nothing to measure.
type curve struct {
	accumulated []float64                // per row
	local       []float64                // per layer
	over        [maxStride - 1][]float64 // per layer, over 2, 3, 4 layers
	// What is known of the last row, which has no row behind it to heal.
	postNormLast bool
	lastCopyOf   int     // -1: no copy
	lastRescaled float64 // 0: not a rescaled right row
	unknown      bool    // unknown scheme: only the shape of local counts
	medians      bool    // medians over enough cases to trust the shape of local
}

func curveOf(p *Profile) curve {
	c := curve{
		accumulated: ratios(p.Accumulated), local: ratios(p.Local),
		postNormLast: p.PostNormLast, lastCopyOf: -1, unknown: p.SchemeUnknown != "",
	}
	for k := range p.Over {
		c.over[k] = ratios(p.Over[k])
	}
	if last := len(p.CopyOf) - 1; last >= 0 {
		c.lastCopyOf, c.lastRescaled = p.CopyOf[last], p.Rescaled[last]
	}
	return c
}

// medianCurve takes the median over the cases at each place, and the majority
// on the last row.
func medianCurve(ps []*Profile) curve {
	cs := make([]curve, len(ps))
	for i, p := range ps {
		cs[i] = curveOf(p)
	}
	column := func(at func(curve) []float64) []float64 {
		out := make([]float64, len(at(cs[0])))
		for i := range out {
			var xs []float64
			for _, c := range cs {
				if v := at(c)[i]; v != unmeasured {
					xs = append(xs, v)
				}
			}
			out[i] = unmeasured
			if len(xs) > 0 {
				out[i] = metric.Median(xs)
			}
		}
		return out
	}
	m := curve{
		accumulated: column(func(c curve) []float64 { return c.accumulated }),
		local:       column(func(c curve) []float64 { return c.local }),
		lastCopyOf:  -1, unknown: cs[0].unknown, medians: true,
	}
	for k := range m.over {
		m.over[k] = column(func(c curve) []float64 { return c.over[k] })
	}
	var post, scaled int
	copied := map[int]int{}
	var factors []float64
	for _, c := range cs {
		if c.postNormLast {
			post++
		}
		if c.lastRescaled != 0 {
			scaled++
			factors = append(factors, c.lastRescaled)
		}
		copied[c.lastCopyOf]++
	}
	half := len(cs) / 2
	m.postNormLast = post > half
	if scaled > half {
		m.lastRescaled = metric.Median(factors)
	}
	for of, n := range copied {
		if n > half {
			m.lastCopyOf = of
		}
	}
	return m
}

// lastRowNote says what is wrong with a last row that is a fault of the dump for
// certain; last is the last layer. A copy of the row right before is not: a
// skipped last layer gives one as well.
func (c curve) lastRowNote(last int) string {
	switch {
	case c.postNormLast:
		return fmt.Sprintf("row %d is the hidden state after the final norm, which is what output_hidden_states gives", last+1)
	case c.lastCopyOf >= 0 && c.lastCopyOf < last:
		return fmt.Sprintf("row %d repeats row %d bit for bit", last+1, c.lastCopyOf)
	case c.lastRescaled != 0:
		return fmt.Sprintf("row %d is the right row times %.4g: a wrong scale, not a wrong layer", last+1, c.lastRescaled)
	}
	return ""
}

// measured leaves the unmeasured ratios out. A curve without any has none.
func measured(xs []float64) []float64 {
	out := make([]float64, 0, len(xs))
	for _, x := range xs {
		if x != unmeasured {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return []float64{0}
	}
	return out
}
