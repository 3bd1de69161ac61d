package golden_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// TestRecordedRoutesAreThoseOfTheirLogits: in each row the chosen are a set, in
// ascending order, none of the others has a greater logit, and the weights are
// what a softmax over all gives them.
func TestRecordedRoutesAreThoseOfTheirLogits(t *testing.T) {
	for _, open := range []func() (*golden.TensorSet, error){golden.DeepSeek2, golden.DeepSeek2BFloat16} {
		set, err := open()
		require.NoError(t, err)
		for _, name := range set.Manifest.Cases {
			c, err := set.Case(name)
			require.NoError(t, err)
			for layer := 1; layer < 27; layer++ {
				at := func(part string) [][]float32 { return c.Tensors[fmt.Sprintf("blocks.%d.%s", layer, part)] }
				logits, ids, weights := at("router_logits"), at("route_ids"), at("route_weights")
				// Every position that was run has its route.
				require.Len(t, ids, len(c.TokenIDs)+len(c.ForcedIDs)-1)
				require.Len(t, logits, len(ids))
				for i := range ids {
					set, sum := chosen(t, ids[i], 16), 0.0
					for _, x := range logits[i] {
						sum += math.Exp(float64(x))
					}
					least, best := math.Inf(1), math.Inf(-1)
					for e, x := range logits[i] {
						if slices.Contains(set, e) {
							least = min(least, float64(x))
						} else {
							best = max(best, float64(x))
						}
					}
					require.GreaterOrEqual(t, least, best, "%s layer %d position %d", name, layer, i)
					for k, e := range set {
						want := math.Exp(float64(logits[i][e])) / sum
						require.LessOrEqual(t, math.Abs(float64(weights[i][k])-want), 1e-6*want, "%s layer %d position %d expert %d", name, layer, i, e)
					}
				}
			}
		}
	}
}

// chosen are the ids of a route, which are whole, ascending and below n.
func chosen(t *testing.T, row []float32, n int) []int {
	t.Helper()
	out := make([]int, len(row))
	for i, x := range row {
		out[i] = int(x)
		require.True(t, float32(out[i]) == x && out[i] < n && (i == 0 || out[i] > out[i-1]), "%v", row)
	}
	return out
}

// TestPromptsTieWhereTheySay: of two experts with one row of the gate, one is
// chosen somewhere in the case "ties", and nowhere in "clear".
func TestPromptsTieWhereTheySay(t *testing.T) {
	set, err := golden.DeepSeek2()
	require.NoError(t, err)
	halves := func(name string) int {
		c, err := set.Case(name)
		require.NoError(t, err)
		n := 0
		for i, row := range c.Tensors["blocks.24.route_ids"] {
			ids, logits := chosen(t, row, 16), c.Tensors["blocks.24.router_logits"][i]
			for _, pair := range [][2]int{{3, 11}, {5, 6}} {
				require.Equal(t, logits[pair[0]], logits[pair[1]])
				if slices.Contains(ids, pair[0]) != slices.Contains(ids, pair[1]) {
					n++
				}
			}
		}
		return n
	}
	assert.Positive(t, halves("ties"))
	assert.Zero(t, halves("clear"))
}

func TestThePaddedBatchSaysWhereItsRowsLie(t *testing.T) {
	for _, open := range []func() (*golden.TensorSet, error){golden.DeepSeek2, golden.DeepSeek2BFloat16} {
		set, err := open()
		require.NoError(t, err)
		long, err := set.Case("batch_long")
		require.NoError(t, err)
		short, err := set.Case("batch_short")
		require.NoError(t, err)
		assert.Equal(t, []string{"batch", "batch"}, []string{long.Batch, short.Batch})
		assert.Zero(t, long.Start)
		assert.Equal(t, len(long.TokenIDs)-len(short.TokenIDs), short.Start)
		assert.Contains(t, set.Manifest.Arithmetic.Changed[0], "softmax scale times mscale^2")
	}
}

// TestTheGatesAreThoseOfTheirFormulas: DeepSeek-V3's gate by hand, in float64.
func TestTheGatesAreThoseOfTheirFormulas(t *testing.T) {
	set, err := golden.DeepSeekGates()
	require.NoError(t, err)
	c, err := set.Case("v3")
	require.NoError(t, err)
	weight, bias := gateTensors(t, "v3")
	var config struct {
		Groups    int     `json:"n_group"`
		TopGroups int     `json:"topk_group"`
		PerToken  int     `json:"num_experts_per_tok"`
		Scale     float64 `json:"routed_scaling_factor"`
	}
	data, err := fs.ReadFile(fixtures.DeepSeekGates(), "v3.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &config))
	experts := len(bias)
	size := experts / config.Groups
	negative := 0
	for i, x := range c.Tensors["hidden"] {
		score, by := make([]float64, experts), make([]float64, experts)
		for e := range score {
			dot := 0.0
			for k, w := range weight[e] {
				dot += w * float64(x[k])
			}
			assert.InDelta(t, dot, float64(c.Tensors["router_logits"][i][e]), 1e-5)
			score[e] = 1 / (1 + math.Exp(-dot))
			by[e] = score[e] + bias[e]
		}
		worth := make([]float64, config.Groups)
		for g := range worth {
			two := slices.Sorted(slices.Values(by[g*size : (g+1)*size]))
			worth[g] = two[size-1] + two[size-2]
		}
		kept := slices.Sorted(slices.Values(worth))[config.Groups-config.TopGroups]
		var left []int
		for e := range by {
			if worth[e/size] >= kept {
				left = append(left, e)
			}
		}
		slices.SortFunc(left, func(a, b int) int {
			if by[a] > by[b] {
				return -1
			}
			return 1
		})
		want := left[:config.PerToken]
		if by[want[config.PerToken-1]] < 0 {
			negative++
		}
		sum := 0.0
		for _, e := range want {
			sum += score[e]
		}
		slices.Sort(want)
		require.Equal(t, want, chosen(t, c.Tensors["route_ids"][i], experts), "row %d", i)
		for k, e := range want {
			assert.InDelta(t, score[e]/sum*config.Scale, float64(c.Tensors["route_weights"][i][k]), 1e-5)
		}
	}
	assert.Greater(t, negative, len(c.Positions)/2, "rows whose last expert is chosen by a negative score")
}

func gateTensors(t *testing.T, name string) (weight [][]float64, bias []float64) {
	t.Helper()
	data, err := fs.ReadFile(fixtures.DeepSeekGates(), name+".safetensors")
	require.NoError(t, err)
	file, err := dumpfmt.NewSafetensors(bytes.NewReader(data), int64(len(data)), name)
	require.NoError(t, err)
	read := func(tensor string, n int) []float64 {
		values, err := file.Float32s(tensor)
		require.NoError(t, err)
		flat := make([]float32, n)
		_, err = values.ReadValues(flat, 0)
		require.NoError(t, err)
		out := make([]float64, n)
		for i, x := range flat {
			out[i] = float64(x)
		}
		return out
	}
	bias = read("e_score_correction_bias", 16)
	return slices.Collect(slices.Chunk(read("weight", 16*48), 48)), bias
}
