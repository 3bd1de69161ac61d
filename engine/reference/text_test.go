package reference_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

// TestCheckpointEncodes: the text of every prompt that transformers tokenised
// gives the ids that it gave; a folder without a tokenizer says so.
func TestCheckpointEncodes(t *testing.T) {
	c, err := reference.LoadFS(fixtures.Model(), ".")
	require.NoError(t, err)
	cases, err := fixtures.Prompts()
	require.NoError(t, err)
	for _, p := range cases {
		ids, err := c.Encode(p.Text)
		require.NoError(t, err)
		require.Equal(t, p.TokenIDs, ids, p.Name)
	}
	bare, err := reference.LoadFS(fixtures.SeededModel(), ".")
	require.NoError(t, err)
	_, err = bare.Encode("a")
	require.ErrorContains(t, err, "tokenizer.json")
}
