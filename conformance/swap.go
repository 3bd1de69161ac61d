package conformance

import (
	"context"
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// swapPartner tries every layer on the first bad row's input: an engine that runs
// its layers in the wrong order behaves like another layer there. Neighbours are
// tried first; a layer far away has to fit far better, since one of many may fit
// by chance. It returns a sentence, or "" when no layer explains the update.
//
// Two neighbouring layers nearly commute in a trained model, so that a swap can
// look like a bad dump row that heals: wasHealed is true when the locus is one.
func swapPartner(ctx context.Context, evs []*Evidence, l Locus) (note string, wasHealed bool, err error) {
	// Of the faults of the dump only a single row that heals is what a swap looks like.
	if l.Row < 1 || l.form || (l.Kind != KindLayer && l.healed != 2) {
		return "", false, nil
	}
	n := l.Row - 1
	for _, ev := range evs {
		if !ev.standsOutAt(n) {
			continue // a case in which the layer is right says nothing of its place
		}
		misses, err := ev.missesLayers(ctx, n)
		if err != nil {
			return "", false, err
		}
		d := misses.Layers
		margin := ev.Budgets.SwapMargin.Value
		at := -1
		for j := range d {
			far := j != n+1 && j != n-1
			if j == n || (far && l.Kind == KindDump) {
				continue
			}
			m := margin
			if far {
				m *= margin
			}
			if d[j]*m < d[n] && (at < 0 || d[j] < d[at]) {
				at = j
			}
		}
		if at < 0 || misses.Moves <= d[at] {
			// One case decides: the order is the same in all. A row that stays where
			// it was is no layer's, however little that one adds.
			return "", false, nil
		}
		return fmt.Sprintf("from row %d to row %d the candidate behaves like layer %d, not like layer %d (%s): layers in the wrong order",
			n, n+1, at, n, engine.ResidPost(n)), l.Kind == KindDump, nil
	}
	return "", false, nil
}

// standsOutAt reports whether the local error of layer n is out of budget in this case,
// by the narrower bound, which is that of medians.
func (ev *Evidence) standsOutAt(n int) bool {
	if ev.exactAt(n) {
		p := ev.ProbeProfile
		return over(p.Layers[n].Local.All.Ratio(), p.boundsOf(p.column(wholeLayer), ev.Budgets).pooled.Value)
	}
	if ev.Profile == nil || n >= len(ev.Profile.Local) || ev.Profile.Local[n].Missing {
		return false
	}
	c := curveOf(ev.Profile)
	c.medians = true
	return over(c.local[n], localBound(c, ev.Profile.Factors.Median.Value, ev.Budgets))
}

// layerMisses is how far row n+1 of a candidate is from what each layer makes of its
// row n, and from row n itself.
type layerMisses struct {
	Layers []float64
	Moves  float64
}

// missesLayers runs every layer on the candidate's row n.
func (ev *Evidence) missesLayers(ctx context.Context, n int) (layerMisses, error) {
	if ev.found != nil {
		return ev.found.misses[n], nil
	}
	m := layerMisses{Layers: make([]float64, ev.Arch.Layers), Moves: ev.moves(n)}
	for j := range m.Layers {
		var err error
		if m.Layers[j], err = ev.missesLayer(ctx, n, j); err != nil {
			return m, fmt.Errorf("conformance: case %s: layer %d on row %d: %w", ev.Case.Name, j, n, err)
		}
	}
	return m, nil
}

// exactAt reports whether the local error of a layer is known from all positions.
func (ev *Evidence) exactAt(n int) bool {
	return ev.ProbeProfile != nil && ev.ProbeProfile.Layers[n].Local.measured()
}

// moves is how far row n+1 of the candidate is from its row n, as missesLayer
// measures.
func (ev *Evidence) moves(n int) float64 {
	if p := ev.ProbeProfile; ev.exactAt(n) {
		return distanceBehindFirst(ev.Places.Rows[engine.RowProbe(n+1)], ev.Places.Rows[engine.RowProbe(n)], len(p.Layers[n].Local.At))
	}
	return distance(ev.Candidate.Rows[n+1], ev.Candidate.Rows[n])
}

// distanceBehindFirst is the distance of rows of so many positions, without the
// first where there are more.
func distanceBehindFirst(a, b [][]float64, positions int) float64 {
	var sum float64
	for t := min(1, positions-1); t < positions; t++ {
		d := distance(a[t], b[t])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// missesLayer is how far row n+1 of the candidate is from what layer j makes of its
// row n: at all positions but the first where there are such rows, else at the
// last.
func (ev *Evidence) missesLayer(ctx context.Context, n, j int) (float64, error) {
	if p := ev.ProbeProfile; ev.exactAt(n) {
		until := len(p.Layers[n].Local.At)
		in, out := ev.Places.Rows[engine.RowProbe(n)][:until], ev.Places.Rows[engine.RowProbe(n+1)]
		want, _, err := ev.layerRun(ctx, j, in, nil)
		if err != nil {
			return 0, err
		}
		return distanceBehindFirst(out, want[engine.PartResidPost], until), nil
	}
	y, err := ev.trace.Layer(ctx, j, ev.Candidate.Rows[n])
	if err != nil {
		return 0, err
	}
	return distance(ev.Candidate.Rows[n+1], y), nil
}
