package golden_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// tensorSets are the sets of tensors whose recorder is tools/goldens/tensorset.
var tensorSets = []struct {
	name, pins string
	open       func() (*golden.TensorSet, error)
	model      fs.FS
	bfloat16   bool
	tensors    int
}{
	// Outside the layers 3; 8 layers with 2 each; of two layers 3 stages; of two 5 kinds of heads.
	{"qwen3_5-seeded", "qwen3_5", golden.Qwen35, fixtures.Qwen35Model(), false, 3 + 8*2 + 2*3 + 2*5},
	{"qwen3_5-bfloat16", "qwen3_5", golden.Qwen35BFloat16, fixtures.Qwen35Model(), true, 3 + 8*2},
	// Outside 3; a row of the stream per layer; 26 routers with 3 each; of four layers
	// 9 stages, of three of them what shared experts give.
	{"deepseek2-seeded", "deepseek2", golden.DeepSeek2, fixtures.DeepSeek2Model(), false, 3 + 27 + 26*3 + 4*9 + 3},
	{"deepseek2-bfloat16", "deepseek2", golden.DeepSeek2BFloat16, fixtures.DeepSeek2Model(), true, 3 + 27 + 26*3 + 4*2},
	{"deepseek2-grouped", "deepseek2", golden.DeepSeek2Grouped, fixtures.DeepSeek2GroupedModel(), false, 3 + 5 + 3*3 + 4*9 + 2},
	{"deepseek-gates", "deepseek2", golden.DeepSeekGates, fixtures.DeepSeekGates(), false, 4},
}

func TestEveryRecordedTensorSetVerifies(t *testing.T) {
	for _, s := range tensorSets {
		t.Run(s.name, func(t *testing.T) {
			set, err := s.open()
			require.NoError(t, err)
			assert.Empty(t, set.Verify(s.model))
			for _, name := range set.Manifest.Cases {
				c, err := set.Case(name)
				require.NoError(t, err)
				assert.Len(t, c.Tensors, s.tensors)
				if len(c.TokenIDs) > 0 {
					assert.LessOrEqual(t, c.Positions[len(c.Positions)-1], len(c.TokenIDs)+len(c.ForcedIDs)-2)
				}
				for tensor, rows := range c.Tensors {
					// Copies and choices are exact; all else rounds.
					floor := set.Manifest.Precision.Cases[name][tensor]
					exact := tensor == "embed" || tensor == "hidden" || strings.HasSuffix(tensor, "route_ids")
					assert.Equal(t, exact, floor == 0, "%s %s: %v", name, tensor, floor)
					// A router works in float32.
					held := s.bfloat16 && !strings.Contains(tensor, ".route")
					for _, row := range rows {
						require.True(t, !held || isBFloat16(row), "%s %s", name, tensor)
					}
				}
				for i, row := range c.Tensors["logits"] {
					assert.Equal(t, c.OutputIDs[i], largest(row), "%s: row %d", name, i)
				}
			}
		})
	}
}

// isBFloat16 reports whether a row is a float32 copy of bfloat16 values.
func isBFloat16(row []float32) bool {
	for _, x := range row {
		if math.Float32bits(x)&0xFFFF != 0 {
			return false
		}
	}
	return true
}

func largest(row []float32) int {
	best := 0
	for k, x := range row {
		if x > row[best] {
			best = k
		}
	}
	return best
}

func TestADamagedTensorSetIsNamed(t *testing.T) {
	for _, s := range tensorSets {
		t.Run(s.name, func(t *testing.T) {
			set, err := s.open()
			require.NoError(t, err)
			damaged := func(change func(fs.FS) (fs.FS, error)) []golden.Problem {
				d, err := set.Replaced(change)
				require.NoError(t, err)
				return d.Verify(s.model)
			}
			for name, h := range set.Manifest.Goldens.Files {
				path, bit := "golden/"+s.name+"/"+name, int(rand.Int64N(8*h.Bytes))
				problems := damaged(func(f fs.FS) (fs.FS, error) { return mutant.FlipBit(f, name, bit) })
				require.Len(t, problems, 1, "%s bit %d", name, bit)
				assert.Equal(t, path, problems[0].File)
				problems = damaged(func(f fs.FS) (fs.FS, error) { return copied(f, func(m fstest.MapFS) { delete(m, name) }) })
				require.Len(t, problems, 1)
				assert.Equal(t, []string{path, "file"}, []string{problems[0].File, problems[0].What})
			}
			problems := damaged(func(f fs.FS) (fs.FS, error) {
				return copied(f, func(m fstest.MapFS) { m["old.safetensors"] = &fstest.MapFile{Data: []byte("x")} })
			})
			require.Len(t, problems, 1)
			assert.Equal(t, "orphan", problems[0].What)
			for name, h := range set.Manifest.Checkpoint.Files {
				model, err := mutant.FlipBit(s.model, name, int(rand.Int64N(8*h.Bytes)))
				require.NoError(t, err)
				problems := set.Verify(model)
				require.Len(t, problems, 1)
				assert.Equal(t, set.Manifest.Checkpoint.Folder+"/"+name, problems[0].File)
			}
		})
	}
}

func copied(f fs.FS, change func(fstest.MapFS)) (fs.FS, error) {
	out := fstest.MapFS{}
	names, err := fs.Glob(f, "*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := fs.ReadFile(f, name)
		if err != nil {
			return nil, err
		}
		out[name] = &fstest.MapFile{Data: data}
	}
	change(out)
	return out, nil
}

// TestTheRecordersOfTensorsAreThoseRecordedWith holds their modules and pins to
// the manifests.
func TestTheRecordersOfTensorsAreThoseRecordedWith(t *testing.T) {
	for _, s := range tensorSets {
		set, err := s.open()
		require.NoError(t, err)
		recorderIsAsRecorded(t, set.Manifest.Recorder, set.Manifest.Reference, s.pins)
	}
}

func recorderIsAsRecorded(t *testing.T, recorder golden.Recorder, reference golden.Reference, family string) {
	t.Helper()
	assert.NotEmpty(t, recorder.Sources)
	for path, want := range recorder.Sources {
		data, err := os.ReadFile("../" + path)
		require.NoError(t, err)
		assert.Equal(t, want, sum(data), "%s was changed since the goldens were recorded: make goldens-%s ACCEPT=1", path, family)
	}
	data, err := os.ReadFile("../tools/goldens/" + family + "/pins.json")
	require.NoError(t, err)
	var pins golden.Reference
	require.NoError(t, json.Unmarshal(data, &pins))
	assert.Equal(t, reference, pins)
}

// TestADTypeIsNotTakenForAnother: who asks for float32 never gets bfloat16, and
// no manifest may claim a floor that allows anything.
func TestADTypeIsNotTakenForAnother(t *testing.T) {
	read := func(set string) string {
		data, err := os.ReadFile(set + ".manifest.json")
		require.NoError(t, err)
		return string(data)
	}
	type opener = func(fs.FS, string) (*golden.TensorSet, error)
	float32s, bfloat16s := opener(golden.OpenTensors), opener(golden.OpenBFloat16Tensors)
	for _, c := range []struct {
		set      string
		open     opener
		old, new string
		want     string
	}{
		{"qwen3_5-seeded", float32s, "", "", ""},
		{"qwen3_5-bfloat16", bfloat16s, "", "", ""},
		{"qwen3_5-bfloat16", float32s, "", "", "arithmetic"},
		{"qwen3_5-seeded", bfloat16s, "", "", "arithmetic"},
		{"qwen3_5-seeded", float32s, `"embed": 0.0`, `"embed": 2e-5`, "precision of case chunk"},
		{"qwen3_5-bfloat16", bfloat16s, `"embed": 0.0`, `"embed": 0.25`, "precision of case chunk"},
		{"qwen3_5-seeded", float32s, `"embed": 0.0`, `"embed": -1e-9`, "precision of case chunk"},
	} {
		data := strings.Replace(read(c.set), c.old, c.new, 1)
		file := c.set + ".manifest.json"
		fsys := fstest.MapFS{
			file:             {Data: []byte(data)},
			file + ".sha256": {Data: fmt.Appendf(nil, "%s  %s\n", golden.HexSum([]byte(data)), file)},
		}
		_, err := c.open(fsys, c.set)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		var bad *golden.ManifestError
		require.ErrorAs(t, err, &bad, c.want)
		assert.Equal(t, c.want, bad.What)
	}
}

// TestAPrecisionForEachTensor: a bound is a multiple of a figure, so each tensor
// has one, and no figure is without its tensor.
func TestAPrecisionForEachTensor(t *testing.T) {
	set, err := golden.Qwen35()
	require.NoError(t, err)
	floors := map[string]float64{}
	for tensor, x := range set.Manifest.Precision.Cases["short"] {
		floors[tensor] = x
	}
	m := *set.Manifest
	m.Precision.Cases = map[string]map[string]float64{}
	for c, f := range set.Manifest.Precision.Cases {
		m.Precision.Cases[c] = f
	}
	m.Precision.Cases["short"] = floors
	changed, err := set.Replaced(func(f fs.FS) (fs.FS, error) { return f, nil })
	require.NoError(t, err)
	changed.Manifest = &m
	assert.Empty(t, changed.Verify(fixtures.Qwen35Model()))

	floors["blocks.9.resid_post"] = 1e-7
	problems := changed.Verify(fixtures.Qwen35Model())
	require.Len(t, problems, 1)
	assert.Equal(t, "precision", problems[0].What)
	delete(floors, "blocks.9.resid_post")
	delete(floors, "blocks.3.q")
	problems = changed.Verify(fixtures.Qwen35Model())
	require.Len(t, problems, 1)
	assert.Equal(t, "precision of blocks.3.q", problems[0].What)
}
