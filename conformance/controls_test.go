package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// TestEveryCheckCanFail: each check passes on the clean engine and fails on
// each of its controls, by the floor that the control declares.
func TestEveryCheckCanFail(t *testing.T) {
	sweep(t)
	cfg, err := embedded()
	require.NoError(t, err)
	cfg.Cases = suite.ProofCases(cfg.Cases)
	proofs, err := conformance.Prove(t.Context(), cfg)
	require.NoError(t, err)
	want := 0
	for _, c := range conformance.Builtin().Checks() {
		want += len(c.Controls)
	}
	require.Len(t, proofs, want)
	for _, p := range proofs {
		name := p.Check + "/" + string(p.Control.Side) + "/" + p.Control.Mutant
		t.Run(name, func(t *testing.T) {
			t.Logf("misses its bound by %.3g (floor %g)", p.Excess, p.Control.Floor)
			assert.True(t, p.Holds, p.Why)
		})
	}
}

// TestControlFloors: the floors are those of the rules. A control on float32
// data misses by 10, one on quantised data by at least 2, an exact one fails.
func TestControlFloors(t *testing.T) {
	onlyOnEmbedded(t)
	for _, c := range conformance.Builtin().Checks() {
		for _, k := range c.Controls {
			if k.Floor == 0 {
				continue
			}
			want := 2.0
			if k.Side == conformance.SideReference {
				want = 10
			}
			assert.GreaterOrEqual(t, k.Floor, want, "%s on %s", c.ID, k.Mutant)
		}
	}
}
