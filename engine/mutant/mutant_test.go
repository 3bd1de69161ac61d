package mutant

import (
	"strings"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryMutantIsDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		assert.False(t, seen[m.Name], "%s: listed twice", m.Name)
		seen[m.Name] = true
		assert.NotEmpty(t, m.Bug, m.Name)
		assert.NotEmpty(t, m.Named, m.Name)
		assert.True(t, m.Source == "" || strings.HasPrefix(m.Source, "https://"), m.Name)
		assert.True(t, m.InWeights() || m.InReference() || m.InCandidate(), "%s: can't be planted anywhere", m.Name)
		got, err := Lookup(m.Name)
		require.NoError(t, err)
		assert.Equal(t, m.Bug, got.Bug)
	}
	_, err := Lookup("no-such-bug")
	require.ErrorContains(t, err, `"no-such-bug"`)
}

func TestPlacesOutsideTheModelAreRefused(t *testing.T) {
	w := weights(t) // 28 layers, 29 rows
	for _, c := range []struct {
		name string
		at   int
		ok   bool
	}{
		{"rope-base", 27, true}, {"rope-base", -1, true}, {"rope-base", -7, true}, {"rope-base", 28, false},
		{"layer-skipped", 0, true}, {"layer-skipped", -1, false}, {"layer-skipped", 28, false},
		{"layers-swapped", 26, true}, {"layers-swapped", 27, false},
		{"first-token-embedding", 99, true},
		{"nan-row", 28, true}, {"nan-row", 29, false}, {"nan-row", -1, false},
	} {
		m, err := Lookup(c.name)
		require.NoError(t, err)
		if m.InWeights() {
			_, err = m.Weights(w, c.at)
		} else {
			_, err = m.Candidate(Sides{Candidate: fixed{}, Weights: w}, c.at)
		}
		if c.ok {
			assert.NoError(t, err, "%s at %d", c.name, c.at)
		} else {
			assert.ErrorContains(t, err, "mutant: "+c.name, "at %d", c.at)
		}
	}
}

func TestMutantsRefuseTheWrongSide(t *testing.T) {
	var unsupported *engine.UnsupportedError
	nan, err := Lookup("nan-row")
	require.NoError(t, err)
	_, err = nan.Weights(weights(t), 3)
	require.ErrorAs(t, err, &unsupported)
	_, err = nan.Reference(newReference(t), nil, 3)
	require.ErrorAs(t, err, &unsupported)
	stale, err := Lookup("stale-row")
	require.NoError(t, err)
	_, err = stale.Candidate(Sides{Candidate: fixed{}, Weights: weights(t)}, 3)
	require.ErrorAs(t, err, &unsupported)

	rope, err := Lookup("rope-base")
	require.NoError(t, err)
	_, err = rope.Reference(newReference(t), nil, 3)
	require.ErrorContains(t, err, "no way to open")
	_, err = rope.Candidate(Sides{Candidate: fixed{}, Weights: weights(t)}, 3)
	require.ErrorContains(t, err, "no way to open")
	_, err = nan.Candidate(Sides{Candidate: fixed{}}, 3)
	require.ErrorContains(t, err, "no weights")
	_, err = nan.Candidate(Sides{Weights: weights(t)}, 3)
	require.ErrorContains(t, err, "no candidate")
}
