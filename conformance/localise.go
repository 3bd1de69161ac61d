package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Locus says where a profile first leaves its budget.
type Locus struct {
	// Row is the first bad dump row, -1 when there is none.
	Row  int
	Kind Kind
	// Sources are the layers that introduce error by themselves, in depth
	// order; empty for a fault of the dump.
	Sources []engine.Probe
	// Notes explain the classification, one sentence each.
	Notes []string
	// form is true for a fault of form (a degenerate row, rows out of order).
	form bool
}

// Source is the most upstream source, or "".
func (l Locus) Source() engine.Probe {
	if len(l.Sources) == 0 {
		return ""
	}
	return l.Sources[0]
}

// curve is a profile reduced to ratios: over one case, or the medians of many.
type curve struct {
	accumulated  []float64 // per row
	local        []float64 // per layer
	two          []float64 // per layer pair
	postNormLast bool
	unknown      bool // unknown scheme: only the shape of local counts
	medians      bool // medians over enough cases to trust the shape of local
}

func curveOf(p *Profile) curve {
	return curve{
		accumulated: ratios(p.Accumulated), local: ratios(p.Local), two: ratios(p.Two),
		postNormLast: p.PostNormLast, unknown: p.SchemeUnknown != "",
	}
}

// medianCurve takes the median over the cases at each place.
func medianCurve(ps []*Profile) curve {
	column := func(n int, at func(*Profile, int) float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			xs := make([]float64, len(ps))
			for k, p := range ps {
				xs[k] = at(p, i)
			}
			out[i] = metric.Median(xs)
		}
		return out
	}
	post := 0
	for _, p := range ps {
		if p.PostNormLast {
			post++
		}
	}
	first := ps[0]
	return curve{
		accumulated:  column(len(first.Accumulated), func(p *Profile, i int) float64 { return p.Accumulated[i].Ratio() }),
		local:        column(len(first.Local), func(p *Profile, i int) float64 { return p.Local[i].Ratio() }),
		two:          column(len(first.Two), func(p *Profile, i int) float64 { return p.Two[i].Ratio() }),
		postNormLast: 2*post > len(ps),
		unknown:      first.SchemeUnknown != "",
		medians:      true,
	}
}

// over is written so that a NaN is over every bound.
func over(x, bound float64) bool { return !(x <= bound) }

// localBound is the bound on the local ratios of a curve. A layer that stands
// out from the others is over budget even where the factor would let it pass;
// a candidate that is better than the yardstick is not held to its own level.
// In an unknown scheme standing out is all that means something.
func localBound(c curve, factor float64, b Budgets) float64 {
	kappa := metric.Quantile(0.25, c.local)
	switch {
	case c.unknown:
		return b.Outlier.Value * kappa
	case c.medians:
		return min(factor, b.Outlier.Value*max(kappa, 1))
	}
	return factor
}

// locate finds the first bad row of a curve and what kind of fault it is.
// factor is the bound on the accumulated ratios.
func locate(c curve, factor float64, b Budgets) Locus {
	if !c.unknown && over(c.accumulated[0], factor) {
		return inputLocus(c, factor)
	}
	local, bound := c.local, localBound(c, factor, b)
	bad := func(n int) bool { return over(local[n], bound) }
	first := slices.IndexFunc(local, func(x float64) bool { return over(x, bound) })
	if first < 0 {
		return accumulatedOnly(c, factor)
	}
	loc := Locus{Row: first + 1, Kind: KindLayer}
	explained := map[int]bool{}
	for n := range local {
		switch {
		case !bad(n) || explained[n]:
		case badRow(c, n, bound, b):
			// Row n+1 is wrong in the dump; the engine itself went on from a
			// right one, so nothing later is explained by it.
			explained[n+1] = true
			if n == first {
				loc.Kind = KindDump
				loc.Notes = append(loc.Notes, fmt.Sprintf(
					"row %d heals: layers %d and %d together map row %d to row %d as they should, so the row is wrong and not the layer",
					n+1, n, n+1, n, n+2))
			} else {
				loc.Notes = append(loc.Notes, fmt.Sprintf("row %d is wrong in the dump as well", n+1))
			}
		case n == len(local)-1 && c.postNormLast:
			if n == first {
				loc.Kind = KindDump
			}
			loc.Notes = append(loc.Notes, fmt.Sprintf(
				"row %d is the hidden state after the final norm, which is what output_hidden_states gives", n+1))
		case len(loc.Sources) == 0:
			loc.Sources = append(loc.Sources, engine.ResidPost(n))
			if n == first && allLayers(local, n, bound, b) {
				loc.Kind = KindAllLayers
				loc.Notes = append(loc.Notes, "the local error is out of budget at every depth and no layer stands out: "+
					"a fault of all layers, or one in an early layer that spoils the KV cache of the rest")
			}
			explained[n+1] = true
		case standsOut(local, n, loc.Sources, b):
			loc.Sources = append(loc.Sources, engine.ResidPost(n))
			explained[n+1] = true
		}
	}
	if loc.Kind == KindLayer && len(loc.Sources) > 0 {
		loc.Notes = append(loc.Notes, "later layers run on the reference's KV cache: their local error stays high behind a source, "+
			"and a second, smaller fault there can't be seen in last-token dumps")
	}
	return loc
}

// inputLocus is a wrong row 0: the token or the embedding, unless row 1 is
// right again.
func inputLocus(c curve, factor float64) Locus {
	if len(c.accumulated) > 1 && !over(c.accumulated[1], factor) {
		return Locus{Row: 0, Kind: KindDump, Notes: []string{
			"row 0 heals: row 1 is right, so the engine embedded the right token and the dump row is wrong"}}
	}
	return Locus{Row: 0, Kind: KindInput, Sources: []engine.Probe{engine.ProbeEmbed}, Notes: []string{
		"row 0 is beyond its quantisation budget: the input is wrong (token or embedding), not a layer"}}
}

// accumulatedOnly is a run whose layers are each within budget and whose sum is
// not.
func accumulatedOnly(c curve, factor float64) Locus {
	if c.unknown {
		return Locus{Row: -1}
	}
	i := slices.IndexFunc(c.accumulated, func(x float64) bool { return over(x, factor) })
	if i < 0 {
		return Locus{Row: -1}
	}
	return Locus{Row: i, Kind: KindAllLayers, Sources: []engine.Probe{engine.RowProbe(i)}, Notes: []string{
		"no layer is out of budget by itself: small errors of one sign add up"}}
}

// badRow reports whether row n+1 is wrong in the dump alone: both layers that
// touch it are out of budget, and the two together, which pass over the row,
// are within it and far better than either.
func badRow(c curve, n int, bound float64, b Budgets) bool {
	if n+1 >= len(c.local) || !over(c.local[n+1], bound) || over(c.two[n], bound) {
		return false
	}
	return min(c.local[n], c.local[n+1]) >= b.OneLayerShape.Value*c.two[n]
}

// outside is the largest ratio outside {n, n+1} and the skipped layers.
func outside(local []float64, n int, skip func(int) bool) float64 {
	var m float64
	for i, x := range local {
		if i == n || i == n+1 || (skip != nil && skip(i)) {
			continue
		}
		m = max(m, x)
	}
	return m
}

// allLayers reports whether the fault is in every layer: no layer towers over
// the others, and most of the others are out of budget too, nearly as badly. A second
// fault in one more layer has the first property alone.
func allLayers(local []float64, first int, bound float64, b Budgets) bool {
	if local[first] >= b.OneLayerShape.Value*outside(local, first, nil) {
		return false
	}
	var rest []float64
	for i, x := range local {
		if i != first && i != first+1 {
			rest = append(rest, x)
		}
	}
	upper := metric.Quantile(0.75, rest)
	return over(upper, bound) && upper >= b.AllLayersShare.Value*local[first]
}

// standsOut reports whether layer n can't be explained by the sources before
// it: it towers over everything else that they spoil.
func standsOut(local []float64, n int, before []engine.Probe, b Budgets) bool {
	near := func(i int) bool {
		for _, p := range before {
			for _, k := range []int{i, i - 1} {
				if k >= 0 && engine.ResidPost(k) == p {
					return true
				}
			}
		}
		return false
	}
	return local[n] >= b.OneLayerShape.Value*outside(local, n, near)
}
