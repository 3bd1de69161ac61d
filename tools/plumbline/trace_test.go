package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// moeText is tokenised by hand in moePrompt: the space before it and its d are one
// token, which crosses the boundary.
const moeText = "do a. b"

// moePrompt are the ids of moeText under a condition: an id for each byte, but for
// the one token of two.
func moePrompt(system bool, first int) []int {
	before := "User:"
	if system {
		before = "You are a helpful assistant.\n\n" + before
	}
	ids := []int{first}
	for _, part := range []string{before, "", "o a. b\n\nAssistant:"} {
		for _, b := range []byte(part) {
			ids = append(ids, int(b))
		}
		if part == "" {
			ids = append(ids, moeCross)
		}
	}
	return ids
}

// moeContent are the places of "o a. b" in it.
func moeContent(system bool) []int {
	start := 7
	if system {
		start += len("You are a helpful assistant.\n\n")
	}
	at := make([]int, len("o a. b"))
	for i := range at {
		at[i] = start + i
	}
	return at
}

// moeStarts are the ids that inputs start with, in the order of the conditions.
var moeStarts = []int{moeEOS, moeBOS, 'x', '.'}

// fakeTracer gives rows that tell where they are from, and rubbish in the padding.
type fakeTracer struct {
	dtype   string
	prompts [][]int
	pad     int
	// spoil may change a stage, or end the run.
	spoil func(n int, s *engine.Stage) error
}

func (f *fakeTracer) Describe() engine.Info {
	return engine.Info{Name: "fake", Version: "1", DType: f.dtype}
}

// fakeRow is the row of a token.
func fakeRow(stage, condition, token int) []float32 {
	row := make([]float32, moeHidden)
	for k := range row {
		row[k] = float32(stage*64+condition*8+token) + float32(k)/64
	}
	return row
}

func fakeRoute(layer, condition, token int) (ids []int, weights []float64) {
	first := (layer + condition + token) % moeExperts
	return []int{first, (first + 3) % moeExperts}, []float64{0.5, float64(token) / 128}
}

func (f *fakeTracer) TraceBatch(_ context.Context, prompts [][]int, pad int, each func(engine.Stage) error) error {
	f.prompts, f.pad = prompts, pad
	slots := 0
	for _, p := range prompts {
		slots = max(slots, len(p))
	}
	probes := []engine.Probe{engine.ProbeEmbed}
	for n := range moeLayers {
		probes = append(probes, engine.RowProbe(n+1))
	}
	for n, probe := range append(probes, engine.ProbeFinalNorm) {
		s := engine.Stage{Probe: probe, Rows: engine.Matrix{Rows: slots * len(prompts), Width: moeHidden}}
		if n == 2 || n == 3 {
			s.Routing = &engine.Routing{}
		}
		for c, p := range prompts {
			for i := range slots {
				row, ids, weights := make([]float32, moeHidden), []int{-1, -1}, []float64{math.NaN(), 0}
				row[0] = float32(math.NaN())
				if token := i - (slots - len(p)); token >= 0 {
					row = fakeRow(n, c, token)
					ids, weights = fakeRoute(n-1, c, token)
				}
				s.Rows.Data = append(s.Rows.Data, row...)
				if s.Routing != nil {
					s.Routing.IDs, s.Routing.Weights = append(s.Routing.IDs, ids), append(s.Routing.Weights, weights)
					s.Routing.Scores = append(s.Routing.Scores, make([]float64, moeExperts))
				}
			}
		}
		if f.spoil != nil {
			if err := f.spoil(n, &s); err != nil {
				return err
			}
		}
		if err := each(s); err != nil {
			return err
		}
	}
	return nil
}

// fakeTrace runs the command's inside on the fake, in a folder of its own.
func traceOfFake(ctx context.Context, t *testing.T, f *fakeTracer, flags traceFlags) (dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	model := t.TempDir()
	require.NoError(t, writeMoE(model, true))
	sources := filepath.Join(model, "texts.jsonl")
	require.NoError(t, writeFile(sources, []byte(`{"id": "one", "domain": "d", "text": "`+moeText+`"}`+"\n")))
	flags.sources, flags.output = sources, filepath.Join(dir, "trace.json")
	flags.scale, flags.attention = scaleOfficial, attentionFused
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, quiet: true, model: model, dtype: string(reference.Float32)}
	f.dtype = "float32"
	tr := &tracing{app: a, flags: flags, plan: trace.Standard(), start: func() (tracer, error) { return f, nil }}
	return dir, tr.write(ctx)
}

// Each condition's rows and routes are those of its own tokens, the padding in front
// of them left out; what is compared are the tokens within the text.
func TestTraceTakesTheTokensOfEachCondition(t *testing.T) {
	f := &fakeTracer{}
	dir, err := traceOfFake(t.Context(), t, f, traceFlags{capturedAt: "then"})
	require.NoError(t, err)
	d, err := trace.Read(filepath.Join(dir, "trace.json"))
	require.NoError(t, err)
	require.Equal(t, "then", d.CapturedAt)
	require.Equal(t, moeEOS, f.pad)
	require.Len(t, d.Traced, 1)
	s := d.Traced[0]
	require.Equal(t, "d/one", s.ID)
	require.Equal(t, 55, s.BatchTokens)
	require.Equal(t, 6, s.ContentTokens)
	require.Equal(t, []int{25, 25, 25, 25, 55, 55, 55, 55}, s.PromptTokens)
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1}, s.BoundaryCrossing)
	for c := range 8 {
		system := c >= 4
		want := moePrompt(system, moeStarts[c%4])
		require.Equal(t, want, f.prompts[c])
		scopes := [][]int{moeContent(system), make([]int, len(want))}
		for i := range want {
			scopes[1][i] = i
		}
		for scope, tokens := range scopes {
			for n := range moeLayers + 2 {
				h := trace.Hidden{DType: trace.Float32}
				for _, token := range tokens {
					h.Rows = append(h.Rows, fakeRow(n, c, token))
				}
				stats, err := trace.DescribeHidden("", h)
				require.NoError(t, err)
				require.Equal(t, stats, s.Stages[n].Conditions[c][scope])
			}
			for g, layer := range []int{1, 2} {
				r := trace.Routes{DType: trace.Float32}
				for _, token := range tokens {
					ids, weights := fakeRoute(layer, c, token)
					r.IDs, r.Weights = append(r.IDs, ids), append(r.Weights, []float32{float32(weights[0]), float32(weights[1])})
				}
				stats, err := trace.DescribeRoutes("", r, moeExperts)
				require.NoError(t, err)
				require.Equal(t, stats, s.Gates[g].Conditions[c][scope])
			}
		}
	}
}

// Nothing is left of a trace that didn't come to its end, wherever that was.
func TestABrokenTraceLeavesNothing(t *testing.T) {
	for name, spoil := range map[string]func(cancel func(), n int, s *engine.Stage) error{
		"interrupted": func(cancel func(), n int, _ *engine.Stage) error {
			if n == 2 {
				cancel()
				return context.Canceled
			}
			return nil
		},
		"a NaN": func(_ func(), n int, s *engine.Stage) error {
			if n == 3 {
				s.Rows.Data[len(s.Rows.Data)-1] = float32(math.NaN())
			}
			return nil
		},
		"an expert that isn't there": func(_ func(), n int, s *engine.Stage) error {
			if n == 3 {
				s.Routing.IDs[len(s.Routing.IDs)-1][0] = moeExperts
			}
			return nil
		},
		"a stage short": func(_ func(), n int, s *engine.Stage) error {
			if n == 4 {
				s.Rows.Rows--
			}
			return nil
		},
		"a stage of another name": func(_ func(), n int, s *engine.Stage) error {
			if n == 1 {
				s.Probe = "logits"
			}
			return nil
		},
		"no routes": func(_ func(), n int, s *engine.Stage) error {
			if n == 2 {
				s.Routing = nil
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			report := filepath.Join(t.TempDir(), "report")
			f := &fakeTracer{}
			f.spoil = func(n int, s *engine.Stage) error { return spoil(cancel, n, s) }
			dir, err := traceOfFake(ctx, t, f, traceFlags{report: report, against: againstNone})
			require.Error(t, err)
			require.ErrorContains(t, err, "nothing written")
			if name == "interrupted" {
				require.ErrorIs(t, err, context.Canceled)
			}
			require.Empty(t, names(t, dir))
			require.Empty(t, names(t, filepath.Dir(report)))
		})
	}
}

// moeFolder is the model, with texts and the same texts tokenised by hand beside it.
func moeFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, writeMoE(filepath.Join(dir, "model"), true))
	require.NoError(t, writeMoE(filepath.Join(dir, "bare"), false))
	require.NoError(t, writeFile(filepath.Join(dir, "texts.jsonl"), []byte(`{"id": "one", "domain": "d", "text": "`+moeText+`"}`+"\n")))
	variants := map[string]any{}
	for c, condition := range trace.Standard().Conditions {
		ids := moePrompt(condition.System, moeStarts[c%4])
		variants[condition.Name] = map[string]any{"token_ids": ids, "tokens": len(ids), "content_positions": moeContent(condition.System), "boundary_crossing_tokens": 1}
	}
	row, err := json.Marshal(map[string]any{"id": "d/one", "domain": "d", "text": moeText, "variants": variants})
	require.NoError(t, err)
	require.NoError(t, writeFile(filepath.Join(dir, "ids.jsonl"), append(row, '\n')))
	return dir
}

// runTrace runs the command; args are put behind the files.
func runTrace(t *testing.T, dir, model, sources, output string, args ...string) traceResult {
	t.Helper()
	var out, stderr bytes.Buffer
	args = append([]string{"trace", "--model", filepath.Join(dir, model), "--sources", filepath.Join(dir, sources), "--output", filepath.Join(dir, output), "--captured-at", "then", "--quiet"}, args...)
	require.Equal(t, exitDone, run(args, &out, &stderr), stderr.String())
	require.Empty(t, stderr.String())
	var r traceResult
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	return r
}

func readTrace(t *testing.T, dir, name string) *trace.Document {
	t.Helper()
	d, err := trace.Read(filepath.Join(dir, name))
	require.NoError(t, err)
	return d
}

// A text and its ids give the same document, the latter without a tokenizer.
func TestTraceOfTextAndOfIDs(t *testing.T) {
	dir := moeFolder(t)
	r := runTrace(t, dir, "model", "texts.jsonl", "text.json")
	runTrace(t, dir, "model", "ids.jsonl", "ids.json")
	runTrace(t, dir, "bare", "ids.jsonl", "bare.json")
	text, bare := readTrace(t, dir, "text.json"), readTrace(t, dir, "bare.json")
	require.Zero(t, trace.Compare(text, readTrace(t, dir, "ids.json")).Different)
	for _, d := range trace.Compare(text, bare).Differences {
		require.Regexp(t, `^(model|tokenizer_contract)\.`, d.Path)
	}
	require.Equal(t, trace.TokenizerContract{Length: 259, VocabSize: 257, SpecialIDs: []int{moeBOS, moeEOS}, Pad: text.Tokenizer.Pad, Conditions: trace.Standard().Conditions}, text.Tokenizer)
	require.Equal(t, trace.TokenizerContract{Length: moeVocab, VocabSize: moeVocab, SpecialIDs: []int{}, Pad: bare.Tokenizer.Pad, Conditions: trace.Standard().Conditions}, bare.Tokenizer)
	require.Equal(t, moeEOS, *text.Tokenizer.Pad)
	require.Equal(t, moeEOS, *bare.Tokenizer.Pad)

	// What is printed is what was written.
	data, err := os.ReadFile(filepath.Join(dir, "text.json"))
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	require.Equal(t, traceResult{Output: filepath.Join(dir, "text.json"), SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data)), Sources: 1,
		Layers: 3, Gates: 2, Decisions: 6 * 8 * 2 * 2, LoadSeconds: text.Execution.LoadSeconds, ForwardSeconds: text.Execution.ForwardSeconds}, r)

	// And holds by itself.
	shape := trace.Shape{Layers: moeLayers, Gates: []int{1, 2}, Hidden: moeHidden, Experts: moeExperts, TopK: moeTopK}
	problems, _ := trace.CheckShape(text, trace.Standard(), shape)
	require.Empty(t, problems)
	problems, looked := trace.CheckStatistics(text, trace.Rounding{})
	require.Empty(t, problems)
	require.Positive(t, looked)
	require.True(t, text.Trace.HashesExact)
	require.Equal(t, "torch.bfloat16", text.Traced[0].Stages[0].Conditions[0][0].DType)
}

// The contracts name every file, and the arithmetic with its softmax scale.
func TestTraceSaysWhatRan(t *testing.T) {
	dir := moeFolder(t)
	runTrace(t, dir, "model", "texts.jsonl", "a.json")
	d := readTrace(t, dir, "a.json")
	var files []string
	for _, f := range d.Model.Files {
		files = append(files, f.Name)
		data, err := os.ReadFile(filepath.Join(dir, "model", f.Name))
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, trace.FileIdentity{Name: f.Name, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}, f)
	}
	require.Equal(t, []string{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}, files)
	require.Equal(t, "DeepseekV2ForCausalLM", d.Model.Architecture)
	require.Equal(t, "model", d.Model.Repo)
	require.Equal(t, "bfloat16 (emulated)", d.Model.DType)
	require.Contains(t, d.Execution.Platform, ", softmax scale 1/sqrt(d)*mscale², 1.58963, activations bfloat16, float32 inside attention")
	require.Positive(t, d.Execution.MaxRSSKiB)
	require.NotContains(t, strings.Join(d.ClaimBoundary, " "), "mscale²")

	runTrace(t, dir, "model", "texts.jsonl", "b.json", "--scale", "transformers", "--attention", "eager")
	other := readTrace(t, dir, "b.json")
	require.Contains(t, other.Execution.Platform, ", softmax scale transformers' 1/sqrt(d), without mscale²")
	require.NotContains(t, other.Execution.Platform, "inside attention")
	require.Contains(t, strings.Join(other.ClaimBoundary, " "), "without mscale²")
	require.NotEqual(t, d.Traced[0].Stages[4].Conditions[0][1].SHA256, other.Traced[0].Stages[4].Conditions[0][1].SHA256)

	runTrace(t, dir, "model", "texts.jsonl", "c.json", "--dtype", "float64")
	other = readTrace(t, dir, "c.json")
	require.Equal(t, "float64", other.Model.DType)
	require.Equal(t, "torch.float32", other.Traced[0].Stages[0].Conditions[0][0].DType)
	require.False(t, other.Trace.HashesExact)
}

func TestRepositoryOfACacheFolder(t *testing.T) {
	repo, revision, cached := hubRepository("/hub/models--deepseek-ai--DeepSeek-V2-Lite-Chat/snapshots/85864749cd61")
	require.Equal(t, "deepseek-ai/DeepSeek-V2-Lite-Chat", repo)
	require.Equal(t, "85864749cd61", revision)
	require.True(t, cached)
	repo, _, cached = hubRepository("/models/mine")
	require.Equal(t, "mine", repo)
	require.False(t, cached)
}

// The report's counts are those of a run of one's own: how many rows have other
// experts in float32, with the experts of bfloat16 forced.
func TestTraceReport(t *testing.T) {
	dir := moeFolder(t)
	r := runTrace(t, dir, "model", "ids.jsonl", "a.json", "--report", filepath.Join(dir, "report"))
	require.Equal(t, []string{"flips.svg", "route-margins.svg", "trace.md"}, names(t, filepath.Join(dir, "report")))

	ckpt, err := reference.Load(filepath.Join(dir, "model"))
	require.NoError(t, err)
	judged, err := reference.New(ckpt, reference.WithDType(reference.BFloat16), reference.WithFusedAttention())
	require.NoError(t, err)
	single, err := reference.New(ckpt)
	require.NoError(t, err)
	prompts, longest := make([][]int, 8), 0
	for i := range prompts {
		prompts[i] = moePrompt(i >= 4, moeStarts[i%4])
		longest = max(longest, len(prompts[i]))
	}
	others, rows := 0, 0
	for c, prompt := range prompts { // the routes of one at a time
		n := len(prompt)
		first := (c+1)*longest - n
		routes := make([]engine.Routes, 8)
		routes[c] = engine.Routes{}
		layers := map[engine.Probe]int{engine.RowProbe(2): 1, engine.RowProbe(3): 2}
		require.NoError(t, judged.TraceBatch(t.Context(), prompts, moeEOS, func(s engine.Stage) error {
			if s.Routing != nil {
				routes[c][layers[s.Probe]] = engine.LayerRoutes{IDs: s.Routing.IDs[first : first+n]}
			}
			return nil
		}))
		forced, err := single.Forced(routes...)
		require.NoError(t, err)
		require.NoError(t, forced.TraceBatch(t.Context(), prompts, moeEOS, func(s engine.Stage) error {
			if s.Routing != nil {
				for i := range n {
					rows++
					if !sameBest(s.Routing.Scores[first+i], routes[c][layers[s.Probe]].IDs[i]) {
						others++
					}
				}
			}
			return nil
		}))
	}
	require.Equal(t, rows, r.Routes.Rows)
	require.Equal(t, others, *r.Routes.Tie+*r.Routes.Flip)
	require.Equal(t, rows, *r.Routes.Match+*r.Routes.Tie+*r.Routes.Flip)
	require.Positive(t, others)

	page, err := os.ReadFile(filepath.Join(dir, "report", "trace.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), fmt.Sprintf("Experts of bfloat16 (emulated) and of float32: the same in %d of %d rows", rows-others, rows))
}

// sameBest reports whether ids are the best scores.
func sameBest(scores []float64, ids []int) bool {
	for i, x := range scores {
		better := 0
		for k, y := range scores {
			if y > x || y == x && k < i {
				better++
			}
		}
		chosen := false
		for _, id := range ids {
			chosen = chosen || id == i
		}
		if chosen != (better < len(ids)) {
			return false
		}
	}
	return true
}

// Margins alone need no second run.
func TestTraceReportOfOneRun(t *testing.T) {
	dir := moeFolder(t)
	r := runTrace(t, dir, "model", "ids.jsonl", "a.json", "--report", filepath.Join(dir, "report"), "--against", "none")
	require.Equal(t, []string{"route-margins.svg", "trace.md"}, names(t, filepath.Join(dir, "report")))
	require.Equal(t, routeResult{Judged: "bfloat16 (emulated)", Rows: 2 * 4 * (25 + 55)}, *r.Routes)
	r = runTrace(t, dir, "model", "ids.jsonl", "b.json", "--report", filepath.Join(dir, "b"), "--dtype", "float32")
	require.Equal(t, "float64", r.Routes.Reference)
	r = runTrace(t, dir, "model", "ids.jsonl", "c.json", "--report", filepath.Join(dir, "c"), "--dtype", "float64")
	require.Empty(t, r.Routes.Reference)
}

// All of the embedded model's 27 layers and 26 gates; ids alone, since it has no
// tokenizer. Some of its experts tie to the last bit, on purpose.
func TestTraceOfTheEmbeddedModel(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "model"), fixtures.DeepSeek2Model()))
	require.NoError(t, writeFile(filepath.Join(dir, "ids.jsonl"), embeddedSource(t, "a")))
	r := runTrace(t, dir, "model", "ids.jsonl", "a.json", "--report", filepath.Join(dir, "report"))
	require.Equal(t, []int{27, 26, 20 * 8 * 26 * 6, 26 * 4 * (21 + 24)}, []int{r.Layers, r.Gates, int(r.Decisions), r.Routes.Rows})

	d := readTrace(t, dir, "a.json")
	shape := trace.Shape{Layers: 27, Hidden: 48, Experts: 16, TopK: 6}
	for layer := range 26 {
		shape.Gates = append(shape.Gates, layer+1)
	}
	problems, _ := trace.CheckShape(d, trace.Standard(), shape)
	require.Empty(t, problems)
	problems, _ = trace.CheckStatistics(d, trace.Rounding{})
	require.Empty(t, problems)
	page, err := os.ReadFile(filepath.Join(dir, "report", "trace.md"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^0  +[1-9][0-9]* `, string(page))
}

// embeddedSource is a row of sources in ids of the embedded model's vocabulary.
func embeddedSource(t testing.TB, id string) []byte {
	t.Helper()
	variants := map[string]any{}
	for c, condition := range trace.Standard().Conditions {
		ids := []int{2 + c%4}
		if condition.System {
			ids = append(ids, 100, 101, 102)
		}
		start := len(ids)
		var content []int
		for i := range 20 {
			content = append(content, start+i)
			ids = append(ids, 11+i*i%500)
		}
		variants[condition.Name] = map[string]any{"token_ids": ids, "content_positions": content, "boundary_crossing_tokens": 0}
	}
	row, err := json.Marshal(map[string]any{"id": id, "domain": "d", "text": "squares", "variants": variants})
	require.NoError(t, err)
	return append(row, '\n')
}
