package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// tiny has dimensions that all differ.
var tiny = engine.Arch{Family: "qwen2", Layers: 12, Hidden: 24, Intermediate: 40, Heads: 4, KVHeads: 2, HeadDim: 8, Vocab: 50}

func TestProbeNamesAndWidths(t *testing.T) {
	for name, width := range map[string]int{
		"embed": 24, "blocks.0.attn_norm": 24, "blocks.11.q": 32, "blocks.3.k": 16, "blocks.3.v": 16, "blocks.3.q_rope": 32,
		"blocks.3.k_rope": 16, "blocks.10.attn_out": 32, "blocks.0.resid_mid": 24, "blocks.0.mlp_out": 24,
		"blocks.0.resid_post": 24, "final_norm": 24, "logits": 50,
	} {
		p, err := engine.ParseProbe(name, tiny.Layers)
		require.NoError(t, err, name)
		require.Equal(t, engine.Probe(name), p)
		got, err := p.Width(tiny)
		require.NoError(t, err, name)
		require.Equal(t, width, got, name)
	}
	for _, part := range []string{"router_logits", "route_ids", "route_weights"} {
		p, err := engine.ParseProbe("blocks.2."+part, tiny.Layers)
		require.NoError(t, err, part)
		_, err = p.Width(tiny)
		var unsupported *engine.UnsupportedError
		require.ErrorAs(t, err, &unsupported, part)
		require.ErrorContains(t, err, `probe blocks.2.`+part+` not supported: layers of the family "qwen2" have no router`)
	}
}

func TestUnknownProbesAreRefused(t *testing.T) {
	for _, name := range []string{
		"", "hidden_states.3", "embed ", "Embed", "blocks", "blocks.", "blocks.q", "blocks.1", "blocks.1.", "blocks.1.q.", "blocks.1.o",
		"blocks..q", "blocks.-1.q", "blocks.+1.q", "blocks.01.q", "blocks.12.q", "blocks.1.5.q", "blocks.99999999999999999999.q",
		"layers.1.q", "xblocks.1.q", "blocks.1.logits", "blocks.0.embed",
	} {
		_, err := engine.ParseProbe(name, tiny.Layers)
		var unknown *engine.ProbeError
		require.ErrorAs(t, err, &unknown, name)
		require.Equal(t, name, unknown.Name)
		require.ErrorContains(t, err, fmt.Sprintf("engine: probe: got %q, want embed, final_norm, logits, or blocks.N. with N from 0 to 11", name))
		require.ErrorContains(t, err, "one of attn_norm, q, k, v, q_rope, k_rope, attn_out, resid_mid, router_logits")
		_, err = engine.Probe(name).Width(tiny)
		require.ErrorAs(t, err, &unknown, name)
	}
}

func TestBlockTakesANameApart(t *testing.T) {
	n, part, ok := engine.ResidMid(27).Block()
	require.True(t, ok)
	require.Equal(t, 27, n)
	require.Equal(t, engine.PartResidMid, part)
	for _, p := range []engine.Probe{engine.ProbeEmbed, engine.ProbeLogits, "blocks.03.q", "blocks.3.x"} {
		_, _, ok := p.Block()
		require.False(t, ok, p)
	}
}

// Ten places in each layer, the three outside, each once and each parsed.
func TestProbesListsAllThatAModelHas(t *testing.T) {
	all := engine.Probes(tiny)
	require.Len(t, all, 12*10+3)
	seen := map[engine.Probe]bool{}
	for _, p := range all {
		_, err := p.Width(tiny)
		require.NoError(t, err)
		require.False(t, seen[p], p)
		seen[p] = true
	}
	require.Equal(t, engine.ProbeEmbed, all[0])
	require.Equal(t, []engine.Probe{"blocks.11.resid_post", "final_norm", "logits"}, all[len(all)-3:])
	for i := range tiny.Layers + 1 {
		require.True(t, seen[engine.RowProbe(i)], i)
	}
}

func ExampleParseProbe() {
	p, err := engine.ParseProbe("blocks.3.q_rope", 28)
	if err != nil {
		fmt.Println(err)
		return
	}
	n, part, _ := p.Block()
	fmt.Println(n, part)
	// Output: 3 q_rope
}
