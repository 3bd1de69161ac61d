package mutant

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// routedArch has a dense layer, one with a softmax gate, one with a softmax gate
// that normalises and no shared experts, and one with a sigmoid gate.
func routedArch() engine.Arch {
	a := engine.Arch{Family: "deepseek_v2", Layers: 4, Hidden: 2, Heads: 3, KVHeads: 3, HeadDim: 4, Latent: engine.Latent{KVRank: 2, RopeDim: 2, ValueDim: 2}}
	softmax := engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}
	normalised := softmax
	normalised.Normalise = true
	for _, x := range []engine.Experts{{},
		{Count: 4, PerToken: 2, Shared: 2, Intermediate: 3, Gate: softmax},
		{Count: 4, PerToken: 2, Intermediate: 3, Gate: normalised},
		{Count: 4, PerToken: 1, Shared: 1, Intermediate: 3, Gate: engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 2, TopGroups: 1, Scale: 1}}} {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e4, NormEps: 1e-6, Experts: x, ScoreFactor: 1.5, Yarn: engine.Yarn{Factor: 40, TableFactor: 2}})
	}
	a.PerLayer[3].ScoreFactor, a.PerLayer[3].Yarn = 1, engine.Yarn{}
	return a
}

// own are weights whose every tensor is its own memory.
type own struct {
	shaped
	made map[string]engine.Tensor
}

func (w own) Tensor(name string) (engine.Tensor, error) {
	if _, ok := w.made[name]; !ok {
		w.made[name] = engine.Tensor{Shape: []int{3, 2}, Data: []float32{1, 1, 2, 2, 3, 3}}
	}
	return w.made[name], nil
}

// names are the tensors of a routed layer's feed-forwards.
func routedNames(layer int, x engine.Experts) (all []string) {
	for i := range x.Count {
		all = append(all, fmt.Sprintf("%d.mlp.experts.%d.", layer, i))
	}
	if x.Shared > 0 {
		all = append(all, fmt.Sprintf("%d.mlp.shared_experts.", layer))
	}
	var out []string
	for _, p := range all {
		out = append(out, p+"down_proj.weight", p+"gate_proj.weight", p+"up_proj.weight")
	}
	return out
}

func TestRouteFaults(t *testing.T) {
	only := func(suffix string, names []string) (out []string) {
		for _, n := range names {
			if strings.HasSuffix(n, suffix) {
				out = append(out, n)
			}
		}
		return out
	}
	a := routedArch()
	one, three := routedNames(1, a.PerLayer[1].Experts), routedNames(3, a.PerLayer[3].Experts)
	routed := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.Contains(n, "shared") })
	}
	dense := []string{"0.mlp.down_proj.weight", "0.mlp.gate_proj.weight", "0.mlp.up_proj.weight"}
	all := slices.Concat(dense, one, routedNames(2, a.PerLayer[2].Experts), three)
	for _, c := range []struct {
		name    string
		at      int
		change  func(p []engine.LayerParams)
		tensors []string
	}{
		{"mscale-missing", 0, func(p []engine.LayerParams) { p[0].ScoreFactor = 0 }, nil},
		{"mscale-missing", -1, func(p []engine.LayerParams) { p[0].ScoreFactor, p[1].ScoreFactor, p[2].ScoreFactor = 0, 0, 0 }, nil},
		{"yarn-off", 2, func(p []engine.LayerParams) { p[2].Yarn.Factor = 0 }, nil},
		{"softmax-after-top-k", 1, func(p []engine.LayerParams) { p[1].Experts.Gate.Fault = engine.GateSoftmaxChosen }, nil},
		{"softmax-after-top-k", -1, func(p []engine.LayerParams) { p[1].Experts.Gate.Fault = engine.GateSoftmaxChosen }, nil},
		{"route-weights-unnormalised", 2, func(p []engine.LayerParams) { p[2].Experts.Gate.Normalise = false }, nil},
		{"top-k-minus-one", -1, func(p []engine.LayerParams) { p[1].Experts.PerToken, p[2].Experts.PerToken = 1, 1 }, nil},
		{"route-ties-last-wins", 3, func(p []engine.LayerParams) { p[3].Experts.Gate.Fault = engine.GateLastWins }, nil},
		{"group-mask-zero", 3, func(p []engine.LayerParams) { p[3].Experts.Gate.Fault = engine.GateMaskZero }, nil},
		{"router-bfloat16", 1, func(p []engine.LayerParams) { p[1].Experts.Gate.Fault = engine.GateBFloat16 }, nil},
		{"shared-experts-dropped", 1, nil, []string{"1.mlp.shared_experts.down_proj.weight"}},
		{"shared-experts-dropped", -1, nil, []string{"1.mlp.shared_experts.down_proj.weight", "3.mlp.shared_experts.down_proj.weight"}},
		{"experts-permuted", 1, nil, routed(one)},
		// Faults of other models, in the tensors that this one has.
		{"mlp-gain", 1, nil, only("down_proj.weight", one)},
		{"mlp-gain", 0, nil, only("down_proj.weight", dense)},
		{"channel-dead", -1, nil, only("down_proj.weight", all)},
		{"gate-up-swapped", 3, nil, append(only("gate_proj.weight", three), only("up_proj.weight", three)...)},
		{"layer-skipped", 1, nil, append(only("down_proj.weight", one), "1.self_attn.o_proj.weight")},
		{"kv-heads-swapped", 2, nil, []string{"2.self_attn.kv_b_proj.weight"}},
	} {
		t.Run(fmt.Sprintf("%s at %d", c.name, c.at), func(t *testing.T) {
			m, err := Lookup(c.name)
			require.NoError(t, err)
			base := own{shaped{a}, map[string]engine.Tensor{}}
			w, err := m.Weights(base, c.at)
			require.NoError(t, err)
			want := routedArch()
			if c.change != nil {
				c.change(want.PerLayer)
			}
			assert.Equal(t, want, w.Arch())
			var changed []string
			for n := range a.Layers {
				attention := []string{fmt.Sprintf("%d.self_attn.o_proj.weight", n), fmt.Sprintf("%d.self_attn.kv_b_proj.weight", n), fmt.Sprintf("%d.mlp.gate.weight", n)}
				for _, name := range append(attention, all...) {
					before, err := base.Tensor("model.layers." + name)
					require.NoError(t, err)
					after, err := w.Tensor("model.layers." + name)
					require.NoError(t, err)
					if !same(before, after) && !slices.Contains(changed, name) {
						changed = append(changed, name)
					}
				}
			}
			slices.Sort(changed)
			assert.Equal(t, slices.Sorted(slices.Values(c.tensors)), changed)
		})
	}
	m, err := Lookup("experts-permuted")
	require.NoError(t, err)
	base := own{shaped{a}, map[string]engine.Tensor{}}
	w, err := m.Weights(base, 1)
	require.NoError(t, err)
	for i := range 4 {
		got, err := w.Tensor(fmt.Sprintf("model.layers.1.mlp.experts.%d.up_proj.weight", i))
		require.NoError(t, err)
		want, err := base.Tensor(fmt.Sprintf("model.layers.1.mlp.experts.%d.up_proj.weight", (i+1)%4))
		require.NoError(t, err)
		assert.True(t, same(got, want), "expert %d", i)
	}
}

// TestRouteFaultsNeedWhatTheyChange: where a fault would change nothing it is no
// fault.
func TestRouteFaultsNeedWhatTheyChange(t *testing.T) {
	for name, layers := range map[string][]int{
		"mscale-missing": {3}, "yarn-off": {3}, "softmax-after-top-k": {0, 2, 3}, "route-weights-unnormalised": {0, 1, 3},
		"top-k-minus-one": {0, 3}, "route-ties-last-wins": {0}, "group-mask-zero": {0, 1, 2}, "router-bfloat16": {0},
		"shared-experts-dropped": {0, 2}, "experts-permuted": {0},
	} {
		m, err := Lookup(name)
		require.NoError(t, err)
		var unsupported *engine.UnsupportedError
		for n := range routedArch().Layers {
			_, err := m.Weights(shaped{routedArch()}, n)
			if slices.Contains(layers, n) {
				require.ErrorAs(t, err, &unsupported, "%s at %d", name, n)
				require.ErrorContains(t, err, fmt.Sprintf("layer %d of this deepseek_v2 hasn't got that", n))
			} else {
				require.NoError(t, err, "%s at %d", name, n)
			}
		}
		_, err = m.Weights(weights(t), -1)
		require.ErrorAs(t, err, &unsupported, name)
		require.ErrorContains(t, err, "no layer has that in this qwen2", name)
	}
}
