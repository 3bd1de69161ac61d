package dumpfmt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseCaseFile(t *testing.T) {
	c, err := ParseCaseFile("list:3", []byte(`{"name":"a","text":"x","token_ids":[1,2]}`+"\r\n"))
	require.NoError(t, err)
	require.Equal(t, "x", c.Text)
	require.Equal(t, []int{1, 2}, c.TokenIDs)
	require.Equal(t, `"a"`, string(c.Extra["name"]))

	_, err = ParseCaseFile("list:4", []byte(`{"text":"x","token_ids":[1,-2]}`))
	require.EqualError(t, err, `dumpfmt: case file list:4: token_ids[1] at byte 0x1B: got -2, want an integer in [0, 2147483647]`)
	_, err = ParseCaseFile("list:5", make([]byte, maxJSON+1))
	require.EqualError(t, err, `dumpfmt: case file list:5: size at byte 0x4000000: got 67108865 bytes, want at most 67108864`)
}
