package margins

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Every way in which a case can't be compared: whose fault it is, where, and
// that the other case isn't lost.
func TestRefusals(t *testing.T) {
	prompt := func(out ...int) dumpfmt.CaseFile {
		return dumpfmt.CaseFile{Text: "x", TokenIDs: []int{1, 2}, OutputIDs: out}
	}
	good := [][]float32{ref0, ref1} // tokens 1, 0
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		name string
		// spoil changes either folder, both of which are good.
		spoil func(t *testing.T, refDir, candDir string)
		side  Side
		kind  Kind
		row   int
		says  string
	}{
		{"another vocabulary", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(), [][]float32{ref0[:4], ref1[:4]})
		}, Candidate, Provenance, -1, "vocabulary: got 4, want 5 as in "},
		{"NaN in the candidate", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(), [][]float32{ref0, {4, 0, float32(nan), 1, 2}})
		}, Candidate, Values, 1, "a.logits.bin: row 1: logits: got NaN at id 2, want finite"},
		{"infinity in the candidate", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(), [][]float32{{1, 3, 2, 0, -inf}, ref1})
		}, Candidate, Values, 0, "got -Inf at id 4"},
		{"a NaN after the flip", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(), [][]float32{cand0, {float32(nan), 0, -2, 1, 2}})
		}, Candidate, Values, 1, "got NaN at id 0"},
		{"NaN in the reference", func(t *testing.T, ref, _ string) {
			writeFloat(t, ref, "a", prompt(), [][]float32{{1, 3, float32(nan), 0, -1}, ref1})
		}, Reference, Values, 0, "got NaN at id 2"},
		{"NaN on both sides", func(t *testing.T, ref, cand string) {
			for _, dir := range []string{ref, cand} {
				writeFloat(t, dir, "a", prompt(), [][]float32{{1, 3, float32(nan), 0, -1}, ref1})
			}
		}, Reference, Values, 0, "got NaN at id 2"},
		{"a constant row", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(), [][]float32{ref0, {2, 2, 2, 2, 2}})
		}, Candidate, Values, 1, "constant (2 throughout)"},
		{"a row of zeros", func(t *testing.T, ref, _ string) {
			writeFloat(t, ref, "a", prompt(), [][]float32{ref0, make([]float32, 5)})
		}, Reference, Values, 1, "all zero"},
		{"an id outside the vocabulary", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(1, 5), good)
		}, Candidate, Contract, 1, "a.json: row 1: output_ids: got 5, want an id below the vocabulary of 5"},
		{"a token that isn't the row's largest", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(2, 0), good)
		}, Candidate, Contract, 0, "a.logits.bin: row 0: token: got 2 (output_ids), want 1, the row's largest logit, the lowest index on ties"},
		{"the last of equal logits", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(1, 4), [][]float32{ref0, {4, 0, -2, 1, 4}})
		}, Candidate, Contract, 1, "token: got 4 (output_ids), want 0"},
		{"the reference's token isn't its row's largest", func(t *testing.T, ref, _ string) {
			writeFloat(t, ref, "a", prompt(1, 1), good)
		}, Reference, Contract, 1, "token: got 1 (output_ids), want 0"},
		{"a dump that ends within a row", func(t *testing.T, _, cand string) {
			require.NoError(t, os.Truncate(filepath.Join(cand, "a.logits.bin"), 16+30))
		}, Candidate, Format, -1, "a.logits.bin"},
		{"a reference's dump that ends within a row", func(t *testing.T, ref, _ string) {
			require.NoError(t, os.Truncate(filepath.Join(ref, "a.logits.bin"), 16+30))
		}, Reference, Format, -1, "a.logits.bin"},
		{"tokens that aren't as many as the rows", func(t *testing.T, _, cand string) {
			require.NoError(t, os.WriteFile(filepath.Join(cand, "a.json"), []byte(`{"text": "x", "token_ids": [1, 2], "output_ids": [1]}`), 0o644))
		}, Candidate, Format, -1, "output_ids"},
		{"a header that lies", func(t *testing.T, _, cand string) {
			b, err := os.ReadFile(filepath.Join(cand, "a.logits.bin"))
			require.NoError(t, err)
			binary.LittleEndian.PutUint64(b, 1<<60)
			require.NoError(t, os.WriteFile(filepath.Join(cand, "a.logits.bin"), b, 0o644))
		}, Candidate, Format, -1, "a.logits.bin"},
		{"a case file that isn't JSON", func(t *testing.T, _, cand string) {
			require.NoError(t, os.WriteFile(filepath.Join(cand, "a.json"), []byte("{"), 0o644))
		}, Candidate, Format, -1, "a.json"},
		{"a reference's case file that isn't JSON", func(t *testing.T, ref, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(ref, "a.json"), []byte("{"), 0o644))
		}, Reference, Format, -1, "a.json"},
		{"another prompt", func(t *testing.T, _, cand string) {
			c := prompt()
			c.TokenIDs = []int{1, 3}
			writeFloat(t, cand, "a", c, good)
		}, Candidate, Provenance, -1, "token_ids: id 1: got 3, want 2 as in "},
		{"a longer prompt", func(t *testing.T, _, cand string) {
			c := prompt()
			c.TokenIDs = []int{1, 2, 3}
			writeFloat(t, cand, "a", c, good)
		}, Candidate, Provenance, -1, "token_ids: got 3 ids, want 2 as in "},
		{"another text", func(t *testing.T, _, cand string) {
			c := prompt()
			c.Text = "xy"
			writeFloat(t, cand, "a", c, good)
		}, Candidate, Provenance, -1, "text: got 2 bytes that differ from byte 1 on, want the 1 bytes of "},
		{"a case that the candidate lacks", func(t *testing.T, _, cand string) {
			for _, f := range []string{"a.json", "a.logits.bin"} {
				require.NoError(t, os.Remove(filepath.Join(cand, f)))
			}
		}, Candidate, Missing, -1, "a: no such case in the candidate folder"},
		{"a row less, and nothing tells why", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(1), good[:1])
		}, Candidate, Contract, -1, "ref/a.logits.bin: no stop ids are told that could end either output"},
		{"a row more", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(), append(good, ref0))
		}, Candidate, Contract, -1, "rows: got 3, want 2 as in "},
		{"a row less that doesn't end with a stop id", func(t *testing.T, ref, cand string) {
			c := prompt(1, 0)
			c.Stop = []int{4}
			writeFloat(t, ref, "a", c, good)
			writeFloat(t, cand, "a", prompt(2), [][]float32{cand0})
		}, Candidate, Contract, -1, "the shorter output doesn't end with a stop id"},
		{"the candidate runs past a stop id", func(t *testing.T, ref, cand string) {
			c := prompt(1)
			c.Stop = []int{1}
			writeFloat(t, ref, "a", c, good[:1])
		}, Candidate, Contract, -1, "rows: got 2, want 1: row 0 chose the stop id 1"},
		{"the reference runs past a stop id", func(t *testing.T, ref, cand string) {
			c := prompt(1, 0)
			c.Stop = []int{1}
			writeFloat(t, ref, "a", c, good)
			writeFloat(t, cand, "a", prompt(1), good[:1])
		}, Reference, Contract, -1, "rows: got 2, want 1: row 0 chose the stop id 1"},
		{"a row that the reference lacks is broken", func(t *testing.T, ref, cand string) {
			c := prompt(1)
			c.Stop = []int{1}
			writeFloat(t, ref, "a", c, good[:1])
			writeFloat(t, cand, "a", prompt(), [][]float32{cand0, {float32(nan), 0, -2, 1, 2}})
		}, Candidate, Values, 1, "got NaN at id 0"},
		{"no rows on one side", func(t *testing.T, _, cand string) {
			writeFloat(t, cand, "a", prompt(), nil)
		}, Candidate, Contract, -1, "rows: got 0, want 2 as in "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			refDir, candDir := filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "cand")
			for _, dir := range []string{refDir, candDir} {
				writeFloat(t, dir, "a", prompt(), good)
				writeFloat(t, dir, "b", prompt(), good)
			}
			tt.spoil(t, refDir, candDir)
			res := compare(t, candDir, refDir)
			require.Len(t, res.Cases, 2)
			var f *Fault
			require.ErrorAs(t, res.Cases[0].Err, &f)
			require.Equal(t, tt.side, f.Side, f)
			require.Equal(t, tt.kind, f.Kind, f)
			require.Equal(t, tt.row, f.Row, f)
			require.ErrorContains(t, f, tt.says)
			require.NotEmpty(t, f.File)
			require.False(t, res.Cases[0].Compared())
			require.Empty(t, res.Cases[0].Positions)
			require.True(t, res.Cases[1].Compared())
			require.Equal(t, 2, res.Comparable(res.Everything("")).Positions, "the other case counts, this one doesn't")
		})
	}
}

// What is no fault, but leaves nothing to compare.
func TestSkips(t *testing.T) {
	good := [][]float32{ref0, ref1}
	refDir, candDir := t.TempDir(), t.TempDir()
	same := dumpfmt.CaseFile{Text: "x", TokenIDs: []int{1}}
	layers := func(dir, name string) {
		w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "e", Layers: dumpfmt.LayersFloat32, Logits: dumpfmt.LogitsFloat32}, dumpfmt.WriteOptions{Overwrite: true})
		require.NoError(t, err)
		c, err := w.Case(name, same)
		require.NoError(t, err)
		d, err := c.FloatLayers(1, 2)
		require.NoError(t, err)
		require.NoError(t, d.WriteRow([]float32{1, 2}))
		require.NoError(t, d.Commit())
		require.NoError(t, c.Commit())
	}
	writeFloat(t, refDir, "empty", same, nil)
	writeFloat(t, candDir, "empty", same, nil)
	writeFloat(t, candDir, "mine", same, good)
	writeFloat(t, refDir, "nologits", same, good)
	layers(candDir, "nologits")
	layers(refDir, "reflayers")
	writeFloat(t, candDir, "reflayers", same, good)

	res := compare(t, candDir, refDir)
	got := map[string]string{}
	for _, c := range res.Cases {
		require.NoError(t, c.Err)
		require.False(t, c.Compared())
		got[c.Name] = c.Skipped
	}
	require.Equal(t, map[string]string{
		"empty": "neither side decoded a token", "mine": "the reference folder has no such case",
		"nologits": "the candidate has no logit dump of it", "reflayers": "the reference has no logit dump of it",
	}, got)
	require.Zero(t, res.Comparable(res.Everything("")).Positions)
	require.True(t, math.IsNaN(res.DefaultTieBand().Value))
}

// An output that ends early at a stop id, after the sides parted, is compared as
// far as both go.
func TestOutputsOfDifferentLength(t *testing.T) {
	refDir, candDir := t.TempDir(), t.TempDir()
	stop := dumpfmt.CaseFile{Text: "x", TokenIDs: []int{1}, Stop: []int{2}}
	noStop := dumpfmt.CaseFile{Text: "x", TokenIDs: []int{1}}
	writeFloat(t, refDir, "a", stop, [][]float32{ref0, ref1, ref1}) // 1 0 0
	writeFloat(t, candDir, "a", noStop, [][]float32{cand0})         // 2 ends it
	writeFloat(t, refDir, "b", noStop, [][]float32{cand0})
	writeFloat(t, candDir, "b", stop, [][]float32{ref0, ref1})
	res := compare(t, candDir, refDir)
	a, b := res.Cases[0], res.Cases[1]
	require.NoError(t, a.Err)
	require.NoError(t, b.Err)
	require.Len(t, a.Positions, 1)
	require.Equal(t, []int{1, 0, 0}, a.RefTokens)
	require.Equal(t, 1, a.Comparable())
	require.Len(t, b.Positions, 1)
	require.Equal(t, []int{1, 0}, b.CandTokens)
	require.Equal(t, 4, res.Comparable(res.Everything("")).Of, "of all positions that the reference decoded")
}
