package trace_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// encode is what binds a tokenizer to a plan.
func encode(tok *tokenizer.Tokenizer) trace.Encode {
	return func(text string) ([]int, [][2]int, error) {
		ids, spans, err := tok.EncodeOffsets(text)
		out := make([][2]int, len(spans))
		for i, s := range spans {
			out[i] = [2]int{s.Start, s.End}
		}
		return ids, out, err
	}
}

// TestEmbeddedSourcesEqualPython: the sixteen sources under eight conditions, as
// the Python package cuts them.
func TestEmbeddedSourcesEqualPython(t *testing.T) {
	data, err := os.ReadFile("testdata/variants.json")
	require.NoError(t, err)
	var recorded []struct {
		ID, Condition    string
		Tokens, Crossing int
		IDsSHA256        string `json:"ids_sha256"`
		Content          []int
	}
	require.NoError(t, json.Unmarshal(data, &recorded))
	tok, err := tokenizer.LoadFS(fixtures.Model(), ".")
	require.NoError(t, err)
	p := trace.Standard()
	sel, err := trace.ReadSourcesFS(fixtures.TraceSources(), ".", p, trace.SourceOptions{})
	require.NoError(t, err)
	require.Len(t, sel.Sources, 16)
	require.Equal(t, []string{"arithmetic", "code", "prose", "scripts"}, sel.Domains)
	starts := map[string]int{"eos": 2002, "bos": 2001, "x": 87, "period": 13}
	require.NoError(t, p.CheckBoundaries(starts, nil))
	n, crossing := 0, 0
	for _, s := range sel.Sources {
		variants, err := p.Tokenise(encode(tok), starts, s.Text)
		require.NoError(t, err)
		problems, compared := p.CheckContent(s.ID, variants, starts)
		require.Empty(t, problems)
		require.Positive(t, compared)
		for i, v := range variants {
			want := recorded[n]
			n++
			require.Equal(t, []string{want.ID, want.Condition}, []string{s.ID, p.Conditions[i].Name})
			require.Equal(t, want.IDsSHA256, trace.IDsHash(v.TokenIDs), "%s %s", want.ID, want.Condition)
			require.Equal(t, want.Content, v.ContentPositions, "%s %s", want.ID, want.Condition)
			require.Equal(t, want.Crossing, v.BoundaryCrossing, "%s %s", want.ID, want.Condition)
			crossing += v.BoundaryCrossing
		}
	}
	require.Equal(t, len(recorded), n)
	require.Positive(t, crossing, "sources whose edge a token crosses")
}
