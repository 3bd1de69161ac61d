package conformance_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// namesOnly are budgets of no check: they tell kinds of faults apart that a check has
// found.
var namesOnly = []string{"OneLayerShape", "NextLayerShare", "AllLayersShare", "AllLayers", "SwapMargin"}

// Every check says where its limits come from, and every budget is one of a check's or
// of those that only name.
func TestEveryBoundHasAnOrigin(t *testing.T) {
	onlyOnEmbedded(t)
	budgets := conformance.DefaultBudgets()
	used := map[string]bool{}
	for _, name := range namesOnly {
		used[name] = true
	}
	for _, c := range conformance.Builtin().Checks() {
		require.False(t, len(c.Bounds) == 0 && c.Basis == "", "%s: got no Bounds and no Basis", c.ID)
		for _, name := range c.Bounds {
			named, err := budgets.Named(name)
			require.NoError(t, err, c.ID)
			for _, b := range named {
				require.NotEmpty(t, b.Why, "%s: %s", c.ID, b.Name)
				require.NotZero(t, b.Value, "%s: %s", c.ID, b.Name)
			}
			used[name] = true
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[conformance.Budgets]()) {
		require.True(t, used[f.Name], "the budget %s: got no check that names it in Bounds", f.Name)
	}
	_, err := budgets.Named("NoSuchBudget")
	require.Error(t, err)
}

// The text of every kind of evidence is there: a check's Needs are as many sentences as
// it has bits.
func TestEveryNeedIsDescribed(t *testing.T) {
	onlyOnEmbedded(t)
	for _, c := range conformance.Builtin().Checks() {
		bits := 0
		for n := c.Needs; n != 0; n &= n - 1 {
			bits++
		}
		require.Len(t, c.Needs.Describe(), bits, c.ID)
	}
}
