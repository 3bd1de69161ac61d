package suite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine/mutant"
)

// Every planted fault is described once, and nothing is described that no check plants.
func TestEveryFaultIsDescribed(t *testing.T) {
	planted := map[string]bool{}
	for _, c := range conformance.Builtin().Checks() {
		for _, k := range c.Controls {
			f, err := FaultOf(k)
			require.NoError(t, err, c.ID)
			require.NotEmpty(t, f.Bug, "%s: %s", c.ID, k.Mutant)
			planted[k.Mutant] = true
		}
	}
	for name := range ownFaults {
		require.True(t, planted[name], "%s: no check plants it", name)
		_, err := mutant.Lookup(name)
		require.Error(t, err, "%s: engine/mutant describes it", name)
	}
	_, err := FaultOf(conformance.Control{Mutant: "no-such-fault"})
	require.ErrorContains(t, err, "no-such-fault")
}
