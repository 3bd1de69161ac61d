package conformance

import (
	"fmt"
	"math"
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
	// healed is the number of layers over which the first bad row heals, 0 when
	// it does not; healing is the note that says so.
	healed  int
	healing string
	// position is the first bad position, nil when the dumps don't tell it.
	position *int
	// form is true for a fault of form: a degenerate row, rows out of order.
	form bool
}

// Source is the most upstream source, or "".
func (l Locus) Source() engine.Probe {
	if len(l.Sources) == 0 {
		return ""
	}
	return l.Sources[0]
}

// over is written so that a NaN is over every bound.
func over(x, bound float64) bool { return !(x <= bound) }

// localBound is the bound on the local ratios of a curve. A layer that stands
// out from the others is over budget even where the factor would let it pass;
// a candidate that is better than the yardstick is not held to its own level.
// In an unknown scheme standing out is all that means something.
func localBound(c curve, factor float64, b Budgets) float64 {
	kappa := metric.Quantile(0.25, measured(c.local))
	switch {
	case c.unknown && c.medians:
		return b.OutlierUnknown.Value * kappa
	case c.unknown:
		return b.OutlierSingle.Value * kappa
	case c.medians:
		return min(factor, b.Outlier.Value*max(kappa, 1))
	}
	return factor
}

// locate finds the first bad row of a curve and what kind of fault it is.
// factor is the bound on the accumulated ratios.
func locate(c curve, factor float64, b Budgets) Locus {
	local, bound := c.local, localBound(c, factor, b)
	if !c.unknown && over(c.accumulated[0], factor) {
		return inputLocus(c, factor, bound)
	}
	first := slices.IndexFunc(local, func(x float64) bool { return over(x, bound) })
	if first < 0 {
		return accumulatedOnly(c, factor)
	}
	loc := Locus{Row: first + 1, Kind: KindLayer}
	last := len(local) - 1
	explained := map[int]bool{}
	for n := range local {
		if !over(local[n], bound) || explained[n] {
			continue
		}
		if k := heals(c, n, bound, b); k > 0 {
			// The rows between are wrong in the dump; the engine itself went on
			// from right ones, so nothing later is explained by them.
			for i := n + 1; i < n+k; i++ {
				explained[i] = true
			}
			if n == first {
				loc.Kind, loc.healed, loc.healing = KindDump, k, healNote(n, k)
			}
			loc.Notes = append(loc.Notes, healNote(n, k))
			continue
		}
		if note := c.lastRowNote(last); n == last && note != "" {
			if n == first {
				loc.Kind = KindDump
			}
			loc.Notes = append(loc.Notes, note)
			continue
		}
		switch {
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
	if loc.Kind == KindLayer && first == last {
		loc.Notes = append(loc.Notes, "the last row has no row behind it: a wrong row of the dump and a wrong last layer look alike")
	} else if loc.Kind == KindLayer {
		loc.Notes = append(loc.Notes, "later layers run on the reference's KV cache: their local error stays high behind a source, "+
			"and a second, smaller fault there can't be seen in last-token dumps")
	}
	return loc
}

func healNote(n, k int) string {
	if k == 2 {
		return fmt.Sprintf("row %d heals: layers %d and %d together map row %d to row %d as they should, so the row is wrong and not the layer",
			n+1, n, n+1, n, n+2)
	}
	return fmt.Sprintf("rows %d to %d heal: layers %d to %d together map row %d to row %d as they should, so the rows are wrong "+
		"(exchanged, repeated or stale) and not the layers", n+1, n+k-1, n, n+k-1, n, n+k)
}

// inputLocus is a wrong row 0. If layer 0, fed with it, gives row 1, then the
// engine went on from it: the token or the embedding is wrong. If it doesn't,
// and row 1 is right, then only the dump's row is wrong.
func inputLocus(c curve, factor, bound float64) Locus {
	if len(c.local) > 0 && over(c.local[0], bound) && !over(c.accumulated[1], factor) {
		return Locus{Row: 0, Kind: KindDump, Notes: []string{
			"row 0 heals: row 1 is right, and is not what layer 0 makes of row 0, so the dump row is wrong and the input is not"}}
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

// heals returns the number of layers, at least 2, over which the candidate is
// right although layer n by itself is not: then the rows between are wrong in
// the dump alone. It is 0 when nothing heals. Layers share their update with
// their neighbours, so a real fault fades over more of them; a dump row does
// not fade, it is gone.
func heals(c curve, n int, bound float64, b Budgets) int {
	for k := 2; k <= maxStride && n+k <= len(c.local); k++ {
		x := c.over[k-2][n]
		if x == unmeasured || over(x, bound) || !over(c.local[n+k-1], bound) {
			continue
		}
		if min(c.local[n], c.local[n+k-1]) >= b.OneLayerShape.Value*math.Sqrt(float64(k-1))*x {
			return k
		}
	}
	return 0
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

// allLayers reports whether the fault is in every layer. One is seen from the
// first layers on, the next layer is nearly as bad by itself, and most others
// are out of budget too. Behind a fault of one early layer the wrong KV cache
// alone raises the others, and less.
func allLayers(local []float64, first int, bound float64, b Budgets) bool {
	if first > 1 || first+1 >= len(local) || local[first+1] < b.NextLayerShare.Value*local[first] {
		return false
	}
	var rest []float64
	for i, x := range local {
		if i != first && i != first+1 && x != unmeasured {
			rest = append(rest, x)
		}
	}
	if len(rest) == 0 {
		return false
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
