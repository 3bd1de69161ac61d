package teacher

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func sumOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// The frames, spelled out.
func TestHashFrames(t *testing.T) {
	long := make([]int, 10_000) // more than one piece
	bytes := ""
	for i := range long {
		long[i] = i * 400_000
		b := uint32(i * 400_000)
		bytes += string([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
	}
	for _, c := range []struct {
		ids  []int
		want string
	}{
		{nil, "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{[]int{1, math.MaxUint32}, "\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff"},
		{long, "\x10\x27\x00\x00\x00\x00\x00\x00" + bytes},
	} {
		prefix, err := PrefixSHA256(c.ids)
		require.NoError(t, err)
		require.Equal(t, sumOf("hf2q-teacher-prefix-token-ids-v1"+c.want), prefix.String())
		greedy, err := TrajectorySHA256(c.ids)
		require.NoError(t, err)
		require.Equal(t, sumOf("hf2q-exact-teacher-greedy-tokens-v1"+c.want), greedy.String())
		tokens, err := TokensSHA256("é", c.ids)
		require.NoError(t, err)
		require.Equal(t, sumOf("hf2q-token-ids-v1\x02\x00\x00\x00\xc3\xa9"+c.want), tokens.String())
	}
	for _, id := range []int{-1, math.MaxUint32 + 1} {
		_, err := PrefixSHA256([]int{0, id})
		var e *IDError
		require.ErrorAs(t, err, &e)
		require.Equal(t, IDError{1, id}, *e)
	}
}
