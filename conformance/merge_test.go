package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// bytesOf is the report's JSON without its times.
func bytesOf(t testing.TB, rep *conformance.Report) string {
	t.Helper()
	r := *rep
	r.Times = nil
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	return b.String()
}

// shardsOf runs all shards of cfg at once, and reads their reports back as files hold
// them.
func shardsOf(t testing.TB, cfg conformance.Config, total int) []conformance.ShardReport {
	t.Helper()
	out := make([]conformance.ShardReport, total)
	errs := make([]error, total)
	var wg sync.WaitGroup
	for i := range total {
		wg.Go(func() {
			c := cfg
			c.Shard = &conformance.Shard{Index: i, Total: total}
			rep, err := conformance.Evaluate(t.Context(), c)
			if err != nil {
				errs[i] = err
				return
			}
			var text, evidence bytes.Buffer
			errs[i] = errors.Join(rep.WriteJSON(&text), rep.WriteEvidence(&evidence))
			back := &conformance.Report{}
			errs[i] = errors.Join(errs[i], json.Unmarshal(text.Bytes(), back))
			out[i] = conformance.ShardReport{Name: fmt.Sprintf("shard %d", i), Report: back, Evidence: evidence.Bytes()}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return out
}

// assertMergesToWhole holds merged shards to the run of all cases, byte for byte.
func assertMergesToWhole(t *testing.T, cfg conformance.Config, totals ...int) *conformance.Report {
	t.Helper()
	whole, err := conformance.Evaluate(t.Context(), cfg)
	require.NoError(t, err)
	want := bytesOf(t, whole)
	for _, total := range totals {
		merged, err := conformance.Merge(shardsOf(t, cfg, total), conformance.MergeOptions{Registry: cfg.Registry, Now: cfg.Now})
		require.NoError(t, err, "%d shards", total)
		if line := firstDifference(want, bytesOf(t, merged)); line != "" {
			t.Fatalf("%d shards: %s", total, line)
		}
		if whole.Times != nil { // else nothing was run
			assert.Len(t, merged.Times.Cases, len(whole.Times.Cases), "%d shards", total)
		}
	}
	return whole
}

// firstDifference is the first line in which two texts differ, empty where none does.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) {
			return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
		}
		if w[i] != g[i] {
			return fmt.Sprintf("line %d: got %s, want %s", i+1, g[i], w[i])
		}
	}
	return ""
}

// seededFew are cases of the seeded model that sweeps can afford, more than medians
// need.
func seededFew(t testing.TB, n int) conformance.Config {
	t.Helper()
	full, err := seeded()
	require.NoError(t, err)
	cfg := conformance.WithMemory(full)
	cfg.ReferenceCases = 4
	cfg.Cases = nil
	for _, c := range full.Cases {
		if len(c.TokenIDs) <= 40 && len(cfg.Cases) < n {
			cfg.Cases = append(cfg.Cases, c)
		}
	}
	require.Len(t, cfg.Cases, n)
	return cfg
}

func TestMergedShardsAreTheWholeRun(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 6)
	whole := assertMergesToWhole(t, cfg, 1, 2, 4, 7)
	assert.Equal(t, conformance.Conforms, whole.Conclusion, "%v", whole.Failures())
}

// TestMergedShardsOfFaultyEngines: what a run makes of all cases together (medians, the
// row that most share, layers that behave like others, votes on the head, rows of
// another case) is the same when no process saw them all.
func TestMergedShardsOfFaultyEngines(t *testing.T) {
	sweep(t)
	cfg := seededFew(t, 7)
	layers := cfg.Reference.Weights().Arch().Layers
	for _, f := range []struct {
		mutant string
		layer  int
		says   string // in the notes, or the kind
	}{
		{"layer-skipped", layers / 2, "layer"},
		{"rope-base", -1, "all layers"},
		{"layers-swapped", 9, "layers in the wrong order"},
		{"final-norm-ones", -1, "head"},
		{"wrong-head", -1, "head"},
		{"another-prompt", -1, "input"},
		{"rows-swapped", 5, "dump"},
		{"row-short", -1, ""},
		{"early-divergence", -1, "head"},
		{"all-nan", -1, ""},
		{"answers-nothing", -1, ""},
		{"no-cases", -1, ""},
	} {
		t.Run(f.mutant, func(t *testing.T) {
			planted, err := cfg.Mutants(cfg, conformance.Control{Mutant: f.mutant, Side: conformance.SideCandidate, Layer: f.layer})
			require.NoError(t, err)
			whole := assertMergesToWhole(t, planted, 2, 4)
			assert.NotEqual(t, conformance.Conforms, whole.Conclusion)
			assert.Contains(t, fmt.Sprint(whole.Notes, kindOfReport(whole)), f.says)
		})
	}
}

func kindOfReport(r *conformance.Report) conformance.Kind {
	if r.Kind == nil {
		return ""
	}
	return *r.Kind
}

// inPlaceOf answers some cases otherwise than the candidate behind it.
type inPlaceOf struct {
	engine.Candidate
	run func(ctx context.Context, req engine.Request) (*engine.Response, error)
}

func (c inPlaceOf) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	return c.run(ctx, req)
}

// relabelled are rows under another prompt's fingerprint.
type relabelled struct {
	engine.RowSource
	text string
}

func (r relabelled) Header() engine.CaptureHeader {
	h := r.RowSource.Header()
	h.Fingerprint = dumpfmt.Fingerprint(r.text)
	return h
}

// rowsOf answers one case with the rows of another, as if they were its own.
func rowsOf(cfg conformance.Config, victim, donor engine.Case) engine.Candidate {
	return inPlaceOf{cfg.Candidate, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		if req.Case.Name != victim.Name {
			return cfg.Candidate.Run(ctx, req)
		}
		req.Case = donor
		resp, err := cfg.Candidate.Run(ctx, req)
		if err == nil {
			resp.Layers, resp.Logits, resp.OutputIDs, resp.PromptIDs, resp.Probes = relabelled{resp.Layers, victim.Text}, nil, nil, nil, nil
		}
		return resp, err
	}}
}

func TestMergeFindsAnothersRowsAcrossShards(t *testing.T) {
	sweep(t)
	cfg := seededFew(t, 6)
	for _, donor := range []int{1, 5} {
		planted := cfg
		planted.Candidate = rowsOf(cfg, cfg.Cases[0], cfg.Cases[donor])
		whole := assertMergesToWhole(t, planted, 2, 6)
		assert.Contains(t, fmt.Sprint(whole.Notes), "the rows are those of case "+cfg.Cases[donor].Name)
		for _, s := range shardsOf(t, planted, 6) {
			assert.NotContains(t, fmt.Sprint(s.Report.Notes), "the rows are those", "a shard by itself doesn't have the other case: the merge has shown it")
		}
	}
}

// TestMergeOfAFaultInSomeCases: the case that is asked which layer it behaves like is not
// the first, and not in the first shard; with places at all positions, and from last
// rows alone.
func TestMergeOfAFaultInSomeCases(t *testing.T) {
	sweep(t)
	cfg := seededFew(t, 7)
	sound := cfg.Candidate
	swapped, err := cfg.Mutants(cfg, conformance.Control{Mutant: "layers-swapped", Side: conformance.SideCandidate, Layer: 9})
	require.NoError(t, err)
	for _, lastRows := range []bool{false, true} {
		for _, faulty := range [][]int{{6}, {4, 5}, {2, 3, 4, 5, 6}} {
			cfg.Candidate = inPlaceOf{sound, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
				from := sound
				if i := slices.IndexFunc(cfg.Cases, func(c engine.Case) bool { return c.Name == req.Case.Name }); slices.Contains(faulty, i) {
					from = swapped.Candidate
				}
				resp, err := from.Run(ctx, req)
				if err == nil && lastRows {
					resp.Probes = nil
				}
				return resp, err
			}}
			whole := assertMergesToWhole(t, cfg, 2, 5)
			assert.Equal(t, conformance.Fails, whole.Conclusion)
			assert.Contains(t, fmt.Sprint(whole.Notes), "behaves like layer 10, not like layer 9", "%v, last rows %v", faulty, lastRows)
		}
	}
}

// TestMergeKeepsErrorsApart: a broken file, and a case that isn't offered.
func TestMergeKeepsErrorsApart(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 5)
	sound := cfg.Candidate
	cfg.Candidate = inPlaceOf{sound, func(ctx context.Context, req engine.Request) (*engine.Response, error) {
		switch req.Case.Name {
		case cfg.Cases[1].Name:
			return nil, &engine.MalformedError{File: "x.layers.bin", Err: errors.New("offset 16: got \xff, want <b>")}
		case cfg.Cases[3].Name:
			return nil, &engine.UnsupportedError{What: "the case", Why: "too long"}
		}
		return sound.Run(ctx, req)
	}}
	whole := assertMergesToWhole(t, cfg, 3)
	assert.Equal(t, "x.layers.bin", whole.Cases[cfg.Cases[1].Name].File)
	assert.Equal(t, conformance.Unsupported, resultOf(t, whole, "ResidualShape", cfg.Cases[3].Name).Status)
}

// TestPrefixesStayTogether: dumps of a prompt's prefixes are put together, in whatever
// shard that is.
func TestPrefixesStayTogether(t *testing.T) {
	sweep(t)
	cfg := probing(t, seeded, "arithmetic")
	others := seededFew(t, 3).Cases
	others = slices.DeleteFunc(others, func(c engine.Case) bool { return c.Name == "arithmetic" })
	cfg.Cases, cfg.Probes = append(prefixesOf(cfg.Cases[0]), others...), nil
	for _, w := range []engine.Weights{cfg.Reference.Weights(), faultyWeights(t, cfg.Reference.Weights(), "gate-up-swapped", 6)} {
		cfg.Candidate = inScheme(scaled)(w)
		assertMergesToWhole(t, cfg, 3)
	}
	shards := shardsOf(t, cfg, 3)
	with := 0
	for _, s := range shards {
		for name := range s.Report.Cases {
			if name == "prefix_01" {
				with = s.Report.Shard.Cases
			}
		}
	}
	assert.GreaterOrEqual(t, with, len(cfg.Cases)-len(others))
}

// ownCases is a candidate that brings its cases and told tokens, as a dump folder does.
type ownCases struct {
	engine.Candidate
	cases  []engine.Case
	output map[string]int // how many tokens each case has
}

func (c ownCases) Cases(context.Context) ([]engine.Case, error) { return c.cases, nil }

func (c ownCases) Run(_ context.Context, req engine.Request) (*engine.Response, error) {
	return &engine.Response{PromptIDs: req.Case.TokenIDs, OutputIDs: slices.Repeat([]int{7}, c.output[req.Case.Name])}, nil
}

// TestMergeKnowsTheLongestOutput: where a candidate chose its own budget, it is as many
// tokens as its longest output has, in whatever shard that is.
func TestMergeKnowsTheLongestOutput(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 4)
	own := ownCases{Candidate: cfg.Candidate, output: map[string]int{}}
	for i, c := range cfg.Cases {
		c.Stop = []int{3}
		own.cases, own.output[c.Name] = append(own.cases, c), i+1
	}
	cfg.Candidate, cfg.Cases, cfg.Only = own, nil, []string{"StopRule", "PromptTokens"}
	whole := assertMergesToWhole(t, cfg, 4)
	var short int
	for _, r := range whole.Checks {
		if r.ID == "StopRule" && r.Side == conformance.SideCandidate && r.Case != own.cases[3].Name {
			assert.Contains(t, r.Reason, "before the longest one of the run")
			short++
		}
	}
	assert.Equal(t, 3, short)
	for _, s := range shardsOf(t, cfg, 4) {
		assert.NotContains(t, fmt.Sprint(s.Report.Checks), "before the longest one of the run", "by itself each is the longest: the merge has shown it")
	}
}

// TestMergeOfACandidateThatCantBeAsked: each shard says all there is.
func TestMergeOfACandidateThatCantBeAsked(t *testing.T) {
	onlyOnEmbedded(t)
	cfg := seededFew(t, 3)
	cfg.Candidate = unreadable{}
	whole := assertMergesToWhole(t, cfg, 2)
	assert.Equal(t, conformance.Fails, whole.Conclusion)
}

type unreadable struct{ engine.Candidate }

func (unreadable) Info(context.Context) (engine.Info, error) {
	return engine.Info{}, &engine.MalformedError{File: "engine.json", Err: errors.New("no JSON")}
}
