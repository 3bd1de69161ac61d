package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

// tensorFolders are the two folders of testdata/diff/record.py, in the working
// directory.
type tensorFolders struct {
	t   *testing.T
	inv *kernel.Inventory
}

// writeTensors writes them by the recorder's formula.
func writeTensors(t *testing.T, refExp, diffExp int) tensorFolders {
	t.Helper()
	t.Chdir(t.TempDir())
	f := tensorFolders{t, kernel.Gemma4()}
	require.NoError(t, os.Mkdir("ref", 0o777))
	require.NoError(t, os.Mkdir("cand", 0o777))
	refUnit, diffUnit := math.Ldexp(1, refExp), math.Ldexp(1, diffExp)
	for n := range f.inv.Len() {
		k := f.inv.Key(n)
		heads, width := f.inv.Shape(k)
		ref, cand := make([]float32, heads*width), make([]float32, heads*width)
		step := f.inv.Positions[k.Position].Step
		for i := range ref {
			r := float64((i*37+k.Layer*11+step*5+k.Op*3)%257-128) * refUnit
			d := float64((i*13+k.Layer+step)%17-8) * diffUnit
			ref[i], cand[i] = float32(r), float32(r+d)
		}
		f.write(filepath.Join("ref", f.inv.FileOf(k)), ref)
		f.write(filepath.Join("cand", f.inv.FileOf(k)), cand)
	}
	return f
}

// linkTensors is writeTensors with files of an earlier one, which a change
// replaces and never writes to.
func linkTensors(t *testing.T, from string) tensorFolders {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, dir := range []string{"ref", "cand"} {
		require.NoError(t, os.Mkdir(dir, 0o777))
		entries, err := os.ReadDir(filepath.Join(from, dir))
		require.NoError(t, err)
		for _, e := range entries {
			require.NoError(t, os.Link(filepath.Join(from, dir, e.Name()), filepath.Join(dir, e.Name())))
		}
	}
	return tensorFolders{t, kernel.Gemma4()}
}

func (f tensorFolders) write(path string, v []float32) {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	f.replace(path, b)
}

func (f tensorFolders) replace(path string, b []byte) {
	if err := os.Remove(path); err != nil {
		require.ErrorIs(f.t, err, fs.ErrNotExist)
	}
	require.NoError(f.t, os.WriteFile(path, b, 0o666))
}

// path is a tensor's file; op is an index, step a decode step.
func (f tensorFolders) path(side string, layer, step, op int) string {
	for p := range f.inv.Positions {
		if f.inv.Positions[p].Step == step {
			return filepath.Join(side, f.inv.FileOf(kernel.Key{Layer: layer, Position: p, Op: op}))
		}
	}
	f.t.Fatalf("no step %d", step)
	return ""
}

func (f tensorFolders) remove(side string, layer, step, op int) {
	require.NoError(f.t, os.Remove(f.path(side, layer, step, op)))
}

func (f tensorFolders) size(n int64, side string, layer, step, op int) {
	path := f.path(side, layer, step, op)
	b, err := os.ReadFile(path)
	require.NoError(f.t, err)
	f.replace(path, append(b, make([]byte, n)...)[:n])
}

func (f tensorFolders) value(index int, x float64, side string, layer, step, op int) {
	path := f.path(side, layer, step, op)
	b, err := os.ReadFile(path)
	require.NoError(f.t, err)
	binary.LittleEndian.PutUint32(b[4*index:], math.Float32bits(float32(x)))
	f.replace(path, b)
}

const opQ, opK, opSDPA = 0, 1, 3

var allSteps = []int{1, 5, 10, 15, 20, 25, 30}

// TestDiffSaysWhatTheScriptSays: through the end of the EXPORT block, the summary
// and the CSV are those that the script itself wrote for the same dumps, its false
// greens included; what Plumbline concludes, and the exit code, are not.
func TestDiffSaysWhatTheScriptSays(t *testing.T) {
	slow(t)
	keep := t.TempDir()
	golden, err := filepath.Abs("testdata/diff")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(golden, "csv.sha256"))
	require.NoError(t, err)
	sets := map[[2]int]string{}
	for _, units := range [][2]int{{-7, -16}, {-16, -15}, {-18, -14}, {-7, -12}, {-18, -20}} {
		t.Run("write", func(t *testing.T) { // gives the working directory back
			writeTensors(t, units[0], units[1])
			dir, err := os.Getwd()
			require.NoError(t, err)
			kept := filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "-"))
			require.NoError(t, os.Rename(dir, kept))
			sets[units] = kept
		})
	}
	for _, tc := range []struct {
		name            string
		refExp, diffExp int
		change          func(f tensorFolders)
		exit            int
		conclusion      string   // Plumbline's
		differs         []string // what it says of the script
	}{
		{"floor", -7, -16, nil, exitDone, "conforms (floor-candidate)", nil},
		{"drilldown", -16, -15, nil, exitDone, "conforms (floor-candidate)", nil},
		{"ambiguous", -18, -14, nil, exitFails, "fails (ambiguous)", nil},
		{"breach", -7, -12, nil, exitFails, "fails (bug-candidate)", nil},
		{"single-op", -7, -16, func(f tensorFolders) { f.value(100, 9.5, "cand", 15, 20, opSDPA) }, exitFails, "fails (bug-candidate)", nil},
		{"late", -7, -16, func(f tensorFolders) { f.value(100, 9.5, "cand", 16, 20, opK) }, exitFails, "fails (bug-candidate)", nil},
		{"missing-five", -7, -16, func(f tensorFolders) {
			for layer := range 5 {
				f.remove("cand", layer, 10, opK)
			}
		}, exitFails, "fails (ambiguous)", []string{"5 of 840 tensors were not compared"}},
		{"sizes", -7, -16, func(f tensorFolders) {
			f.size(16380, "cand", 1, 5, opQ)
			f.size(16388, "ref", 2, 5, opSDPA)
			f.remove("cand", 2, 5, opSDPA)
		}, exitFails, "fails (ambiguous)", []string{"2 of 840 tensors were not compared"}},
		{"last-step-missing", -16, -15, func(f tensorFolders) {
			for layer := range 30 {
				f.remove("cand", layer, 30, opSDPA)
			}
		}, exitFails, "fails (ambiguous)", []string{"30 of 840 tensors", "missing in 30 layers: the script's drill-down rule counts them as 0.0"}},
		{"layer-missing", -7, -16, func(f tensorFolders) {
			for _, step := range allSteps {
				f.remove("ref", 7, step, opSDPA)
			}
		}, exitFails, "fails (ambiguous)", []string{"7 of 840 tensors", "missing in 1 layers"}},
		{"nan-later", -7, -16, func(f tensorFolders) { f.value(5, math.NaN(), "cand", 3, 15, opSDPA) }, exitFails,
			"fails (bug-candidate)", []string{"1 tensors hold a NaN"}},
		{"nan-first", -7, -16, func(f tensorFolders) { f.value(5, math.NaN(), "cand", 3, 1, opSDPA) }, exitFails,
			"fails (bug-candidate)", []string{"1 tensors hold a NaN"}},
		{"nan-in-reference", -7, -16, func(f tensorFolders) { f.value(5, math.NaN(), "ref", 3, 15, opSDPA) }, exitFails,
			"fails (bug-candidate)", []string{"1 tensors hold a NaN"}},
		{"inf-in-both", -7, -16, func(f tensorFolders) {
			f.value(5, math.Inf(1), "cand", 3, 15, opSDPA)
			f.value(5, math.Inf(1), "ref", 3, 15, opSDPA)
		}, exitFails, "fails (bug-candidate)", []string{"1 tensors hold a NaN"}},
		{"zero-reference", -18, -20, func(f tensorFolders) {
			f.write(f.path("ref", 4, 10, opSDPA), make([]float32, 4096))
		}, exitFails, "fails (ambiguous)", []string{"1 references are all zero"}},
		{"empty", -7, -16, func(f tensorFolders) {
			for _, dir := range []string{"ref", "cand"} {
				require.NoError(f.t, os.RemoveAll(dir))
				require.NoError(f.t, os.Mkdir(dir, 0o777))
			}
		}, exitNotJudged, "nothing judged", []string{"the script ends with a traceback"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := linkTensors(t, sets[[2]int{tc.refExp, tc.diffExp}])
			if tc.change != nil {
				tc.change(f)
			}
			read := func(name string) string {
				b, err := os.ReadFile(name)
				require.NoError(t, err)
				return string(b)
			}
			var out, errs bytes.Buffer
			code := run([]string{"diff", "--ref", "ref", "--cand", "cand", "--csv", "raw.csv", "--summary", "summary.md"}, &out, &errs)
			assert.Equal(t, tc.exit, code)
			assert.Empty(t, errs.String())

			script, own, found := strings.Cut(out.String(), "\n=== PLUMBLINE ===\n")
			require.True(t, found)
			assert.Equal(t, read(filepath.Join(golden, tc.name+".stdout.txt")), script)
			sum := sha256.Sum256([]byte(read("raw.csv")))
			assert.Contains(t, string(sums), hex.EncodeToString(sum[:])+"  "+tc.name+"\n", "the CSV")
			_, summary, _ := strings.Cut(read("summary.md"), "\nThreshold:")
			summary, extra, differs := strings.Cut("Threshold:"+summary, "## Plumbline's verdict\n")
			assert.Equal(t, read(filepath.Join(golden, tc.name+".summary.md")), summary)

			assert.Contains(t, own, "conclusion: "+tc.conclusion+"\n")
			assert.Equal(t, len(tc.differs) > 0, differs, "a section in the summary where the verdicts differ")
			assert.Equal(t, len(tc.differs) > 0, strings.Contains(own, "as the script would say: "))
			for _, s := range tc.differs {
				assert.Contains(t, own, s)
				assert.Contains(t, extra, s)
			}

			// The CSV alone comes to the same, in text and verdict.
			var again bytes.Buffer
			assert.Equal(t, tc.exit, run([]string{"diff", "--from-csv", "raw.csv", "--csv", "raw.csv2", "--summary", "summary.md2"}, &again, &errs))
			fromCSV, ownCSV, _ := strings.Cut(again.String(), "\n=== PLUMBLINE ===\n")
			assert.Equal(t, script, strings.NewReplacer("csv2", "csv", "md2", "md").Replace(fromCSV))
			assert.Contains(t, ownCSV, "conclusion: "+tc.conclusion+"\n")
			assert.Equal(t, read("raw.csv"), read("raw.csv2"))

			var object bytes.Buffer
			assert.Equal(t, tc.exit, run([]string{"diff", "--ref", "ref", "--cand", "cand", "--json"}, &object, &errs))
			var j diffJSON
			require.NoError(t, json.Unmarshal(object.Bytes(), &j))
			assert.True(t, strings.HasPrefix(tc.conclusion, string(j.Conclusion)))
			assert.Equal(t, 840, j.Expected)
			assert.Len(t, j.Differs, len(tc.differs))
		})
	}
}

// A folder of just the size of a tensor passes the script's checks, and kills it as
// it opens it: nothing it would have said is claimed.
func TestDiffWhereTheScriptDies(t *testing.T) {
	t.Chdir(t.TempDir())
	name := kernel.Gemma4().FileOf(kernel.Key{})
	for _, dir := range []string{"ref", "cand", filepath.Join("cand", name)} {
		require.NoError(t, os.Mkdir(dir, 0o777))
	}
	st, err := os.Stat(filepath.Join("cand", name))
	require.NoError(t, err)
	if st.Size() <= 0 || st.Size()%4 != 0 {
		t.Skip("a folder has no size that a tensor has here")
	}
	values := make([]byte, st.Size())
	values[0], values[4] = 1, 1
	file2 := kernel.Gemma4().FileOf(kernel.Key{Position: 1})
	for _, path := range []string{filepath.Join("ref", name), filepath.Join("ref", file2), filepath.Join("cand", file2)} {
		require.NoError(t, os.WriteFile(path, values, 0o666))
	}
	inventory := fmt.Sprintf(`{"layer_types": {"a": {"heads": 1, "kv_heads": 1, "head_dim": %d}}, "layers": 1, "positions": {"first_pos": 22, "steps": [1, 5]}, "ops": [{"name": "q_normed"}]}`, st.Size()/4)
	require.NoError(t, os.WriteFile("inv.json", []byte(inventory), 0o666))
	for _, from := range [][]string{{"--ref", "ref", "--cand", "cand", "--csv", "raw.csv"}, {"--from-csv", "raw.csv"}} {
		args := append([]string{"diff", "--inventory", "inv.json", "--summary", "s.md", "--overwrite"}, from...)
		var out, errs bytes.Buffer
		require.Equal(t, exitFails, run(args, &out, &errs), errs.String())
		text, err := os.ReadFile("s.md")
		require.NoError(t, err)
		assert.Contains(t, out.String(), "The script says nothing: it ends with a traceback, reading layer=0 pos=1 op=q_normed.\n")
		assert.Contains(t, out.String(), "as the script would say: nothing. Plumbline differs, and decides:\n  1 tensors have the size that they should have and can't be read: the script ends with a traceback")
		assert.Contains(t, string(text), "The script writes no summary here")
		for _, s := range []string{out.String(), string(text)} {
			for _, claim := range []string{"HOLDS", "CLASSIFICATION", "floor-candidate", "what the script would say."} {
				assert.NotContains(t, s, claim)
			}
		}
		var object bytes.Buffer
		require.Equal(t, exitFails, run(append(args, "--json"), &object, &errs))
		var j diffJSON
		require.NoError(t, json.Unmarshal(object.Bytes(), &j))
		assert.True(t, j.Script.Crashes)
		assert.False(t, j.Script.BoundHolds)
		assert.Empty(t, j.Script.Classification)
		assert.Equal(t, 1, j.Counts.Unreadable)
	}
}
