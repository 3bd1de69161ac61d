package conformance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// TestProbesNameThePartnerOfASwappedLayer: two layers in the wrong order are two
// layers that are wrong, and behave like each other. In a trained model the two
// nearly commute, so that the row between them looks wrong in the dump alone; what
// the first of them gives the KV cache is wrong all the same.
func TestProbesNameThePartnerOfASwappedLayer(t *testing.T) {
	sweep(t)
	for checkpoint, f := range few {
		cfg := probing(t, f.open, f.cases...)
		for name, scheme := range schemes {
			open := inScheme(scheme)
			for _, layer := range []int{0, 9, 12} {
				what := fmt.Sprintf("layers %d and %d of the %s model, %s", layer, layer+1, checkpoint, name)
				rep := judge(t, cfg, open(faultyWeights(t, cfg.Reference.Weights(), "layers-swapped", layer)))
				require.NotEmpty(t, rep.Sources, "%s; notes %v", what, rep.Notes)
				assertLocus(t, rep, layer+1, conformance.KindLayer, rep.Sources, what)
				assert.Equal(t, []int{layer, layer + 1}, layersOf(rep.Sources), "%s: sources %v", what, rep.Sources)
				assert.Contains(t, strings.Join(rep.Notes, "\n"), fmt.Sprintf("behaves like layer %d, not like layer %d", layer+1, layer), what)
			}
		}
	}
}

// TestResidualRowsAloneNameThePartner: without the places inside a layer the row
// between the two is all there is to see.
func TestResidualRowsAloneNameThePartner(t *testing.T) {
	sweep(t)
	cfg := probing(t, embedded, few["trained"].cases...)
	for i := range cfg.Reference.Weights().Arch().Layers + 1 {
		if i == 0 {
			cfg.Probes = nil
		}
		cfg.Probes = append(cfg.Probes, engine.RowProbe(i))
	}
	for _, layer := range []int{9, 12} {
		what := fmt.Sprintf("layers %d and %d", layer, layer+1)
		rep := judge(t, cfg, inScheme(scaled)(faultyWeights(t, cfg.Reference.Weights(), "layers-swapped", layer)))
		assertLocus(t, rep, layer+1, conformance.KindLayer, rep.Sources, what)
		require.NotEmpty(t, rep.Sources, "%s; notes %v", what, rep.Notes)
		assert.Equal(t, engine.ResidPost(layer), rep.Sources[0], what)
		notes := strings.Join(rep.Notes, "\n")
		assert.Contains(t, notes, fmt.Sprintf("behaves like layer %d, not like layer %d", layer+1, layer), what)
		assert.NotContains(t, notes, "heals", "one of the two is said, not both")
	}
}

// TestASkippedLayerHasNoPartner: a layer that adds next to nothing looks like one
// that was skipped, which is no order of layers.
func TestASkippedLayerHasNoPartner(t *testing.T) {
	sweep(t)
	cfg := probing(t, embedded, few["trained"].cases...)
	for name, scheme := range schemes {
		rep := judge(t, cfg, inScheme(scheme)(faultyWeights(t, cfg.Reference.Weights(), "layer-skipped", 0)))
		assertLocus(t, rep, 1, conformance.KindLayer, inLayer(0, engine.PartResidMid, engine.PartResidPost), name)
		assert.NotContains(t, strings.Join(rep.Notes, "\n"), "behaves like", name)
	}
}

// TestADumpRowThatHealsIsNoLayersFault: the engine went on from the right row, and
// what it gave the KV cache before it is right.
func TestADumpRowThatHealsIsNoLayersFault(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "short_question")
	for name, scheme := range schemes {
		clean := inScheme(scheme)(cfg.Reference.Weights())
		rep := judge(t, cfg, tampered(t, clean, func(_ engine.Request, resp *engine.Response, p engine.ProbeValues) {
			p[engine.ResidPost(8)] = p[engine.ResidPost(7)] // row 9 repeats row 8
			resp.Layers = nil
		}))
		assertLocus(t, rep, 9, conformance.KindDump, []engine.Probe{}, name)
		assert.Nil(t, rep.Source, name)
		assert.Contains(t, strings.Join(rep.Notes, "\n"), "row 9 heals", name)
	}
}

// layersOf are the layers of places, each once.
func layersOf(places []engine.Probe) []int {
	var out []int
	for _, p := range places {
		if n, _, ok := p.Block(); ok && (len(out) == 0 || out[len(out)-1] != n) {
			out = append(out, n)
		}
	}
	return out
}
