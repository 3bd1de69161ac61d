package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// recordTensors writes the folder of a run in bfloat16: two conditions, full input.
func recordTensors(t *testing.T, dir, model string) {
	t.Helper()
	ckpt, err := reference.Load(model)
	require.NoError(t, err)
	e, err := reference.New(ckpt, reference.WithDType(reference.BFloat16), reference.WithFusedAttention())
	require.NoError(t, err)
	recordRun(t, dir, e, moePrompts(), moeLayers, moeEOS, map[string]int{"s0_bos": 1, "s1_x": 6})
}

func moePrompts() [][]int {
	prompts := make([][]int, 8)
	for i := range prompts {
		prompts[i] = moePrompt(i >= 4, moeStarts[i%4])
	}
	return prompts
}

// recordRun writes the folder of an engine's run, of those conditions.
func recordRun(t *testing.T, dir string, e *reference.Engine, prompts [][]int, layers, pad int, conditions map[string]int) {
	t.Helper()
	longest := 0
	for _, p := range prompts {
		longest = max(longest, len(p))
	}
	require.NoError(t, os.MkdirAll(dir, 0o777))
	var index []map[string]any
	put := func(kind, place, condition, dtype string, rows, width int, data []byte) {
		name := fmt.Sprintf("%s_%s_%s_full_input.bin", kind, place, condition)
		require.NoError(t, writeFile(filepath.Join(dir, name), data))
		sum := sha256.Sum256(append([]byte(fmt.Sprintf("{\"shape\":[%d,%d],\"dtype\":\"%s\"}\x00", rows, width, dtype)), data...))
		index = append(index, map[string]any{"file": name, "shape": []int{rows, width}, "dtype": dtype, "tensor_sha256": hex.EncodeToString(sum[:])})
	}
	stage := 0
	require.NoError(t, e.TraceBatch(t.Context(), prompts, pad, func(s engine.Stage) error {
		place := trace.Shape{Layers: layers}.StageName(stage)
		stage++
		for condition, c := range conditions {
			var hidden, ids, weights []byte
			n := len(prompts[c])
			for i := (c+1)*longest - n; i < (c+1)*longest; i++ {
				for _, x := range s.Rows.Row(i) {
					hidden = binary.LittleEndian.AppendUint16(hidden, uint16(math.Float32bits(x)>>16))
				}
				if s.Routing != nil {
					for k, id := range s.Routing.IDs[i] {
						ids = binary.LittleEndian.AppendUint64(ids, uint64(id))
						weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(float32(s.Routing.Weights[i][k])))
					}
				}
			}
			put("hidden", place, condition, "torch.bfloat16", n, len(s.Rows.Row(0)), hidden)
			if s.Routing != nil {
				put("route_ids", place, condition, "torch.int64", n, len(s.Routing.IDs[0]), ids)
				put("route_weights", place, condition, "torch.float32", n, len(s.Routing.IDs[0]), weights)
			}
		}
		return nil
	}))
	data, err := json.Marshal(index)
	require.NoError(t, err)
	require.NoError(t, writeFile(filepath.Join(dir, rawIndex), data))
}

// change rewrites a recorded tensor, and takes its hash out of the index.
func change(t *testing.T, dir, name string, with func([]byte)) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	with(data)
	require.NoError(t, writeFile(filepath.Join(dir, name), data))
	reindex(t, dir, func(e *rawEntry) bool {
		if e.File == name {
			e.SHA256 = nil
		}
		return true
	})
}

// reindex rewrites the index; entries that keep refuses are taken out.
func reindex(t *testing.T, dir string, keep func(*rawEntry) bool) {
	t.Helper()
	var entries, kept []rawEntry
	data, err := os.ReadFile(filepath.Join(dir, rawIndex))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &entries))
	for _, e := range entries {
		if keep(&e) {
			kept = append(kept, e)
		}
	}
	data, err = json.Marshal(kept)
	require.NoError(t, err)
	require.NoError(t, writeFile(filepath.Join(dir, rawIndex), data))
}

func runRecorded(t *testing.T, dir string, args ...string) (code int, r recordedResult, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(append([]string{"trace", "recorded", filepath.Join(dir, "raw"), "--model", filepath.Join(dir, "model"), "--sources", filepath.Join(dir, "texts.jsonl"), "--json", "--quiet"}, args...), &out, &errs)
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	}
	return code, r, errs.String()
}

func recordedFolder(t *testing.T) string {
	t.Helper()
	dir := moeFolder(t)
	recordTensors(t, filepath.Join(dir, "raw"), filepath.Join(dir, "model"))
	return dir
}

func TestRecordedTensorsOfTheEmulationConform(t *testing.T) {
	dir := recordedFolder(t)
	runTrace(t, dir, "model", "texts.jsonl", "trace.json")
	code, r, stderr := runRecorded(t, dir, "--document", filepath.Join(dir, "trace.json"))
	require.Equal(t, exitDone, code, stderr)
	require.Equal(t, "conforms", r.Conclusion)
	require.Equal(t, 2*(5+2+2), r.Tensors)
	require.Equal(t, r.Tensors, r.Hashed)
	require.Equal(t, []string{"s0_bos", "s1_x"}, r.Conditions)
	require.Equal(t, 2*(25+55), r.Match)
	require.Zero(t, r.Tie+r.Flip)
	require.Empty(t, r.Missing)
	require.Len(t, r.Stages, 5)
	require.Len(t, r.Weights, 2)
	for _, s := range append(r.Stages[1:], r.Weights...) {
		require.Equal(t, 80, s.Rows)
		require.LessOrEqual(t, float64(s.Ratio), 1., s.Name) // the emulation's error itself
		require.LessOrEqual(t, float64(s.Worst), 1., s.Name)
		require.Positive(t, float64(s.Error), s.Name)
		require.Less(t, float64(s.Apart), 1e-6, s.Name)
	}
	require.Positive(t, r.Document)
	require.Empty(t, r.Problems)

	// As text.
	var out, errs bytes.Buffer
	require.Equal(t, exitDone, run([]string{"trace", "recorded", filepath.Join(dir, "raw"), "--model", filepath.Join(dir, "model"), "--sources", filepath.Join(dir, "texts.jsonl"), "--source", "d/one", "--quiet"}, &out, &errs))
	for _, want := range []string{"d/one: 18 tensors, 18 of them with a hash, which held\n", "hidden rows of s0_bos, s1_x, ", "final_norm ", "the same in 160 of 160 rows", "conclusion: conforms\n"} {
		require.Contains(t, out.String(), want)
	}
}

// Each fault is named with its place, and nothing else is.
func TestFaultsInRecordedTensorsAreNamed(t *testing.T) {
	scale := func(by float32) func([]byte) {
		return func(b []byte) {
			for i := 0; i < len(b); i += 2 {
				x := math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[i:]))<<16) * by
				binary.LittleEndian.PutUint16(b[i:], uint16(math.Float32bits(x)>>16))
			}
		}
	}
	for name, tt := range map[string]struct {
		spoil func(dir string)
		says  string
	}{
		"a scaled stage": {func(dir string) { change(t, dir, "hidden_layer_01_s1_x_full_input.bin", scale(1.2)) },
			`^layer_01: hidden rows: [0-9.]+ times the error of bfloat16 \(emulated\) from float32, want at most 2; worst is s1_x, token `},
		"weights that weren't normalised": {func(dir string) {
			change(t, dir, "route_weights_layer_02_s0_bos_full_input.bin", func(b []byte) {
				for i := 0; i < len(b); i += 4 {
					binary.LittleEndian.PutUint32(b[i:], math.Float32bits(1.5*math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))))
				}
			})
		}, `^layer_02: weights of experts: `},
		"a NaN": {func(dir string) {
			change(t, dir, "hidden_final_norm_s0_bos_full_input.bin", func(b []byte) { b[0], b[1] = 0xC0, 0x7F })
		}, `^final_norm: hidden rows: NaN times`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := recordedFolder(t)
			tt.spoil(filepath.Join(dir, "raw"))
			code, r, stderr := runRecorded(t, dir)
			require.Equal(t, exitFails, code, stderr)
			require.Equal(t, "fails", r.Conclusion)
			require.Len(t, r.Failures, 1)
			require.Regexp(t, tt.says, r.Failures[0])
		})
	}
}

// One bad row of 125 lies beyond the 99th percentile, at most a fifth into it. The
// emulation is off by 0.3, its worst row by 0.4, so 0.9 is three times 0.3.
func TestTheWorstRowHasItsOwnBound(t *testing.T) {
	judge := func(bad float64) *recordedResult {
		s, a := recordedStage{Name: "layer_26"}, apart{}
		for i := range 125 {
			recorded, emulated := 0.7, 0.7
			switch i {
			case 17: // as bad in the emulation
				recorded, emulated = 0.6, 0.6
			case 99:
				recorded = bad
			}
			a.add(&s, recordedRow{"s1_eos", i}, []float64{recorded}, []float64{emulated}, []float64{1})
		}
		a.finish(&s, 0)
		r := &recordedResult{Conditions: []string{"s1_eos"}, Stages: []recordedStage{s}, Emulation: "bfloat16", Reference: "float32"}
		r.conclude()
		require.False(t, float64(s.Ratio) > 2) // nor is a NaN's
		return r
	}
	require.Empty(t, judge(0.7).Failures)
	require.Empty(t, judge(0.5).Failures)
	require.Equal(t, []string{"layer_26: hidden rows: 1 row of zeros, the first s1_eos, token 99"}, judge(0).Failures)
	require.Equal(t, []string{"layer_26: hidden rows: s1_eos, token 99: 3 times the error of bfloat16 from float32 in that row or at the 99th percentile, want at most 2"}, judge(1.9).Failures)
	require.Contains(t, judge(math.NaN()).Failures[0], "token 99")
}

// Whatever the arithmetic is off by, zeros are a fault.
func TestOneBadRecordedRowIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		file      string
		row, rows int
		says      string
	}{
		"a zero row": {"hidden_layer_01_s1_x_full_input.bin", 37, 55,
			`^layer_01: hidden rows: 1 row of zeros, the first s1_x, token 37$`},
		"zero weights": {"route_weights_layer_02_s0_bos_full_input.bin", 24, 25,
			`^layer_02: weights of experts: 1 row of zeros, the first s0_bos, token 24$`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := recordedFolder(t)
			change(t, filepath.Join(dir, "raw"), tt.file, func(b []byte) {
				width := len(b) / tt.rows
				clear(b[tt.row*width:][:width])
			})
			code, r, stderr := runRecorded(t, dir)
			require.Equal(t, exitFails, code, stderr)
			require.Len(t, r.Failures, 1)
			require.Regexp(t, tt.says, r.Failures[0])
		})
	}
}

// What a condition of the folder lacks is listed, and no success.
func TestStagesMissing(t *testing.T) {
	all := []string{"s0_bos", "s1_x"}
	for name, tt := range map[string]struct {
		keep       func(file string) bool
		conclusion string
		missing    []recordedGap
	}{
		"a stage of one condition": {func(f string) bool { return f != "hidden_layer_01_s1_x_full_input.bin" }, "partial",
			[]recordedGap{{"layer_01", "hidden rows", []string{"s1_x"}}}},
		"a stage": {func(f string) bool { return f[:min(len(f), 15)] != "hidden_layer_00" }, "partial",
			[]recordedGap{{"layer_00", "hidden rows", all}}},
		"routes of a gate": {func(f string) bool {
			return f != "route_ids_layer_02_s0_bos_full_input.bin" && f != "route_weights_layer_02_s0_bos_full_input.bin"
		}, "partial", []recordedGap{{"layer_02", "routes", []string{"s0_bos"}}}},
		"all hidden rows": {func(f string) bool { return f[:6] != "hidden" }, "nothing judged", []recordedGap{
			{"embedding", "hidden rows", all}, {"layer_00", "hidden rows", all}, {"layer_01", "hidden rows", all}, {"layer_02", "hidden rows", all}, {"final_norm", "hidden rows", all}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := recordedFolder(t)
			reindex(t, filepath.Join(dir, "raw"), func(e *rawEntry) bool { return tt.keep(e.File) })
			code, r, stderr := runRecorded(t, dir)
			require.Equal(t, exitNotJudged, code, stderr)
			require.Equal(t, tt.conclusion, r.Conclusion)
			require.Equal(t, tt.missing, r.Missing)
			require.Empty(t, r.Failures)
		})
	}
}

// The last token of the last gate got the expert that scores worst: nothing behind
// it is off, so one row is a FLIP.
func TestAnotherExpertIsAFlip(t *testing.T) {
	dir := recordedFolder(t)
	ckpt, err := reference.Load(filepath.Join(dir, "model"))
	require.NoError(t, err)
	e, err := reference.New(ckpt, reference.WithDType(reference.BFloat16), reference.WithFusedAttention())
	require.NoError(t, err)
	worst := 0
	require.NoError(t, e.TraceBatch(t.Context(), [][]int{moePrompt(false, moeBOS)}, moeEOS, func(s engine.Stage) error {
		if s.Routing != nil {
			last := s.Routing.Scores[len(s.Routing.Scores)-1]
			worst = slices.Index(last, slices.Min(last))
		}
		return nil
	}))
	change(t, filepath.Join(dir, "raw"), "route_ids_layer_02_s0_bos_full_input.bin", func(b []byte) {
		binary.LittleEndian.PutUint64(b[len(b)-8*moeTopK:], uint64(worst))
	})
	code, r, stderr := runRecorded(t, dir)
	require.Equal(t, exitFails, code, stderr)
	require.Equal(t, 1, r.Flip)
	require.Equal(t, 159, r.Match)
	require.Contains(t, r.Failures, "1 row with experts that no near tie explains")
}

// A document of other tensors is found out.
func TestADocumentOfOtherTensors(t *testing.T) {
	dir := recordedFolder(t)
	runTrace(t, dir, "model", "texts.jsonl", "trace.json", "--scale", "transformers")
	code, r, _ := runRecorded(t, dir, "--document", filepath.Join(dir, "trace.json"))
	require.Equal(t, exitFails, code)
	require.NotEmpty(t, r.Problems)
	require.Len(t, r.Failures, 1)
	require.Contains(t, r.Failures[0], "tensor_sha256")
}

// Without routes of every gate no condition can be judged, which is no success.
func TestNothingRecordedToJudge(t *testing.T) {
	dir := recordedFolder(t)
	reindex(t, filepath.Join(dir, "raw"), func(e *rawEntry) bool { return e.File[:6] == "hidden" })
	code, r, _ := runRecorded(t, dir)
	require.Equal(t, exitNotJudged, code)
	require.Equal(t, "nothing judged", r.Conclusion)
}

func TestMalformedRecordedTensors(t *testing.T) {
	const ids, hidden = "route_ids_layer_02_s0_bos_full_input.bin", "hidden_layer_00_s0_bos_full_input.bin"
	edit := func(file string, with func(e *rawEntry)) func(dir string) {
		return func(dir string) {
			reindex(t, dir, func(e *rawEntry) bool {
				if e.File == file {
					with(e)
				}
				return true
			})
		}
	}
	for name, tt := range map[string]struct {
		spoil func(dir string)
		says  string
		code  int
	}{
		"a flipped bit": {func(dir string) {
			data, err := os.ReadFile(filepath.Join(dir, hidden))
			require.NoError(t, err)
			data[100] ^= 1
			require.NoError(t, writeFile(filepath.Join(dir, hidden), data))
		}, hidden + ": tensor_sha256: got ", exitFails},
		"cut short":         {func(dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, hidden), 30)) }, hidden + ": file: got 30 bytes, want 800", exitFails},
		"a file gone":       {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, hidden))) }, hidden + ": file: got stat", exitFails},
		"another width":     {edit(hidden, func(e *rawEntry) { e.Shape = []int{50, 8} }), hidden + ": shape: got [50 8], want [tokens, 16]", exitFails},
		"no tokens":         {edit(hidden, func(e *rawEntry) { e.Shape = []int{0, 16} }), hidden + ": shape: got [0 16]", exitFails},
		"an unknown type":   {edit(ids, func(e *rawEntry) { e.DType = "torch.float32" }), ids + ": dtype: got torch.float32", exitFails},
		"an unknown place":  {edit(ids, func(e *rawEntry) { e.File = "route_ids_layer_00_s0_bos_full_input.bin" }), "route_ids_layer_00_s0_bos_full_input.bin: name: got neither", exitFails},
		"another folder":    {edit(ids, func(e *rawEntry) { e.File = "../" + ids }), "../" + ids + ": name: got neither", exitFails},
		"a place twice":     {edit(hidden, func(e *rawEntry) { e.File = "hidden_layer_01_s0_bos_full_input.bin"; e.SHA256 = nil }), "its place a second time", exitFails},
		"ids alone":         {func(dir string) { reindex(t, dir, func(e *rawEntry) bool { return e.File != "route_weights"+ids[9:] }) }, "routes of layer_02, s0_bos, full_input: got ids without as many weights", exitFails},
		"weights alone":     {func(dir string) { reindex(t, dir, func(e *rawEntry) bool { return e.File != ids }) }, "routes: got 3 of ids, 4 of weights", exitFails},
		"an expert too far": {func(dir string) { change(t, dir, ids, func(b []byte) { b[0] = moeExperts }) }, "routes of layer 2, token 0: got expert 8, want 0 to 7", exitFails},
		"an expert twice":   {func(dir string) { change(t, dir, ids, func(b []byte) { copy(b[8:16], b[:8]) }) }, "want each once", exitFails},
		"an empty index":    {func(dir string) { require.NoError(t, writeFile(filepath.Join(dir, rawIndex), []byte("[]"))) }, "files: got none", exitFails},
		"no JSON":           {func(dir string) { require.NoError(t, writeFile(filepath.Join(dir, rawIndex), []byte("["))) }, "JSON: got unexpected end", exitFails},
		"no index":          {func(dir string) { require.NoError(t, os.Remove(filepath.Join(dir, rawIndex))) }, "index.json", exitBroken},
		"other tokens": {func(dir string) {
			reindex(t, dir, func(e *rawEntry) bool {
				if filepath.Ext(e.File) == ".bin" && len(e.Shape) == 2 && e.Shape[0] == 25 {
					e.Shape[0], e.SHA256 = 24, nil
					require.NoError(t, os.Truncate(filepath.Join(dir, e.File), 24*int64(map[int]int{16: 32, 2: 16}[e.Shape[1]])))
					if e.DType == "torch.float32" {
						require.NoError(t, os.Truncate(filepath.Join(dir, e.File), 24*8))
					}
				}
				return true
			})
		}, "layer_01, s0_bos, full_input: got 24 tokens, want 25, as the source has", exitFails},
	} {
		t.Run(name, func(t *testing.T) {
			dir := recordedFolder(t)
			tt.spoil(filepath.Join(dir, "raw"))
			code, _, stderr := runRecorded(t, dir)
			require.Equal(t, tt.code, code, stderr)
			require.Contains(t, stderr, tt.says)
		})
	}
}

func TestRecordedUsage(t *testing.T) {
	dir := recordedFolder(t)
	for says, args := range map[string][]string{
		"--source: got \"d/two\", want one of d/one":             {"--source", "d/two"},
		"--against: got none with --dtype float64":               {"--dtype", "float64"},
		"--against: got \"float16\", want float32 or float64":    {"--against", "float16"},
		"--attention: got \"flash\", want fused or eager":        {"--attention", "flash"},
		"trace: document: canonical: stat ":                      {"--document", filepath.Join(dir, "none.json")},
		"--scale: got \"half\", want official or transformers\n": {"--scale", "half"},
	} {
		code, _, stderr := runRecorded(t, dir, args...)
		require.Equal(t, exitBroken, code, stderr)
		require.Contains(t, stderr, says)
	}
}
