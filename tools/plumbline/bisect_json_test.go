package main

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBisectJSON(t *testing.T) {
	t.Setenv(modelEnv, "")
	t.Chdir(t.TempDir())
	require.NoError(t, writeDumps("ref", "float", []string{"a", "b"}))
	require.NoError(t, writeDumps("cand", "int8", []string{"a", "b"}))
	require.NoError(t, writeFile("cand/b.layers.bin", []byte("short")))
	var out, stderr bytes.Buffer
	require.Equal(t, exitFails, run([]string{"bisect", "--ref", "ref", "--cand", "cand", "--cand-repeat", "cand", "--json"}, &out, &stderr))

	var got map[string]any
	dec := json.NewDecoder(&out)
	require.NoError(t, dec.Decode(&got))
	require.False(t, dec.More(), "more than one object")
	for _, key := range []string{"conclusion", "first_bad_row", "kind", "power", "source", "sources", "checks", "cases", "executed", "reproduce", "groups", "resolving_power"} {
		require.Contains(t, got, key)
	}
	require.Equal(t, "fails", got["conclusion"])
	require.Equal(t, "format", got["kind"])
	require.Nil(t, got["first_bad_row"])
	require.Equal(t, []any{}, got["sources"])

	cases := got["cases"].(map[string]any)
	require.Equal(t, "cand/b.layers.bin", cases["b"].(map[string]any)["file"])
	rows := cases["a"].(map[string]any)["rows"].([]any)
	require.Len(t, rows, 3)
	// scipy.stats and numpy on the rows of writeDumps.
	for key, want := range map[string]float64{
		"row": 1, "spearman": 0.632455532033676, "pearson_z": 0.7181848464596079, "max_z_diff": 1.112225052629312,
		"relative_l2": 0.724568837309472, "norm_ratio": 1.620185174601965,
	} {
		if v := rows[1].(map[string]any)[key].(float64); !(math.Abs(v-want) <= 1e-12) {
			t.Errorf("%s: got %v, want %v", key, v, want)
		}
	}
}
