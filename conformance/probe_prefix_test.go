package conformance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// prefixesOf are all prefixes of a prompt as cases of their own, the shortest
// first.
func prefixesOf(c engine.Case) []engine.Case {
	out := make([]engine.Case, len(c.TokenIDs))
	for i := range out {
		out[i] = engine.Case{Name: fmt.Sprintf("prefix_%02d", i+1), Text: fmt.Sprintf("%s, %d tokens", c.Text, i+1), TokenIDs: c.TokenIDs[:i+1]}
	}
	return out
}

// TestDumpsOfPrefixesAreADumpOfAllPositions: rows are causal, so layer dumps of the
// prefixes of one prompt say what probes of it would, and no more is asked for.
func TestDumpsOfPrefixesAreADumpOfAllPositions(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "arithmetic")
	whole := prefixesOf(cfg.Cases[0])
	cfg.Cases, cfg.Probes = whole, nil
	longest := whole[len(whole)-1].Name
	w := cfg.Reference.Weights()
	for name, scheme := range schemes {
		open := inScheme(scheme)
		clean := open(w)
		rep := judge(t, cfg, clean)
		assert.Empty(t, rep.Failures(), name)
		for _, c := range whole {
			want := conformance.Unsupported
			if c.Name == longest {
				want = conformance.Pass
			}
			assert.Equal(t, want, resultOf(t, rep, "ProbeCandidate", c.Name).Status, "%s, %s", name, c.Name)
		}
		assert.Len(t, judgedPlaces(rep, longest), w.Arch().Layers, "resid_post of every layer")

		const layer = 6
		faulty := open(faultyWeights(t, w, "gate-up-swapped", layer))
		assertLocus(t, judge(t, cfg, faulty), layer+1, conformance.KindLayer, inLayer(layer, engine.PartResidPost), name)

		missing := cfg
		missing.Cases = slices.Delete(slices.Clone(whole), 3, 4)
		rep = judge(t, missing, clean)
		assert.Empty(t, rep.Failures(), name)
		for _, c := range missing.Cases {
			want := conformance.Unsupported
			if c.Name == "prefix_03" { // the chain up to the gap is whole
				want = conformance.Pass
			}
			assert.Equal(t, want, resultOf(t, rep, "ProbeCandidate", c.Name).Status, "%s without prefix_04: %s", name, c.Name)
		}
	}
}

// TestPrefixesShowASecondFault: last tokens alone can't, behind a larger one.
func TestPrefixesShowASecondFault(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "arithmetic")
	cfg.Cases, cfg.Probes = prefixesOf(cfg.Cases[0]), nil
	faulty := faultyWeights(t, faultyWeights(t, cfg.Reference.Weights(), "layer-skipped", 3), "mlp-gain", 20)
	rep := judge(t, cfg, inScheme(blocks)(faulty))
	assertLocus(t, rep, 4, conformance.KindLayer, append(inLayer(3, engine.PartResidPost), inLayer(20, engine.PartResidPost)...), "two faults")
}
