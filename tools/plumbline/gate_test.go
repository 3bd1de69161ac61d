package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

// slow marks a test that runs the model many times; -short leaves it out.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the model many times; run without -short")
	}
}

// modelFolder is the embedded checkpoint on disk.
func modelFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.CopyFS(dir, fixtures.SeededModel()))
	return dir
}

// dumpInt8 writes an int8 engine's dumps of the first n fixture prompts, with a
// planted fault unless name is empty.
func dumpInt8(t *testing.T, n int, name string, at int) string {
	t.Helper()
	w, err := reference.LoadFS(fixtures.SeededModel(), ".")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	cases, err := fixtures.SeededPrompts()
	require.NoError(t, err)
	open := func(w engine.Weights) (engine.Candidate, error) {
		return quant.FromWeights(w, quant.KVCacheInt8()).Candidate(engine.Scheme{RowsInt8: true}), nil
	}
	cand, err := open(w)
	require.NoError(t, err)
	if name != "" {
		m, err := mutant.Lookup(name)
		require.NoError(t, err)
		cand, err = m.Candidate(mutant.Sides{Candidate: cand, Weights: w, Open: open, Cases: cases}, at)
		require.NoError(t, err)
	}
	dir := filepath.Join(t.TempDir(), "dumps")
	fw, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "int8 test engine", Layers: "int8-scaled"}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	for _, c := range cases[:n] {
		resp, err := cand.Run(t.Context(), engine.Request{Case: c})
		require.NoError(t, err)
		cw, err := fw.Case(c.Name, dumpfmt.CaseFile{Text: c.Text, TokenIDs: c.TokenIDs})
		require.NoError(t, err)
		h := resp.Layers.Header()
		lw, err := cw.Int8Layers(h.Rows, h.Width)
		require.NoError(t, err)
		row, codes := make([]float64, h.Width), make([]int8, h.Width)
		for i := range h.Rows {
			step, err := resp.Layers.Row(i, row)
			require.NoError(t, err)
			frac, exp := math.Frexp(step)
			for k, x := range row {
				codes[k] = int8(math.Round(x / step))
			}
			require.NoError(t, lw.WriteRow(dumpfmt.Scale{M: int64(frac * (1 << 31)), E: int64(exp - 31)}, codes))
		}
		require.NoError(t, lw.Commit())
		require.NoError(t, cw.Commit())
	}
	return dir
}

// gateJSON runs gate --json and returns the report and the exit code.
func gateJSON(t *testing.T, args ...string) (conformance.Report, int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append([]string{"gate", "--json", "--quiet"}, args...), &out, &errs)
	var rep conformance.Report
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &rep), out.String())
	}
	return rep, code, errs.String()
}

func rowOf(r conformance.Report) int {
	if r.FirstBadRow == nil {
		return -1
	}
	return *r.FirstBadRow
}

func TestGateVerdicts(t *testing.T) {
	slow(t)
	model := modelFolder(t)
	for _, tc := range []struct {
		name   string
		mutant string
		at     int
		code   int
		row    int
		source string
	}{
		{"clean", "", 0, exitDone, -1, ""},
		{"a layer fault", "gate-up-swapped", 7, exitFails, 8, "blocks.7.resid_post"},
		{"a weak layer fault", "norm-gain-ones", 5, exitFails, 6, "blocks.5.resid_post"},
		{"a dump fault", "duplicated-row", 14, exitFails, 14, ""},
		{"a scale fault", "doubled-scale", 12, exitFails, 12, ""},
		{"the wrong input", "first-token-embedding", -1, exitFails, 0, "embed"},
		{"zero rows of values", "zero-row", 9, exitFails, 9, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := dumpInt8(t, 7, tc.mutant, tc.at)
			rep, code, stderr := gateJSON(t, "--allow-partial", "--model", model, "--candidate", dir)
			assert.Equal(t, tc.code, code, stderr)
			assert.Equal(t, tc.row, rowOf(rep), "notes %v", rep.Notes)
			if tc.source == "" {
				assert.Nil(t, rep.Source)
			} else if assert.NotNil(t, rep.Source) {
				assert.Equal(t, tc.source, string(*rep.Source))
			}
			assert.Positive(t, rep.Executed)
			assert.NotEmpty(t, rep.Power)
			assert.Contains(t, rep.Reproduce, "plumbline gate --model "+model)
		})
	}
}

func TestGatePartialIsNotSuccess(t *testing.T) {
	model, dir := modelFolder(t), dumpInt8(t, 5, "", 0)
	rep, code, _ := gateJSON(t, "--model", model, "--candidate", dir)
	assert.Equal(t, exitNotJudged, code)
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	assert.NotEmpty(t, rep.NotJudged)
	_, code, _ = gateJSON(t, "--git-bisect", "--model", model, "--candidate", dir)
	assert.Equal(t, exitBisectSkip, code)
}

// TestGateBadCandidateFiles: whatever is wrong with a candidate's files is the
// candidate's fault: exit 1, the file named, the other cases judged.
func TestGateBadCandidateFiles(t *testing.T) {
	slow(t)
	model := modelFolder(t)
	clean := dumpInt8(t, 6, "", 0)
	const victim = "short_question"
	layers := victim + ".layers.bin"
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, dir string)
		file   string
		kind   conformance.Kind
	}{
		{"truncated header", truncateTo(layers, 20), layers, conformance.KindFormat},
		{"truncated row", truncateTo(layers, 700), layers, conformance.KindFormat},
		{"empty file", truncateTo(layers, 0), layers, conformance.KindFormat},
		{"rows 2^60", patchByte(layers, 7, 0x10), layers, conformance.KindFormat},
		{"capture mode 2", patchByte(layers, 24, 2), layers, conformance.KindFormat},
		{"zero rows", patchByte(layers, 0, 0), layers, conformance.KindFormat},
		{"another prompt's dump", func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, "arithmetic.layers.bin"))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, layers), b, 0o600))
		}, layers, conformance.KindProvenance},
		{"a scale that isn't one", patchByte(layers, 32+7, 0x80), layers, conformance.KindFormat},
		{"NAME.json gone", func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, victim+".json"))) },
			victim + ".json", conformance.KindFormat},
		{"NAME.json broken", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, victim+".json"), []byte(`{"text": "x", "token_ids": [1,`), 0o600))
		}, victim + ".json", conformance.KindFormat},
		{"an output token that the model doesn't have", func(t *testing.T, dir string) {
			p := filepath.Join(dir, victim+".json")
			b, err := os.ReadFile(p)
			require.NoError(t, err)
			var c map[string]any
			require.NoError(t, json.Unmarshal(b, &c))
			c["output_ids"] = []int{3, 384}
			b, err = json.Marshal(c)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(p, b, 0o600))
		}, "output_ids[1]: got 384", conformance.KindFormat},
		{"a malformed logit dump beside good layers", func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), []byte(`{"name": "x", "layers": "int8-scaled", "logits": "i32"}`), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, victim+".logits.bin"), []byte{1, 0, 0, 0, 0, 0, 0, 0, 9}, 0o600))
		}, victim + ".logits.bin", conformance.KindFormat},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cand")
			require.NoError(t, os.CopyFS(dir, os.DirFS(clean)))
			tc.change(t, dir)
			rep, code, stderr := gateJSON(t, "--allow-partial", "--model", model, "--candidate", dir)
			assert.Equal(t, exitFails, code, stderr)
			assert.Equal(t, conformance.Fails, rep.Conclusion)
			assert.Nil(t, rep.FirstBadRow)
			assert.Nil(t, rep.Source)
			if assert.NotNil(t, rep.Kind) {
				assert.Equal(t, tc.kind, *rep.Kind)
			}
			require.NotEmpty(t, rep.Failures())
			assert.Contains(t, rep.Failures()[0].Reason, tc.file)
			judged := 0
			for name, v := range rep.Cases {
				if v.Judged {
					judged++
					assert.NotEqual(t, victim, name)
				}
			}
			assert.Equal(t, 5, judged, "the other cases are not lost")
		})
	}
	t.Run("trailing bytes are a note in int8 dumps", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cand")
		require.NoError(t, os.CopyFS(dir, os.DirFS(clean)))
		b, err := os.ReadFile(filepath.Join(dir, layers))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, layers), append(b, 1, 2, 3), 0o600))
		_, code, stderr := gateJSON(t, "--allow-partial", "--model", model, "--candidate", dir)
		assert.Equal(t, exitDone, code, stderr)
	})
}

func truncateTo(name string, n int64) func(*testing.T, string) {
	return func(t *testing.T, dir string) { require.NoError(t, os.Truncate(filepath.Join(dir, name), n)) }
}

func patchByte(name string, at int, to byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotEqual(t, to, b[at])
		b[at] = to
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, fs.FileMode(0o600)))
	}
}

// TestGateRunBroken: a bad flag, model or golden is the run's fault: exit 2.
func TestGateRunBroken(t *testing.T) {
	slow(t)
	model, clean := modelFolder(t), dumpInt8(t, 2, "", 0)
	badModel := func(change func(dir string)) string {
		dir := modelFolder(t)
		change(dir)
		return dir
	}
	rewrite := func(old, with string) func(string) {
		return func(dir string) {
			p := filepath.Join(dir, "config.json")
			b, err := os.ReadFile(p)
			require.NoError(t, err)
			changed := bytes.Replace(b, []byte(old), []byte(with), 1)
			require.NotEqual(t, b, changed)
			require.NoError(t, os.WriteFile(p, changed, 0o600))
		}
	}
	for _, tc := range []struct {
		name string
		args []string
		says string
	}{
		{"no candidate", []string{"--model", model}, "--candidate is required"},
		{"no model", []string{"--candidate", clean}, "no model"},
		{"no such candidate folder", []string{"--model", model, "--candidate", clean + "-nowhere"}, "no such folder"},
		{"no such model", []string{"--model", model + "-nowhere", "--candidate", clean}, "nowhere"},
		{"unknown flag", []string{"--modle", model}, "unknown flag"},
		{"no such golden", []string{"--model", model, "--candidate", clean, "--golden", clean + "-nowhere"}, "nowhere"},
		{"exact without golden", []string{"--exact", "--candidate", clean}, "--golden is required"},
		{"truncated safetensors", []string{"--candidate", clean, "--model", badModel(func(dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "model.safetensors"), 5000))
		})}, "model.safetensors"},
		{"unknown architecture", []string{"--candidate", clean, "--model", badModel(rewrite(`"qwen2"`, `"mamba"`))}, "mamba"},
		{"a model without a tensor", []string{"--candidate", clean, "--model", badModel(rewrite(`"num_hidden_layers": 28`, `"num_hidden_layers": 29`))}, "model.layers.28"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(modelEnv, "")
			_, code, stderr := gateJSON(t, tc.args...)
			assert.Equal(t, exitBroken, code)
			assert.Contains(t, stderr, tc.says)
		})
	}
}

func TestGateNothingToJudge(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), []byte(`{"name": "x"}`), 0o600))
	rep, code, stderr := gateJSON(t, "--allow-partial", "--model", modelFolder(t), "--candidate", dir)
	assert.Equal(t, exitNotJudged, code, stderr)
	assert.Equal(t, conformance.NothingJudged, rep.Conclusion)
}

// renamed makes a dump folder another engine's.
func renamed(t *testing.T, dir, name string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"),
		[]byte(`{"name": "`+name+`", "layers": "int8-scaled"}`), 0o600))
	return dir
}

func TestGateMissingCase(t *testing.T) {
	golden, cand := renamed(t, dumpInt8(t, 4, "", 0), "reference"), dumpInt8(t, 3, "", 0)
	rep, code, stderr := gateJSON(t, "--allow-partial", "--model", modelFolder(t), "--candidate", cand, "--golden", golden)
	assert.Equal(t, exitFails, code, stderr)
	require.NotEmpty(t, rep.Failures())
	cases, err := fixtures.SeededPrompts()
	require.NoError(t, err)
	assert.Equal(t, cases[3].Name, rep.Failures()[0].Case)
	_, code, stderr = gateJSON(t, "--allow-partial", "--model", modelFolder(t),
		"--candidate", dumpInt8(t, 4, "", 0), "--golden", renamed(t, cand, "reference"))
	assert.Equal(t, exitDone, code, stderr)
}

// floatGolden captures the reference's own rows as a golden folder.
func floatGolden(t *testing.T, n int, name string) string {
	t.Helper()
	w, err := reference.LoadFS(fixtures.SeededModel(), ".")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	ref, err := reference.New(w, reference.WithDType(reference.Float64)) // another arithmetic than the one it judges
	require.NoError(t, err)
	cases, err := fixtures.SeededPrompts()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "golden")
	fw, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: name, Layers: "f32"}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	for _, c := range cases[:n] {
		tr, err := ref.Capture(t.Context(), c.TokenIDs)
		require.NoError(t, err)
		cw, err := fw.Case(c.Name, dumpfmt.CaseFile{Text: c.Text, TokenIDs: c.TokenIDs})
		require.NoError(t, err)
		lw, err := cw.FloatLayers(len(tr.Rows()), len(tr.Rows()[0]))
		require.NoError(t, err)
		for _, r := range tr.Rows() {
			row := make([]float32, len(r))
			for i, x := range r {
				row[i] = float32(x)
			}
			require.NoError(t, lw.WriteRow(row))
		}
		require.NoError(t, lw.Commit())
		require.NoError(t, cw.Commit())
	}
	return dir
}

// TestGateHoldsTheReferenceToTheGolden: a golden that the reference doesn't
// match makes every verdict worthless, and one that the engine under test made
// is none.
func TestGateHoldsTheReferenceToTheGolden(t *testing.T) {
	model, cand := modelFolder(t), dumpInt8(t, 4, "", 0)
	golden := floatGolden(t, 4, "float64 recording")
	rep, code, stderr := gateJSON(t, "--allow-partial", "--model", model, "--candidate", cand, "--golden", golden)
	assert.Equal(t, exitDone, code, stderr)
	judged := 0
	for _, c := range rep.Checks {
		if c.ID == "ResidualGolden" && c.Status == conformance.Pass {
			judged++
		}
	}
	assert.Equal(t, 4, judged)

	// One value of one row, a thousandth off.
	path := filepath.Join(golden, "short_question.layers.bin")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	at := 32 + 4*(64*9+3)
	v := math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))
	binary.LittleEndian.PutUint32(b[at:], math.Float32bits(v*1.001))
	require.NoError(t, os.WriteFile(path, b, 0o600))
	rep, code, stderr = gateJSON(t, "--allow-partial", "--model", model, "--candidate", cand, "--golden", golden)
	assert.Equal(t, exitBroken, code)
	assert.Contains(t, stderr, "the reference failed a check of its own")
	assert.True(t, rep.ReferenceFailed)

	self := floatGolden(t, 2, "int8 test engine")
	_, code, stderr = gateJSON(t, "--allow-partial", "--model", model, "--candidate", cand, "--golden", self)
	assert.Equal(t, exitBroken, code)
	assert.Contains(t, stderr, "made by the engine under test")
}

func TestGateExactAndReport(t *testing.T) {
	a, b := dumpInt8(t, 3, "", 0), dumpInt8(t, 3, "doubled-scale", 12)
	_, code, stderr := gateJSON(t, "--exact", "--golden", a, "--candidate", a)
	assert.Equal(t, exitDone, code, stderr)
	reports := filepath.Join(t.TempDir(), "deep", "report")
	rep, code, stderr := gateJSON(t, "--exact", "--golden", a, "--candidate", b, "--report", reports)
	assert.Equal(t, exitFails, code, stderr)
	assert.Equal(t, 12, rowOf(rep))
	var onDisk conformance.Report
	raw, err := os.ReadFile(filepath.Join(reports, "report.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &onDisk))
	assert.Equal(t, rep, onDisk)
	_, code, stderr = gateJSON(t, "--exact", "--golden", a, "--candidate", b, "--report", reports)
	assert.Equal(t, exitBroken, code)
	assert.Contains(t, stderr, "want a new or empty one")
}
