package conformance

import (
	"context"
	"fmt"

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
		if ev.Profile == nil || n >= len(ev.Profile.Local) || ev.Profile.Local[n].Missing {
			continue
		}
		in, out := ev.Candidate.Rows[n], ev.Candidate.Rows[n+1]
		d := make([]float64, ev.Arch.Layers)
		for j := range d {
			y, err := ev.trace.Layer(ctx, j, in)
			if err != nil {
				return "", false, fmt.Errorf("conformance: case %s: layer %d on row %d: %w", ev.Case.Name, j, n, err)
			}
			d[j] = distance(out, y)
		}
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
		if at < 0 {
			return "", false, nil // one case decides: the order is the same in all
		}
		return fmt.Sprintf("from row %d to row %d the candidate behaves like layer %d, not like layer %d (%s): layers in the wrong order",
			n, n+1, at, n, engine.ResidPost(n)), l.Kind == KindDump, nil
	}
	return "", false, nil
}
