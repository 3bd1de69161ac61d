package reference

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlockRowsStayBelowTheRepackingSize(t *testing.T) {
	const limit = 4 << 20
	for _, c := range []struct{ out, in, blocks int }{
		{1, 1, 1},
		{64, 64, 1},
		{2047, 2048, 1},   // 4,192,256 multiply-adds
		{2048, 2048, 2},   // exactly 4Mi
		{4864, 896, 2},    // 4,358,144
		{151936, 896, 33}, // 136,134,656 / 4Mi = 32.46
		{3, 5 << 20, 3},   // a single row is above the limit: one row per block
	} {
		rows := blockRows(c.out, c.in)
		require.Len(t, rows, c.blocks, "%d x %d", c.out, c.in)
		sum := 0
		for _, n := range rows {
			sum += n
			require.True(t, n == 1 || n*c.in < limit, "%d x %d: block of %d rows", c.out, c.in, n)
		}
		require.Equal(t, c.out, sum)
	}
}
