package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A name that holds the word is as near as one with a slip.
func TestNearest(t *testing.T) {
	require.Equal(t, []string{"xxabcxx", "abd"}, nearestNames("abc", []string{"xxabcxx", "nothing", "abd"}))
	require.Equal(t, []string{"abc", "xxabcxx", "abd"}, nearestNames("ABC", []string{"xxabcxx", "abd", "abc"}))
	require.Empty(t, nearestNames("", []string{"abc"}))
}

// Distances by hand.
func TestEditDistance(t *testing.T) {
	for _, tt := range []struct {
		x, y string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"ab", "ba", 2}, {strings.Repeat("a", 101), "a", 101}} {
		require.Equal(t, tt.want, editDistance(tt.x, tt.y), "%q %q", tt.x, tt.y)
	}
}

func TestAnUnknownCheckNamesTheNearOnes(t *testing.T) {
	for id, want := range map[string]string{
		"LocalEror": "a check, such as LocalError",
		"localerro": "a check, such as LocalError",
		"Residual":  "a check, such as ResidualShape or ResidualGolden or ResidualCandidate",
	} {
		require.Equal(t, want, checkNamed(Builtin(), id))
	}
	none := checkNamed(Builtin(), "Foo")
	require.NotContains(t, none, "LocalError", "a list of all is none of the near ones")
	require.Contains(t, none, "`plumbline explain` lists them")
	require.Empty(t, checkNamed(Builtin(), "LocalError"))
}
