package page_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// The banner says where, why and how much; it names the layer and not only colours it.
func TestVerdictOfAFault(t *testing.T) {
	r := sample(29, 9, 18)
	v := parse(t, written(t, r)).id("verdict")
	require.NotNil(t, v)
	h1 := v.named("h1")[0].words()
	assert.Equal(t, "✗ Fails at blocks.17.resid_post", h1)
	for _, want := range []string{"decoder layer 17", "18 (blocks.17.resid_post)", "layer: one layer introduces the error", "LocalError",
		"limit 0.15 (3 times the int8 emulation's own error on the same prompt), row 18", "plumbline gate --model ./m --candidate ./dumps"} {
		assert.Contains(t, v.words(), want)
	}
	// the largest local error at the source, over all cases
	most, which := 0., ""
	for name, c := range r.Cases {
		if x := float64(*c.Depth[18].Local); x > most {
			most, which = x, name
		}
	}
	assert.Contains(t, v.words(), fmt.Sprintf("local error %.4g", most))
	assert.Contains(t, v.words(), which)
	assert.Equal(t, "layer 17", v.class("at")[1].words())
}

func TestVerdictsWithoutAFault(t *testing.T) {
	for want, r := range map[string]*conformance.Report{
		"✓ Conforms":       sample(29, 9, -1),
		"◐ Partial":        partial(),
		"○ Nothing judged": {Conclusion: conformance.NothingJudged},
		"? new word":       {Conclusion: "new word"},
	} {
		p := parse(t, written(t, r))
		assert.Equal(t, want, p.id("verdict").named("h1")[0].words())
		assert.Empty(t, p.id("verdict").class("why"))
	}
	text := parse(t, written(t, partial())).id("verdict").words()
	assert.Contains(t, text, "2 core checks were judged nowhere: LogitRowContract, LogitCandidate")
	assert.Contains(t, parse(t, written(t, partial())).id("coverage").words(), "needs a logit dump, NAME.logits.bin, in at least one case")
}

// A reference that fails itself is what the page is about, whatever the candidate did.
func TestVerdictOfAWrongReference(t *testing.T) {
	r := sample(5, 2, 3)
	r.Conclusion, r.ReferenceFailed, r.Source, r.FirstBadRow = conformance.NothingJudged, true, nil, nil
	r.Checks = append(r.Checks, conformance.Result{ID: "ResidualGolden", Case: "a case", Side: conformance.SideReference, Status: conformance.Fail, Findings: []conformance.Finding{overLimit(2, "relative L2", 3, 1, "")}})
	v := parse(t, written(t, r)).id("verdict").words()
	assert.Contains(t, v, "no verdict on the candidate can be trusted")
	assert.Contains(t, v, "ResidualGolden, a case")
}

func TestVerdictNamesWaiversBaselineAndShard(t *testing.T) {
	r := sample(5, 2, -1)
	r.Conclusion = conformance.Fails
	w := conformance.Waiver{Check: "LocalError", Case: "*", Reason: "known", Expires: "2026-01-01"}
	r.Waivers = []conformance.WaiverUse{{Waiver: w, Problem: "it expired"}}
	r.Checks[6].Status, r.Checks[6].Waived = conformance.Fail, &w
	r.Baseline = &conformance.BaselineInfo{Name: "base.json", Regressions: []conformance.Change{{Check: "LocalError", Case: "x", Metric: "error", Before: 1, After: 2}}}
	r.Shard = &conformance.ShardInfo{Index: 1, Total: 4, AllCases: 8}
	p := parse(t, written(t, r))
	v := p.id("verdict").words()
	for _, want := range []string{"waiver of LocalError, over all cases: it expired", "1 regression against the baseline base.json", "1 result that failed is waived", "shard 2 of 4 (index 1): 2 of 8 cases"} {
		assert.Contains(t, v, want)
	}
	assert.Contains(t, p.id("checks").words(), "waived until 2026-01-01: known")
	assert.Contains(t, p.id("coverage").words(), "worse LocalError")
}

// Kinds and places of all sorts have a page.
func TestEveryKindAndPlace(t *testing.T) {
	row := 0
	for _, k := range []conformance.Kind{conformance.KindLayer, conformance.KindAllLayers, conformance.KindInput, conformance.KindDump, conformance.KindHead, conformance.KindFormat, conformance.KindProvenance} {
		for _, p := range []engine.Probe{engine.ProbeEmbed, engine.ProbeFinalNorm, engine.ProbeLogits, engine.ResidMid(2), engine.ResidPost(3)} {
			r := sample(5, 2, -1)
			r.Conclusion, r.Kind, r.Source, r.Sources, r.FirstBadRow = conformance.Fails, &k, &p, []engine.Probe{p, engine.ResidPost(1)}, &row
			v := parse(t, written(t, r)).id("verdict").words()
			switch k {
			case conformance.KindAllLayers:
				assert.Contains(t, v, "Fails in all layers")
			case conformance.KindDump:
				assert.Contains(t, v, "Fails in row 0 of the dump")
			default:
				assert.Contains(t, v, "Fails at "+string(p))
			}
			assert.Contains(t, v, "Kind "+string(k)+": ")
		}
	}
}

// The reason is what is wrong at the source, on a case, however far off what follows
// from it is; the check that says so comes first.
func TestVerdictRestsOnTheSource(t *testing.T) {
	r := sample(6, 3, 3)
	at := func(id, name string, f conformance.Finding) {
		r.Checks = append([]conformance.Result{{ID: id, Case: name, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail, Findings: []conformance.Finding{f}}}, r.Checks...)
	}
	at("ResidualCandidate", "far behind", overLimit(5, "accumulated relative L2", 900, 1, ""))
	at("LocalError", "*", overLimit(3, "local error, median", 300, 1, ""))
	p := parse(t, written(t, r))
	why := p.id("verdict").class("why")[0].words()
	assert.Regexp(t, `^Why LocalError, prompt_00._capital_of_country \(it fails on 3 of 3 cases, and over all cases\): blocks.2.resid_post local error 1\.\d+, limit 0.15`, why)
	assert.Contains(t, p.id("checks").named("details")[0].named("summary")[0].words(), "LocalError")

	mid := engine.ResidMid(2)
	inside := overLimit(3, "error of the half", 1.5, 1, "")
	inside.Probe = mid
	at("ProbeCandidate", "a case", inside)
	r.Source, r.Sources = &mid, []engine.Probe{mid}
	assert.Contains(t, parse(t, written(t, r)).id("verdict").class("why")[0].words(), "ProbeCandidate, a case: blocks.2.resid_mid error of the half 1.5")

	r.Source, r.Sources = nil, nil // a bad dump row: no layer is to blame
	why = parse(t, written(t, r)).id("verdict").class("why")[0].words()
	assert.Regexp(t, `blocks.2.resid_post`, why)
}

// A row that is bad in the dump is flagged, though no layer is the source.
func TestBadDumpRowIsFlagged(t *testing.T) {
	r := sample(6, 3, 3)
	kind := conformance.KindDump
	r.Kind, r.Source, r.Sources = &kind, nil, nil
	p := parse(t, written(t, r))
	assert.Equal(t, "2", p.id("map-local").class("flag")[0].words())
	assert.Contains(t, p.id("verdict").words(), "a bad row in the dump; the engine went on healthy")
	assert.Equal(t, "✗ Fails in row 3 of the dump", p.id("verdict").named("h1")[0].words())
}

// Two sources are both flagged.
func TestFurtherSources(t *testing.T) {
	r := sample(12, 3, 3)
	r.Sources = append(r.Sources, "blocks.9.mlp_out")
	p := parse(t, written(t, r))
	var flags []string
	for _, f := range p.id("map-local").class("flag") {
		flags = append(flags, f.words())
	}
	assert.Equal(t, []string{"2", "9"}, flags)
	assert.Contains(t, p.id("verdict").words(), "Further source blocks.9.mlp_out")
}

// Behind the layers the strip says what the checks on norm and logits say.
func TestStripEndsWithNormAndLogits(t *testing.T) {
	last := func(r *conformance.Report) []string {
		cells := parse(t, written(t, r)).id("verdict").class("cells")[0].children
		var out []string
		for _, c := range cells[len(cells)-2:] {
			out = append(out, c.attrs["title"], c.named("i")[0].attrs["class"])
		}
		require.Len(t, cells, 6)
		return out
	}
	assert.Equal(t, []string{"final norm: not judged", "n", "logits: within its limits", "a"}, last(sample(4, 2, -1)))
	r := sample(4, 2, -1)
	p := engine.ProbeFinalNorm
	r.Source, r.Sources = &p, []engine.Probe{p}
	r.Checks = append(r.Checks, conformance.Result{ID: "LogitCandidate", Case: "x", Side: conformance.SideCandidate, Status: conformance.Fail})
	assert.Equal(t, []string{"final norm: at fault", "z", "logits: over its limits, which a fault before it explains", "x"}, last(r))
}
