package report

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/tools/suite"
)

func at[T any](x T) *T { return &x }

// base is a report of two cases on which the Core checks passed, LocalError on both.
func base() *conformance.Report {
	r := &conformance.Report{
		SchemaVersion: conformance.SchemaVersion, Conclusion: conformance.Conforms, Executed: 7,
		Power:   []string{"2 of 2 prompts, 13 tokens in all"},
		Sources: []engine.Probe{},
		Checks: []conformance.Result{
			{ID: "LocalError", Case: "berlin", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass},
			{ID: "LocalError", Case: "paris", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass},
			{ID: "StopRule", Case: "berlin", Side: conformance.SideCandidate, Level: conformance.Extended, Status: conformance.Unsupported, Reason: "output_ids were not told"},
			{ID: "TieOverwriteBypass", Case: "berlin", Side: conformance.SideReference, Level: conformance.Core, Status: conformance.Pass},
		},
		Cases:     map[string]conformance.CaseVerdict{"berlin": {Judged: true}, "paris": {Judged: true}},
		Reproduce: "plumbline gate --model m --candidate 'my dumps'",
		Candidate: engine.Info{Name: "engine", Version: "1.2", Weights: "int8", Layers: "int8-scaled"},
		Reference: engine.Info{Name: "plumbline reference", DType: "float32"},
		Golden:    &conformance.GoldenInfo{Name: "qwen2-0.5b", Engine: "transformers 5.0.0", Cases: 2},
		Tool:      conformance.ToolInfo{Version: "v1.0.0", Go: "go1.26", OS: "linux", Arch: "amd64"},
		About: []conformance.CheckInfo{{ID: "LocalError", Rule: "each layer is right by itself", Catches: []string{"a layer that was skipped"},
			Level: conformance.Core, Sides: []conformance.Side{conformance.SideCandidate}, Controls: []string{"layer-skipped"}}},
		Times: &conformance.Times{Started: "2026-01-02T03:04:05Z", Seconds: 2.5, Cases: map[string]conformance.Number{"berlin": 1.25, "paris": 1}},
	}
	for _, id := range []string{"PromptTokens", "ResidualShape", "ResidualCandidate", "LogitRowContract", "LogitCandidate"} {
		r.Checks = append(r.Checks, conformance.Result{ID: id, Case: "berlin", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Pass})
	}
	return r
}

func failingResult(name string, got, limit float64) conformance.Result {
	return conformance.Result{ID: "LocalError", Case: name, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail,
		Rule: "each layer is right by itself", Findings: []conformance.Finding{
			{Probe: "blocks.7.resid_post", Metric: "local error", Got: conformance.Number(got), Limit: conformance.Limit{Value: conformance.Number(limit), Source: "3 times the int8 emulation's own error"},
				At: conformance.At{Row: 8, Channel: -1, Position: at(3), File: "dumps/" + name + ".layers.bin"}},
			{Probe: "blocks.8.resid_post", Metric: "local error", Got: 0.2, Limit: conformance.Limit{Value: 0.1, Source: "the same"}, At: conformance.AtRow(9)},
		}}
}

func fails(r *conformance.Report) {
	r.Conclusion, r.FirstBadRow, r.Kind = conformance.Fails, at(8), at(conformance.KindLayer)
	r.Source, r.Sources, r.FirstBadPosition = at(engine.Probe("blocks.7.resid_post")), []engine.Probe{"blocks.7.resid_post", "logits"}, at(3)
	r.Notes = []string{"later layers run on the reference's KV cache"}
	r.Checks[0], r.Checks[1] = failingResult("berlin", 0.5, 0.25), failingResult("paris", 0.75, 0.25)
	r.Cases["paris"] = conformance.CaseVerdict{Judged: true, FirstBadRow: at(8), Source: at(engine.Probe("blocks.7.resid_post")), FirstBadPosition: at(3), File: "dumps/paris.layers.bin"}
	r.Cases["rome"] = conformance.CaseVerdict{Reason: "layer dump rome.layers.bin: 12 of 7424 bytes", File: "rome.layers.bin"}
	r.Checks = append(r.Checks, conformance.Result{ID: "ResidualShape", Case: "rome", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Error,
		Kind: conformance.KindFormat, Reason: "layer dump rome.layers.bin: 12 of 7424 bytes after byte 0x20"})
}

func waives(r *conformance.Report) {
	w := conformance.Waiver{Check: "LocalError", Case: "paris", Reason: "the kernel of layer 7 is being replaced", Expires: "2026-06-30"}
	r.Checks[1] = failingResult("paris", 0.75, 0.25)
	r.Checks[1].Waived = &w
	r.Executed = 6
	r.Waivers = []conformance.WaiverUse{{Waiver: w, Used: 1}}
}

func compares(r *conformance.Report) {
	change := func(before, after float64) conformance.Change {
		return conformance.Change{Check: "LocalError", Case: "paris", Probe: "blocks.7.resid_post", Metric: "local error", Before: conformance.Number(before), After: conformance.Number(after),
			Limit: conformance.Limit{Value: conformance.Number(1.1 * before), Source: "the baseline's and the noise"}}
	}
	r.Conclusion = conformance.Fails
	r.Baseline = &conformance.BaselineInfo{Name: "baseline.json", Candidate: "1.1", Noise: conformance.Limit{Value: 1.01, Source: "two runs"}, NoiseBasis: "the engine says it is deterministic",
		Compared: 40, Regressions: []conformance.Change{change(0.125, 0.5)}, Improvements: []conformance.Change{change(0.5, 0.25)}}
}

// samples are reports by hand, by what they show.
func samples() map[string]*conformance.Report {
	out := map[string]*conformance.Report{}
	add := func(name string, change func(r *conformance.Report)) {
		r := base()
		change(r)
		out[name] = r
	}
	partial := func(r *conformance.Report) {
		r.Conclusion, r.Executed = conformance.Partial, 6
		r.Checks = r.Checks[:len(r.Checks)-1]
		r.NotJudged = []conformance.NotJudged{{ID: "LogitCandidate", WouldRun: "a logit dump, NAME.logits.bin"}}
	}
	add("conforms", func(*conformance.Report) {})
	add("fails", fails)
	add("partial", partial)
	add("partial-allowed", func(r *conformance.Report) { partial(r); r.PartialAllowed = true })
	add("nothing-judged", func(r *conformance.Report) {
		r.Conclusion, r.Executed, r.Golden, r.Times, r.Candidate = conformance.NothingJudged, 0, nil, nil, engine.Info{}
		r.Checks, r.Cases = r.Checks[2:3], map[string]conformance.CaseVerdict{"berlin": {Reason: "no dump"}}
	})
	add("reference-failed", func(r *conformance.Report) {
		r.Conclusion, r.ReferenceFailed = conformance.NothingJudged, true
		r.Checks[3].Status, r.Checks[3].Findings = conformance.Fail, []conformance.Finding{{Metric: "rows that differ", Got: 4, Exact: true, Limit: conformance.Limit{Source: "one engine"}, At: conformance.Nowhere}}
	})
	add("waived", waives)
	add("waiver-problem", func(r *conformance.Report) {
		r.Conclusion = conformance.Fails
		r.Waivers = []conformance.WaiverUse{{Waiver: conformance.Waiver{Check: "StopRule", Case: "*", Probe: "logits", Reason: "later", Expires: "2026-01-01"}, Problem: "it was not used"}}
	})
	add("baseline", compares)
	add("shard", func(r *conformance.Report) {
		r.Shard = &conformance.ShardInfo{Index: 1, Total: 4, Plan: "9f86d081884c7d65", Cases: 2, AllCases: 100}
	})
	return out
}

// filled has a value in every field, some of them odd.
func filled(t *testing.T) *conformance.Report {
	t.Helper()
	r := new(conformance.Report)
	fill(reflect.ValueOf(r).Elem(), new(int))
	r.SchemaVersion = conformance.SchemaVersion
	return r
}

func fill(v reflect.Value, n *int) {
	*n++
	switch t := v.Type(); {
	case t == numberType:
		v.SetFloat([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.1, 1e-7, 1e300, math.Copysign(0, -1), 3}[*n%8])
	case words[t] != nil:
		v.SetString(words[t][*n%len(words[t])])
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		fill(v.Elem(), n)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case t.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(t, 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case t.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(t))
		item := reflect.New(t.Elem()).Elem()
		fill(item, n)
		v.SetMapIndex(reflect.ValueOf("<b> \u2028 é"), item)
	case t.Kind() == reflect.String:
		v.SetString(fmt.Sprintf("text %d & <i> \"\\ \u2028\u00a0", *n))
	case t.Kind() == reflect.Int:
		v.SetInt(int64(*n))
	case t.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		panic("no value for " + t.String())
	}
}

// embedded is a report of a run on the embedded model, with a planted fault.
var embedded = sync.OnceValues(func() (*conformance.Report, error) {
	cfg, err := suite.Embedded()
	if err != nil {
		return nil, err
	}
	cfg.Cases, cfg.Reproduce = suite.ProofCases(cfg.Cases)[:2], "go test ./conformance"
	cfg.Routes, cfg.Teacher, cfg.Trace, cfg.Attention = nil, nil, nil, nil
	if cfg, err = cfg.Mutants(cfg, conformance.Control{Mutant: "layer-skipped", Side: conformance.SideCandidate, Layer: 1}); err != nil {
		return nil, err
	}
	return conformance.Evaluate(context.Background(), cfg)
})

func written(t testing.TB, r *conformance.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	return b.Bytes()
}
