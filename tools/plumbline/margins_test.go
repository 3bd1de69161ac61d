package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/sebdah/goldie/v2"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// logitCase is one case of a small folder: rows of five logits.
type logitCase struct {
	name string
	rows [][]float32
	file dumpfmt.CaseFile
}

// writeLogitCases writes a folder of logits, as int32 where scale isn't 0: the
// logits times scale.
func writeLogitCases(t *testing.T, dir string, scale float64, cases ...logitCase) {
	t.Helper()
	e := dumpfmt.EngineFile{Name: dir + " side", Logits: dumpfmt.LogitsFloat32}
	if scale != 0 {
		e.Logits = dumpfmt.LogitsInt32
	}
	w, err := dumpfmt.CreateFolder(dir, e, dumpfmt.WriteOptions{Overwrite: true})
	require.NoError(t, err)
	for _, c := range cases {
		file := c.file
		if file.Text == "" {
			prompt := "about " + c.name
			file.Text, file.TokenIDs, file.Prompt = "<s>"+c.name, []int{1, 2, 3}, &prompt
		}
		cw, err := w.Case(c.name, file)
		require.NoError(t, err)
		h := dumpfmt.LogitHeader{Rows: len(c.rows)}
		if h.Rows > 0 {
			h.Vocab = len(c.rows[0])
		}
		if scale != 0 {
			d, err := cw.Int32Logits(h)
			require.NoError(t, err)
			for _, r := range c.rows {
				codes := make([]int32, len(r))
				for i, x := range r {
					codes[i] = int32(scale * float64(x))
				}
				require.NoError(t, d.WriteRow(codes))
			}
			require.NoError(t, d.Commit())
		} else {
			d, err := cw.FloatLogits(h)
			require.NoError(t, err)
			for _, r := range c.rows {
				require.NoError(t, d.WriteRow(r))
			}
			require.NoError(t, d.Commit())
		}
		require.NoError(t, cw.Commit())
	}
}

var (
	sure      = []float32{1, 4, 2, 0, -1}       // token 1
	nearlySo  = []float32{1.25, 3.75, 2, 0, -1} // token 1
	tied      = []float32{-1, 0, 3, 2.875, 0.5} // token 2, token 3 next to it
	flipped   = []float32{-1, 0, 2.875, 3, 0.5} // token 3
	unlike    = []float32{3, -1, -2, 0, 1}      // token 0
	notFinite = []float32{1, float32(math.NaN()), 2, 0, -1}
)

// marginFolders writes a reference, an int32 candidate with a tie flip and a
// float32 candidate with a wrong pick and a broken dump.
func marginFolders(t *testing.T) {
	t.Helper()
	cases := func(berlin, paris, rome [][]float32) []logitCase {
		return []logitCase{{name: "berlin", rows: berlin}, {name: "paris", rows: paris}, {name: "rome", rows: rome}}
	}
	writeLogitCases(t, "ref", 0, cases([][]float32{sure, tied, sure, sure}, [][]float32{sure, sure}, [][]float32{tied})...)
	writeLogitCases(t, "tieflip", 4000, cases([][]float32{nearlySo, flipped, unlike, sure}, [][]float32{sure, nearlySo}, [][]float32{tied})...)
	writeLogitCases(t, "wrong", 0, cases([][]float32{nearlySo, tied, unlike, sure}, [][]float32{sure, nearlySo}, [][]float32{notFinite})...)
	require.NoError(t, writeFile("groups.json", []byte(`{"test": ["rome", "berlin"], "control": ["paris"]}`)))
}

// TestMarginsOutput holds the layout of what people read. The figures are
// checked where they are computed.
func TestMarginsOutput(t *testing.T) {
	golden, err := filepath.Abs("testdata/golden")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	marginFolders(t)
	for _, tt := range []struct {
		golden string
		code   int
		args   []string
	}{
		{"margins-help", exitDone, []string{"margins", "--help"}},
		{"margins-int32", exitDone, []string{"margins", "--ref", "ref", "--cand", "tieflip", "--groups", "groups.json", "--top", "3"}},
		{"margins-wrong", exitFails, []string{"margins", "--ref", "ref", "--cand", "wrong", "--tie-band", "0.2"}},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			var out, stderr bytes.Buffer
			require.Equal(t, tt.code, run(append(tt.args, "--quiet"), &out, &stderr), stderr.String())
			goldie.New(t, goldie.WithFixtureDir(golden), goldie.WithNameSuffix(".txt")).Assert(t, tt.golden, out.Bytes())
		})
	}
}

func TestMarginsExitCodes(t *testing.T) {
	t.Chdir(t.TempDir())
	marginFolders(t)
	writeLogitCases(t, "refnan", 0, logitCase{name: "berlin", rows: [][]float32{sure}}, logitCase{name: "rome", rows: [][]float32{notFinite}})
	writeLogitCases(t, "zero", 0, logitCase{name: "rome"})
	writeLogitCases(t, "other", 0, logitCase{name: "oslo", rows: [][]float32{sure}})
	writeLogitCases(t, "small", 0, logitCase{name: "rome", rows: [][]float32{tied[:3]}})
	writeLogitCases(t, "rome", 0, logitCase{name: "rome", rows: [][]float32{tied}})
	require.NoError(t, os.MkdirAll("empty", 0o755))
	require.NoError(t, writeFile("empty/engine.json", []byte(`{"name": "empty", "logits": "f32"}`)))
	require.NoError(t, os.MkdirAll("broken", 0o755))
	require.NoError(t, writeFile("broken/engine.json", []byte(`{`)))
	require.NoError(t, writeFile("typo.json", []byte(`{"test": ["roma"]}`)))
	require.NoError(t, writeFile("list.json", []byte(`["rome"]`)))
	for _, tt := range []struct {
		name           string
		code           int
		args           []string
		stdout, stderr string
	}{
		{"itself", exitDone, []string{"--ref", "ref", "--cand", "ref"}, "measured only: there is no yardstick", ""},
		{"a tie flip", exitDone, []string{"--ref", "ref", "--cand", "tieflip"}, "7 positions, 5 comparable", ""},
		{"the same flip, with no band for ties", exitFails, []string{"--ref", "ref", "--cand", "tieflip", "--tie-band", "0"}, "berlin, position 1: picked 3, rank 2 of the reference, which picks 2", ""},
		{"a wrong pick", exitFails, []string{"--ref", "rome", "--cand", "romewrong"}, "rome, position 0: picked 0", ""},
		{"a NaN of the candidate's", exitFails, []string{"--ref", "ref", "--cand", "wrong", "--tie-band", "9"}, "rome: margins: candidate: wrong/rome.logits.bin: row 0: logits: got NaN at id 1", ""},
		{"a NaN of the reference's", exitBroken, []string{"--ref", "refnan", "--cand", "ref"}, "margins: reference: refnan/rome.logits.bin: row 0", ""},
		{"a NaN of the reference's outweighs the candidate's faults", exitBroken, []string{"--ref", "refnan", "--cand", "rome"}, "reference: refnan/rome", ""},
		{"a case that the candidate lacks", exitFails, []string{"--ref", "ref", "--cand", "rome"}, "berlin: no such case in the candidate folder", ""},
		{"another vocabulary", exitFails, []string{"--ref", "rome", "--cand", "small"}, "vocabulary: got 3, want 5", ""},
		{"no rows on either side", exitNotJudged, []string{"--ref", "zero", "--cand", "zero"}, "conclusion: nothing judged", ""},
		{"a candidate without a case", exitNotJudged, []string{"--ref", "ref", "--cand", "empty"}, "", "empty"},
		{"a reference without a case", exitBroken, []string{"--ref", "empty", "--cand", "ref"}, "", "empty"},
		{"a candidate that is no folder", exitBroken, []string{"--ref", "ref", "--cand", "nowhere"}, "", "nowhere"},
		{"a reference that is no folder", exitBroken, []string{"--ref", "nowhere", "--cand", "ref"}, "", "nowhere"},
		{"a candidate with a broken engine.json", exitFails, []string{"--ref", "ref", "--cand", "broken"}, "", "broken"},
		{"no --ref", exitBroken, []string{"--cand", "ref"}, "", "--ref is required"},
		{"no --cand", exitBroken, []string{"--ref", "ref"}, "", "--cand is required"},
		{"an argument", exitBroken, []string{"ref"}, "", "the folders are flags"},
		{"--top 1", exitBroken, []string{"--ref", "ref", "--cand", "ref", "--top", "1"}, "", "--top: got 1"},
		{"--tie-band below 0", exitBroken, []string{"--ref", "ref", "--cand", "ref", "--tie-band", "-1"}, "", "--tie-band: got -1"},
		{"--tie-band NaN", exitBroken, []string{"--ref", "ref", "--cand", "ref", "--tie-band", "NaN"}, "", "--tie-band: got NaN"},
		{"a group with a case that isn't there", exitBroken, []string{"--ref", "ref", "--cand", "ref", "--groups", "typo.json"}, "", `"roma"`},
		{"groups that are a list", exitBroken, []string{"--ref", "ref", "--cand", "ref", "--groups", "list.json"}, "", "list.json"},
		{"groups that aren't there", exitBroken, []string{"--ref", "ref", "--cand", "ref", "--groups", "none.json"}, "", "none.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			writeLogitCases(t, "romewrong", 0, logitCase{name: "rome", rows: [][]float32{unlike}})
			var out, stderr bytes.Buffer
			code := run(append([]string{"margins", "--quiet"}, tt.args...), &out, &stderr)
			require.Equal(t, tt.code, code, "%s%s", out.String(), stderr.String())
			require.Contains(t, out.String(), tt.stdout)
			require.Contains(t, stderr.String(), tt.stderr)
			if tt.stdout == "" {
				require.Empty(t, out.String())
			}
		})
	}
}

// positionKeys are the int8 engine owners' names: what reads their report reads
// ours.
var positionKeys = []string{"position", "float_token", "int8_token", "agree", "float_top1_logit", "float_top2_logit",
	"float_top1_top2_margin", "z_top1_top2_margin", "float_logit_of_int8_token", "float_margin_top1_to_int8_choice",
	"int8_token_rank_in_float_order", "z_margin_top1_to_int8_choice", "spearman_full_vocab", "spearman_top_n", "max_abs_z_diff_top_n"}

func TestMarginsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	marginFolders(t)
	object := func(code int, args ...string) map[string]any {
		t.Helper()
		var out, stderr bytes.Buffer
		require.Equal(t, code, run(append([]string{"margins", "--json", "--quiet"}, args...), &out, &stderr), stderr.String())
		require.NoError(t, dumpfmt.CheckJSON("margins", out.Bytes()))
		var got map[string]any
		dec := json.NewDecoder(&out)
		require.NoError(t, dec.Decode(&got))
		require.False(t, dec.More(), "more than one object")
		for _, key := range []string{"schema_version", "conclusion", "power", "ref", "cand", "tie_band", "int32_scale", "cases", "summaries", "reproduce"} {
			require.Contains(t, got, key)
		}
		return got
	}
	got := object(exitDone, "--ref", "ref", "--cand", "tieflip", "--groups", "groups.json")
	require.Equal(t, "nothing judged", got["conclusion"])
	require.NotContains(t, got, "failures")
	require.Equal(t, "plumbline margins --json --quiet --ref ref --cand tieflip --groups groups.json", got["reproduce"])
	band := got["tie_band"].(map[string]any)
	require.Greater(t, band["value"], 0.0)
	require.NotEmpty(t, band["source"])

	cases := got["cases"].([]any)
	require.Len(t, cases, 3)
	var labels []any
	for _, c := range cases {
		labels = append(labels, c.(map[string]any)["label"])
	}
	require.Equal(t, []any{"rome", "berlin", "paris"}, labels, "in the groups' order")
	berlin := cases[1].(map[string]any)
	for key, want := range map[string]any{"group": "test", "question": "about berlin", "n_positions_compared": 4.0, "n_agree": 2.0,
		"n_comparable": 2.0, "first_flip": 1.0, "int8_output_ids": []any{1.0, 3.0, 0.0, 1.0}, "float_output_ids": []any{1.0, 2.0, 1.0, 1.0}} {
		require.Equal(t, want, berlin[key], key)
	}
	positions := berlin["positions"].([]any)
	require.Len(t, positions, 4)
	for i, class := range []any{"MATCH", "TIE-FLIP", nil, nil} {
		p := positions[i].(map[string]any)
		for _, key := range append(positionKeys, "kl_nats", "kl_row_scale_nats", "regret_nats", "noise_z", "scale") {
			require.Contains(t, p, key)
		}
		require.Equal(t, class, p["class"])
		require.Equal(t, class != nil, p["comparable"])
		require.Nil(t, p["centred_relative_l2"])
	}
	require.Nil(t, cases[2].(map[string]any)["first_flip"])

	summaries := got["summaries"].(map[string]any)
	ours, theirs := summaries["comparable"].([]any), summaries["all"].([]any)
	require.Len(t, ours, 3)
	require.Len(t, theirs, 3)
	all := ours[2].(map[string]any)
	require.Equal(t, "all", all["group"])
	require.Equal(t, 5.0, all["positions"])
	require.Equal(t, 7.0, all["of_positions"])
	require.Equal(t, map[string]any{"MATCH": 4.0, "TIE-FLIP": 1.0, "DRIFT": 0.0, "WRONG": 0.0}, all["classes"])
	require.Equal(t, 7.0, theirs[2].(map[string]any)["positions"])

	got = object(exitFails, "--ref", "ref", "--cand", "wrong", "--tie-band", "0.2")
	require.Equal(t, "fails", got["conclusion"])
	require.Len(t, got["failures"], 2)
	require.Nil(t, got["int32_scale"])
	require.Equal(t, "the flag --tie-band", got["tie_band"].(map[string]any)["source"])
	fault := got["cases"].([]any)[2].(map[string]any)["error"].(map[string]any)
	for key, want := range map[string]any{"side": "candidate", "kind": "values", "file": "wrong/rome.logits.bin", "row": 0.0} {
		require.Equal(t, want, fault[key], key)
	}

	// Nothing at all is an object too.
	require.NoError(t, os.MkdirAll("empty", 0o755))
	require.NoError(t, writeFile("empty/engine.json", []byte(`{"name": "empty", "logits": "f32"}`)))
	got = object(exitNotJudged, "--ref", "ref", "--cand", "empty")
	require.Equal(t, "nothing judged", got["conclusion"])
	require.Nil(t, got["tie_band"])
	require.NotEmpty(t, got["notes"])
	require.NoError(t, writeFile("empty/engine.json", []byte(`{`)))
	require.Equal(t, "fails", object(exitFails, "--ref", "ref", "--cand", "empty")["conclusion"])

	// A NaN is a string, not a broken object: logits that run backwards have no
	// scale, and so no KL.
	writeLogitCases(t, "backwards", -4000, logitCase{name: "paris", rows: [][]float32{sure, sure}})
	writeLogitCases(t, "onlyparis", 0, logitCase{name: "paris", rows: [][]float32{sure, sure}})
	got = object(exitFails, "--ref", "onlyparis", "--cand", "backwards")
	kl := got["summaries"].(map[string]any)["comparable"].([]any)[0].(map[string]any)["kl_nats"].(map[string]any)
	require.Equal(t, "NaN", kl["mean"])
}
