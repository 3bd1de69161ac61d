package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// schemes are those whose engines say which weights they have.
var schemes = map[string]engine.Scheme{"int8 rows": scaled, "blocks": blocks}

// TestProbesNameThePlaceOfAFault plants faults in the first, a middle and the
// last layer. One prompt must do: the layer, the half or the matrix of it, and no
// other layer.
func TestProbesNameThePlaceOfAFault(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "short_question")
	w := cfg.Reference.Weights()
	last := w.Arch().Layers - 1
	for name, scheme := range schemes {
		open := inScheme(scheme)
		for _, tc := range []struct {
			mutant string
			parts  []engine.Part // that the fault itself spoils
		}{
			{"kv-heads-swapped", []engine.Part{engine.PartV, engine.PartKRope}},
			{"norm-gain-ones", []engine.Part{engine.PartV, engine.PartKRope}},
			{"rope-base", []engine.Part{engine.PartKRope}},
			{"stale-cache-row", []engine.Part{engine.PartResidMid}},
			{"layer-skipped", []engine.Part{engine.PartResidMid, engine.PartResidPost}},
			{"gate-up-swapped", []engine.Part{engine.PartResidPost}},
			{"mlp-gain", []engine.Part{engine.PartResidPost}},
			{"channel-dead", []engine.Part{engine.PartResidPost}},
		} {
			for _, layer := range []int{0, last / 2, last} {
				what := fmt.Sprintf("%s at layer %d, %s", tc.mutant, layer, name)
				rep := judge(t, cfg, open(faultyWeights(t, w, tc.mutant, layer)))
				assertLocus(t, rep, layer+1, conformance.KindLayer, inLayer(layer, tc.parts...), what)
			}
		}
	}
}

// TestProbesSeparateTwoFaults: layers don't explain each other, so a second fault
// stays a source however large the first one is.
func TestProbesSeparateTwoFaults(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "short_question", "two_halves")
	w := cfg.Reference.Weights()
	for name, scheme := range schemes {
		open := inScheme(scheme)
		for _, tc := range []struct {
			mlp, attention int
			mutant         string
			parts          []engine.Part
		}{
			{4, 19, "stale-cache-row", []engine.Part{engine.PartResidMid}},
			{20, 5, "kv-heads-swapped", []engine.Part{engine.PartV, engine.PartKRope}},
			{11, 12, "gate-up-swapped", []engine.Part{engine.PartResidPost}}, // neighbours, both in the MLP
		} {
			faulty := faultyWeights(t, faultyWeights(t, w, "gate-up-swapped", tc.mlp), tc.mutant, tc.attention)
			want := slices.Concat(inLayer(tc.mlp, engine.PartResidPost), inLayer(tc.attention, tc.parts...))
			if tc.attention < tc.mlp {
				want = slices.Concat(inLayer(tc.attention, tc.parts...), inLayer(tc.mlp, engine.PartResidPost))
			}
			what := fmt.Sprintf("gate-up-swapped at %d and %s at %d, %s", tc.mlp, tc.mutant, tc.attention, name)
			rep := judge(t, cfg, open(faulty))
			assertLocus(t, rep, min(tc.mlp, tc.attention)+1, conformance.KindLayer, want, what)
		}
	}
}

// TestTheFirstPositionIsTheFirstSources: a later layer that is wrong from the start
// says nothing of when the first one went wrong.
func TestTheFirstPositionIsTheFirstSources(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "short_question")
	faulty := faultyWeights(t, faultyWeights(t, cfg.Reference.Weights(), "gate-up-swapped", 20), "stale-cache-row", 5)
	rep := judge(t, cfg, inScheme(blocks)(faulty))
	assertLocus(t, rep, 6, conformance.KindLayer, append(inLayer(5, engine.PartResidMid), inLayer(20, engine.PartResidPost)...), "two faults")
	if assert.NotNil(t, rep.FirstBadPosition) {
		assert.Equal(t, len(cfg.Cases[0].TokenIDs)-1, *rep.FirstBadPosition)
	}
}

// TestSourcesAreThoseOfAllCases: a fault that one prompt alone shows is a source as
// well.
func TestSourcesAreThoseOfAllCases(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "arithmetic", "translation")
	open := inScheme(scaled)
	one := faultyWeights(t, cfg.Reference.Weights(), "gate-up-swapped", 4)
	often, once := open(one), open(faultyWeights(t, one, "kv-heads-swapped", 17))
	info, err := often.Info(t.Context())
	require.NoError(t, err)
	rep := judge(t, cfg, engine.Func{Side: info, Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		if req.Case.Name == "translation" {
			return once.Run(ctx, req)
		}
		return often.Run(ctx, req)
	}})
	assertLocus(t, rep, 5, conformance.KindLayer, append(inLayer(4, engine.PartResidPost), inLayer(17, engine.PartV, engine.PartKRope)...), "two faults")
}

// TestProbesTellAFaultOfAllLayers: it is one fault, named at its first layer.
func TestProbesTellAFaultOfAllLayers(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "short_question")
	for name, scheme := range schemes {
		rep := judge(t, cfg, inScheme(scheme)(faultyWeights(t, cfg.Reference.Weights(), "rope-base", -1)))
		assertLocus(t, rep, 1, conformance.KindAllLayers, inLayer(0, engine.PartKRope), name)
	}
}

// withFault is a checkpoint whose engines have a fault.
type withFault struct {
	engine.Weights
	fault engine.Fault
}

func (w withFault) Arch() engine.Arch {
	a := w.Weights.Arch().Clone()
	a.Fault = w.fault
	return a
}

// TestProbesDateAFault: an engine whose cache misses the row of one position is
// right before it.
func TestProbesDateAFault(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "short_question")
	const layer = 9
	for name, scheme := range schemes {
		open := inScheme(scheme)
		for _, position := range []int{2, 7, len(cfg.Cases[0].TokenIDs) - 1} {
			what := fmt.Sprintf("row %d of the cache is not written, %s", position, name)
			rep := judge(t, cfg, open(withFault{cfg.Reference.Weights(), engine.Fault{StaleCache: true, StaleLayer: layer, StalePosition: position}}))
			assertLocus(t, rep, layer+1, conformance.KindLayer, inLayer(layer, engine.PartResidMid), what)
			if assert.NotNil(t, rep.FirstBadPosition, what) {
				assert.Equal(t, position, *rep.FirstBadPosition, what)
			}
			of := rep.Cases[cfg.Cases[0].Name]
			if assert.NotNil(t, of.FirstBadPosition, what) {
				assert.Equal(t, position, *of.FirstBadPosition, what)
			}
		}
	}
}
