package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// swapPartner tries every layer on the first source's input row: an engine that
// runs its layers in the wrong order behaves like another layer there. It
// returns a sentence, or "" when no layer explains the update.
func swapPartner(ctx context.Context, evs []*Evidence, l Locus) (string, error) {
	if l.Kind != KindLayer || l.Row < 1 {
		return "", nil
	}
	n := l.Row - 1
	for _, ev := range evs {
		if ev.Profile == nil || n >= len(ev.Profile.Local) || !strings.HasSuffix(string(l.Source()), ".resid_post") {
			continue
		}
		in, out := ev.Candidate.Rows[n], ev.Candidate.Rows[n+1]
		own, best, at := 0.0, 0.0, -1
		for j := range ev.Arch.Layers {
			y, err := ev.trace.Layer(ctx, j, in)
			if err != nil {
				return "", fmt.Errorf("conformance: case %s: layer %d on row %d: %w", ev.Case.Name, j, n, err)
			}
			d := distance(out, y)
			if j == n {
				own = d
			} else if at < 0 || d < best {
				best, at = d, j
			}
		}
		if at >= 0 && best*ev.Budgets.SwapMargin.Value < own {
			return fmt.Sprintf("from row %d to row %d the candidate behaves like layer %d, not like layer %d (%s): layers in the wrong order",
				n, n+1, at, n, engine.ResidPost(n)), nil
		}
		return "", nil // one case decides: the order is the same in all
	}
	return "", nil
}
