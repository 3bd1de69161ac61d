package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table takes its share of the room and never more than there is.
func TestSheetRows(t *testing.T) {
	rows := strings.Split(strings.Repeat("a row\n|", 100), "|")[:100]
	shown := func(most, share int) (n int, text string) {
		p := newSheet(most)
		p.rows(share, "rows", "head\n", rows, "foot\n")
		return strings.Count(p.b.String(), "a row\n"), p.b.String()
	}
	n, text := shown(10_000, 300)
	require.Equal(t, (300-len("head\n")-len("foot\n")-tail)/len("a row\n"), n, "its share")
	require.Contains(t, text, "72 of 100 rows are left out here")
	n, text = shown(300, 10_000)
	require.Equal(t, 28, n, "what is left")
	require.True(t, strings.HasSuffix(text, "foot\n"))
	n, _ = shown(10_000, 10_000)
	require.Equal(t, 100, n)
}

// A dollar sign begins a formula on GitHub, also behind a backslash.
func TestNoFormulas(t *testing.T) {
	for _, s := range []string{"$x^2$", "$$x$$", "a $ b", "$`x`$"} {
		require.NotContains(t, prose(s, 100), "$")
		require.Contains(t, prose(s, 100), "&#36;")
	}
}
