package page_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// The headline says what the kind says: not every kind has one place.
func TestHeadlineSaysWhatTheKindSays(t *testing.T) {
	for _, x := range []struct {
		kind   conformance.Kind
		source engine.Probe // "" for null
		row    int          // -1 for null
		h1     string
		lead   string
		not    string
	}{
		{conformance.KindAllLayers, "blocks.0.resid_post", 1, "✗ Fails in all layers", "Every layer introduces error; the first is layer 0.", "comes in at"},
		{conformance.KindAllLayers, "blocks.2.resid_post", 3, "✗ Fails in all layers", "Every layer introduces error; the first is layer 2.", "comes in at"},
		{conformance.KindLayer, "blocks.2.resid_post", 3, "✗ Fails at blocks.2.resid_post", "The error comes in at decoder layer 2.", "Every layer"},
		{conformance.KindInput, "embed", 0, "✗ Fails at embed", "The input is wrong: token or embedding, no layer. The error comes in at the embedding, before layer 0.", "decoder layer"},
		{conformance.KindDump, "", 3, "✗ Fails in row 3 of the dump", "A bad row in the dump; the engine went on healthy.", "comes in at"},
		{conformance.KindHead, "final_norm", -1, "✗ Fails at final_norm", "The error comes in at the final norm, behind the last layer.", "decoder layer"},
		{conformance.KindFormat, "", -1, "✗ Fails", "A file or an answer that can't be read.", "comes in at"},
		{conformance.KindProvenance, "", -1, "✗ Fails", "Well formed, but of another prompt or model.", "comes in at"},
	} {
		r := sample(6, 3, 3)
		r.Kind, r.Source, r.Sources, r.FirstBadRow = &x.kind, nil, []engine.Probe{"blocks.2.resid_post"}, nil
		if x.source != "" {
			r.Source, r.Sources = &x.source, []engine.Probe{x.source}
		}
		if x.row >= 0 {
			r.FirstBadRow = &x.row
		}
		v := parse(t, written(t, r)).id("verdict")
		assert.Equal(t, x.h1, v.named("h1")[0].words(), x.kind)
		assert.Contains(t, v.class("lead")[0].words(), x.lead, x.kind)
		assert.NotContains(t, v.class("lead")[0].words(), x.not, x.kind)
		if x.kind == conformance.KindDump {
			assert.NotContains(t, v.words(), "Further source")
			assert.NotContains(t, v.words(), "layer 2 ", "the strip marks the row")
			assert.Contains(t, v.class("cells")[0].words(), "row 3")
		}
	}
}

// Where all layers are wrong, none stands out.
func TestNoLayerStandsOutOfAll(t *testing.T) {
	r := sample(6, 3, 3)
	marked := parse(t, written(t, r))
	assert.NotEmpty(t, marked.id("verdict").class("marked"))
	assert.NotEmpty(t, marked.id("map-local").class("flag"))
	kind := conformance.KindAllLayers
	r.Kind = &kind
	p := parse(t, written(t, r))
	assert.Empty(t, p.id("verdict").class("marked"))
	assert.Empty(t, p.id("map-local").class("flag"))
	assert.Contains(t, p.id("verdict").class("cells")[0].attrs["aria-label"], "every layer introduces error")
}

// A source that is waived is no place of a failure.
func TestWaivedSourceIsNoHeadline(t *testing.T) {
	r := sample(6, 3, 3)
	r.Conclusion, r.SourceWaived = conformance.Conforms, true
	v := parse(t, written(t, r)).id("verdict")
	assert.Equal(t, "✓ Conforms", v.named("h1")[0].words())
	assert.Contains(t, v.words(), "Source, waived blocks.2.resid_post")
	assert.NotContains(t, v.words(), "comes in at")
}

// A Core check that judged the candidate nowhere is no pass, whatever it says of the
// reference.
func TestCheckOfTheReferenceAloneIsNotJudged(t *testing.T) {
	r := partial()
	r.Checks = append(r.Checks, conformance.Result{ID: "LogitRowContract", Case: "a", Side: conformance.SideReference, Status: conformance.Pass})
	says := map[string]string{}
	for _, d := range parse(t, written(t, r)).id("checks").named("details") {
		s := d.named("summary")[0]
		if b := s.named("b"); len(b) > 0 {
			says[b[0].words()] = s.class("st")[0].words()
		}
	}
	assert.Equal(t, "◐ not judged", says["LogitRowContract"])
	assert.Equal(t, "✓ pass", says["LocalError"])
}

// A verdict over all cases is none of a case.
func TestVerdictOverAllCasesIsNoCase(t *testing.T) {
	r := sample(6, 3, 3)
	over := conformance.Result{ID: "LocalError", Case: "*", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail,
		Findings: []conformance.Finding{overLimit(3, "a median", 2, 1, "")}}
	r.Checks = append(r.Checks, over)
	p := parse(t, written(t, r))
	assert.Contains(t, p.id("verdict").class("why")[0].words(), "(it fails on 3 of 3 cases, and over all cases):")
	assert.Contains(t, p.id("checks").words(), "3 fail and over all cases")
	r.Checks = []conformance.Result{over}
	p = parse(t, written(t, r))
	assert.NotContains(t, p.id("verdict").class("why")[0].words(), "it fails on")
	assert.Contains(t, p.id("checks").words(), "fail over all cases")
	assert.NotContains(t, p.id("checks").words(), "1 fail")
}

// Last rows can't tell at which position a fault comes in; the page says so.
func TestPositionOfLastRowsIsNotKnown(t *testing.T) {
	r := sample(6, 1, 3)
	p := parse(t, written(t, r))
	assert.Contains(t, p.id("verdict").words(), "First bad position not known: last rows only")
	assert.Contains(t, p.id("cases").words(), "not known: last rows only")
	for n, c := range r.Cases {
		c.Probes = []conformance.ProbeRow{{Probe: "blocks.2.resid_post", Error: 1, Ratio: 1}}
		r.Cases[n] = c
	}
	p = parse(t, written(t, r))
	assert.NotContains(t, p.id("verdict").words(), "last rows")
	assert.NotContains(t, p.id("cases").words(), "last rows")
}

// The page says what the noise of a baseline is, and no figure where none was compared.
func TestNoiseOfABaseline(t *testing.T) {
	r := sample(5, 2, -1)
	r.Baseline = &conformance.BaselineInfo{Name: "b.json", Compared: 40, Noise: conformance.Limit{Value: 1.125, Source: "the factor; two runs"}, NoiseBasis: "two runs"}
	assert.Contains(t, parse(t, written(t, r)).id("coverage").words(), "Half of the figures may grow by a factor of 1.125 unremarked (two runs).")
	r.Baseline.Compared, r.Baseline.Noise.Value, r.Baseline.NoiseBasis = 0, conformance.Number(math.NaN()), "no case has figures in both"
	words := parse(t, written(t, r)).id("coverage").words()
	assert.Contains(t, words, "Only verdicts and coverage were compared: no case has figures in both.")
	assert.NotContains(t, words, "NaN")
}

// A waiver of the verdict over all cases is none of each case.
func TestWaiverOverAllCases(t *testing.T) {
	r := sample(5, 2, -1)
	r.Waivers = []conformance.WaiverUse{{Waiver: conformance.Waiver{Check: "LocalError", Case: "*", Reason: "known", Expires: "2030-01-01"}, Used: 1}}
	assert.Contains(t, parse(t, written(t, r)).id("coverage").words(), "LocalError over all cases known")
}
