package kernel_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/kernel"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// small is an inventory of 3 layers x 2 positions x 4 ops.
func small(t testing.TB, file, tensor string) *kernel.Inventory {
	t.Helper()
	inv := &kernel.Inventory{Name: "small", Types: []kernel.LayerType{{Name: "local", Heads: 4, KVHeads: 2, HeadDim: 8}, {Name: "global", Heads: 8, KVHeads: 1, HeadDim: 16}},
		Layers: []int{0, 1, 0}, Ops: kernel.StandardOps(), Positions: kernel.Steps(22, 1, 5), BoundOp: 3, LateLayer: 1, File: file, Tensor: tensor}
	require.NoError(t, inv.Validate())
	return inv
}

const rawFile = "hf2q_{op}_layer{layer:02}_pos{pos:02}.bin"

// values are a tensor's; shift tells the sides apart.
func values(inv *kernel.Inventory, at kernel.Key, shift float32) []float32 {
	heads, width := inv.Shape(at)
	out := make([]float32, heads*width)
	for i := range out {
		out[i] = float32(1+inv.Index(at)) + float32(i)/8 + shift*float32(i%3)
	}
	return out
}

func bytesOf(v []float32) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

// writeRaw writes both sides as raw files.
func writeRaw(t testing.TB, inv *kernel.Inventory) (ref, cand string) {
	t.Helper()
	dir := t.TempDir()
	for side, shift := range map[string]float32{"ref": 0, "cand": 1.0 / 4096} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, side), 0o777))
		for i := range inv.Len() {
			require.NoError(t, os.WriteFile(filepath.Join(dir, side, inv.FileOf(inv.Key(i))), bytesOf(values(inv, inv.Key(i), shift)), 0o666))
		}
	}
	return filepath.Join(dir, "ref"), filepath.Join(dir, "cand")
}

func compare(t testing.TB, inv *kernel.Inventory, ref, cand kernel.Source, workers int) []kernel.Row {
	t.Helper()
	var rows []kernel.Row
	require.NoError(t, kernel.Compare(context.Background(), inv, ref, cand, kernel.Options{Workers: workers}, func(r kernel.Row) error {
		rows = append(rows, r)
		return nil
	}))
	require.Len(t, rows, inv.Len())
	return rows
}

// TestCompareFolders: every tensor, in order, with the figures of package metric,
// whatever the number of workers.
func TestCompareFolders(t *testing.T) {
	inv := small(t, rawFile, "")
	ref, cand := writeRaw(t, inv)
	for _, workers := range []int{0, 1, 3, 50} {
		for i, r := range compare(t, inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), workers) {
			require.Equal(t, inv.Key(i), r.Key)
			want := metric.CompareTensors(values(inv, r.Key, 1.0/4096), values(inv, r.Key, 0))
			require.Equal(t, want, *r.Stats)
			require.Equal(t, kernel.Figures{MaxAbs: want.MaxAbs, MeanAbs: want.MeanAbs, MSE: want.MSE, NRMSE: want.NRMSE(), RelErrPct: want.LegacyRelErrPct(),
				RefMeanAbs: want.RefMeanAbs, CandMeanAbs: want.CandMeanAbs}, r.Figures)
			require.True(t, r.Compared())
		}
	}
}

// TestTensorInventory: whatever is wrong with a file is a row, with the script's
// note, and never silence.
func TestTensorInventory(t *testing.T) {
	inv := small(t, rawFile, "")
	type damage struct {
		name    string
		do      func(t *testing.T, path string)
		problem kernel.Problem
		note    string // PATH stands for the path
	}
	for _, d := range []damage{
		{"gone", func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, kernel.Missing, "MISSING:PATH"},
		{"empty", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) }, kernel.WrongSize, "SIZE_MISMATCH:PATH:expected=64,got=0"},
		{"a value short", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 60)) }, kernel.WrongSize, "SIZE_MISMATCH:PATH:expected=64,got=60"},
		{"a byte long", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 65)) }, kernel.WrongSize, "SIZE_MISMATCH:PATH:expected=64,got=65"},
		{"a local layer's size", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 128)) }, kernel.WrongSize, "SIZE_MISMATCH:PATH:expected=64,got=128"},
		{"a directory", func(t *testing.T, path string) {
			require.NoError(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o777)))
		}, kernel.WrongSize, "SIZE_MISMATCH:PATH:expected=64,got=BYTES"}, // os.path.getsize has one of a folder
		{"a link to itself", func(t *testing.T, path string) {
			require.NoError(t, errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path)))
		}, kernel.Missing, "MISSING:PATH"}, // os.path.exists is false
		{"a link to nothing", func(t *testing.T, path string) {
			require.NoError(t, errors.Join(os.Remove(path), os.Symlink("nothing", path)))
		}, kernel.Missing, "MISSING:PATH"},
		{"without permission", func(t *testing.T, path string) {
			if os.Geteuid() == 0 {
				t.Skip("root may read everything")
			}
			require.NoError(t, os.Chmod(path, 0))
		}, kernel.Unreadable, "UNREADABLE:PATH:dumpfmt: float32 file: open PATH: permission denied"},
	} {
		t.Run(d.name, func(t *testing.T) {
			ref, cand := writeRaw(t, inv)
			hit := kernel.Key{Layer: 1, Position: 0, Op: k} // 1 x 16 values
			path := filepath.Join(cand, inv.FileOf(hit))
			d.do(t, path)
			if st, err := os.Stat(path); err == nil {
				d.note = strings.ReplaceAll(d.note, "BYTES", fmt.Sprint(st.Size()))
			}
			for i, r := range compare(t, inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), 2) {
				if inv.Key(i) != hit {
					require.True(t, r.Compared(), "%s", inv.Coordinates(r.Key))
					continue
				}
				require.Equal(t, d.problem, r.Problem)
				require.Equal(t, strings.ReplaceAll(d.note, "PATH", path), r.Note)
				require.Nil(t, r.Stats)
			}
			// Both sides are told, the reference first.
			for _, r := range compare(t, inv, kernel.Folder(cand, inv), kernel.Folder(filepath.Join(ref, "nothing"), inv), 2) {
				if r.Key == hit {
					require.Equal(t, strings.ReplaceAll(d.note, "PATH", path)+";MISSING:"+filepath.Join(ref, "nothing", inv.FileOf(hit)), r.Note)
					require.Equal(t, d.problem, r.Problem)
				}
			}
		})
	}
}

// A folder is named as Python's os.path.join would.
func TestNotesKeepTheFolderAsGiven(t *testing.T) {
	inv := small(t, rawFile, "")
	for dir, want := range map[string]string{"none/": "MISSING:none/hf2q_q", "./none": "MISSING:./none/hf2q_q", "none//": "MISSING:none//hf2q_q"} {
		r := compare(t, inv, kernel.Folder(dir, inv), kernel.Folder(dir, inv), 1)
		require.True(t, strings.HasPrefix(r[0].Note, want), "%s", r[0].Note)
	}
}

// A file where a folder should be holds nothing.
func TestTensorInventoryBehindAFile(t *testing.T) {
	inv := small(t, "{op}/{layer}/{pos}.bin", "")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "q_normed"), nil, 0o666))
	r := compare(t, inv, kernel.Folder(dir, inv), kernel.Folder(dir, inv), 1)
	require.Equal(t, kernel.Missing, r[0].Problem)
	require.Equal(t, kernel.Missing, r[1].Problem)
}

// NaN and infinity at every place of a tensor, the first and the last included.
func TestCompareSeesEveryNaN(t *testing.T) {
	inv := small(t, rawFile, "")
	bad := kernel.Key{Layer: 2, Position: 1, Op: sdpa}
	for i := range 32 {
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			source := func(broken bool) kernel.Source {
				return kernel.Func(func(at kernel.Key) []float32 {
					out := values(inv, at, 0)
					if broken && at == bad {
						out[i] = float32(x)
					}
					return out
				}).Of(inv)
			}
			j := kernel.NewJudge(inv, kernel.DefaultThresholds())
			for _, r := range compare(t, inv, source(false), source(true), 1) {
				require.NoError(t, j.Add(r))
			}
			_, own := j.Verdicts()
			require.Equal(t, kernel.Fails, own.Conclusion)
			require.Equal(t, 1, own.NonFinite)
			require.Equal(t, kernel.KindNonFinite, own.Findings[0].Kind)
			require.Equal(t, bad, own.Findings[0].Key)
			require.Contains(t, own.Findings[0].Says, fmt.Sprintf("the first at index %d", i))
		}
	}
}

// The other formats hold the same figures, and their own ways to be wrong.
func TestCompareFormats(t *testing.T) {
	raw := small(t, rawFile, "")
	ref, cand := writeRaw(t, raw)
	want := compare(t, raw, kernel.Folder(ref, raw), kernel.Folder(cand, raw), 1)
	npy := func(at kernel.Key, shape string, shift float32) []byte {
		header := "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n"
		return append(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0), append([]byte(header), bytesOf(values(raw, at, shift))...)...)
	}
	shapeOf := func(at kernel.Key) (int, int) { return raw.Shape(at) }
	write := map[string]func(t *testing.T, inv *kernel.Inventory, dir string, shift float32, skip kernel.Key, swap kernel.Key){
		"x_{op}_{layer}_{step}.npy": func(t *testing.T, inv *kernel.Inventory, dir string, shift float32, skip, swap kernel.Key) {
			for i := range inv.Len() {
				at := inv.Key(i)
				heads, width := shapeOf(at)
				shape := fmt.Sprintf("(%d, %d)", heads, width)
				switch at {
				case skip:
					continue
				case swap:
					shape = fmt.Sprintf("(%d, %d)", width, heads)
				default:
					if i%3 == 0 {
						shape = fmt.Sprintf("(1, %d, %d)", heads, width)
					}
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, inv.FileOf(at)), npy(at, shape, shift), 0o666))
			}
		},
		"layer{layer:03}.npz#{op}.{pos}": func(t *testing.T, inv *kernel.Inventory, dir string, shift float32, skip, swap kernel.Key) {
			files := map[string]*zip.Writer{}
			content := map[string]*bytes.Buffer{}
			for i := range inv.Len() {
				at := inv.Key(i)
				name := inv.FileOf(at)
				if files[name] == nil {
					content[name] = &bytes.Buffer{}
					files[name] = zip.NewWriter(content[name])
				}
				heads, width := shapeOf(at)
				shape := fmt.Sprintf("(%d,)", heads*width)
				if at == skip {
					continue
				}
				if at == swap {
					shape = fmt.Sprintf("(%d, %d)", width, heads)
				}
				method := []uint16{zip.Store, zip.Deflate}[i%2]
				w, err := files[name].CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("%s.%d.npy", inv.Ops[at.Op].Name, inv.Positions[at.Position].Pos), Method: method})
				require.NoError(t, err)
				_, err = w.Write(npy(at, shape, shift))
				require.NoError(t, err)
			}
			for name, w := range files {
				require.NoError(t, w.Close())
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), content[name].Bytes(), 0o666))
			}
		},
		"all.safetensors#{op}.{layer}.{step}": func(t *testing.T, inv *kernel.Inventory, dir string, shift float32, skip, swap kernel.Key) {
			var specs []dumpfmt.TensorSpec
			var keys []kernel.Key
			for i := range inv.Len() {
				at := inv.Key(i)
				heads, width := shapeOf(at)
				if at == skip {
					continue
				}
				if at == swap {
					heads, width = width, heads
				}
				keys = append(keys, at)
				specs = append(specs, dumpfmt.TensorSpec{Name: fmt.Sprintf("%s.%d.%d", inv.Ops[at.Op].Name, at.Layer, inv.Positions[at.Position].Step), DType: dumpfmt.F32, Shape: []int{heads, width}})
			}
			w, err := dumpfmt.CreateSafetensors(filepath.Join(dir, "all.safetensors"), specs, nil, dumpfmt.WriteOptions{})
			require.NoError(t, err)
			for i, at := range keys {
				require.NoError(t, w.WriteFloat32s(specs[i].Name, values(inv, at, shift)))
			}
			require.NoError(t, w.Commit())
		},
	}
	nowhere := kernel.Key{Layer: -1}
	for pattern, writeSide := range write {
		t.Run(pattern, func(t *testing.T) {
			file, tensor, _ := strings.Cut(pattern, "#")
			inv := small(t, file, tensor)
			ref, cand := t.TempDir(), t.TempDir()
			skip, swap := kernel.Key{Layer: 0, Position: 1, Op: v}, kernel.Key{Layer: 2, Position: 0, Op: q}
			writeSide(t, inv, ref, 0, nowhere, nowhere)
			writeSide(t, inv, cand, 1.0/4096, skip, swap)
			for i, r := range compare(t, inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), 2) {
				switch r.Key {
				case skip:
					require.Equal(t, kernel.Missing, r.Problem, r.Note)
					require.True(t, strings.HasPrefix(r.Note, "MISSING:"+cand), r.Note)
				case swap:
					require.Equal(t, kernel.WrongSize, r.Problem)
					require.Contains(t, r.Note, "expected=4x8,got=[8 4]")
				default:
					require.True(t, r.Compared(), r.Note)
					require.Equal(t, *want[i].Stats, *r.Stats)
				}
			}
		})
	}
	// A file that is none of that kind is unreadable, each of its tensors.
	inv := small(t, "all.safetensors", "{op}.{layer}.{step}")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "all.safetensors"), []byte("nothing"), 0o666))
	for _, r := range compare(t, inv, kernel.Folder(dir, inv), kernel.Folder(dir, inv), 1) {
		require.Equal(t, kernel.Unreadable, r.Problem)
		require.Contains(t, r.Note, "7 of 8 bytes after byte 0x0")
	}
}

// Large tensors stream, whatever the chunks, and come to the same.
func TestCompareStreamsLargeTensors(t *testing.T) {
	inv := &kernel.Inventory{Name: "large", Types: []kernel.LayerType{{Name: "a", Heads: 3, KVHeads: 1, HeadDim: 100_003}}, Layers: []int{0},
		Ops: kernel.StandardOps()[3:], Positions: kernel.Steps(1, 1), File: "x.bin"}
	require.NoError(t, inv.Validate())
	ref, cand := writeRaw(t, inv)
	r := compare(t, inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), 1)
	a, b := values(inv, r[0].Key, 0), values(inv, r[0].Key, 1.0/4096)
	require.Equal(t, metric.CompareTensors(b, a), *r[0].Stats)
	heads, err := kernel.Heads(context.Background(), inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), r[0].Key)
	require.NoError(t, err)
	require.Equal(t, metric.CompareHeads(b, a, 3), heads)
	memory := kernel.Func(func(kernel.Key) []float32 { return b }).Of(inv)
	mixed := compare(t, inv, kernel.Folder(ref, inv), memory, 1)
	require.Equal(t, *r[0].Stats, *mixed[0].Stats)
}

func TestHeadsOfAMissingTensor(t *testing.T) {
	inv := small(t, rawFile, "")
	ref, _ := writeRaw(t, inv)
	none := kernel.Func(func(kernel.Key) []float32 { return nil }).Of(inv)
	_, err := kernel.Heads(context.Background(), inv, kernel.Folder(ref, inv), none, kernel.Key{})
	var p *kernel.ProblemError
	require.ErrorAs(t, err, &p)
	require.Equal(t, kernel.Missing, p.Problem)
	short := kernel.Func(func(kernel.Key) []float32 { return []float32{1} }).Of(inv)
	r := compare(t, inv, short, short, 1)
	require.Equal(t, "SIZE_MISMATCH:hf2q_q_normed_layer00_pos22.bin:expected=128,got=4;SIZE_MISMATCH:hf2q_q_normed_layer00_pos22.bin:expected=128,got=4", r[0].Note)
}

// A hundred thousand tensors: all of them counted, few of them in flight.
func TestCompareManyTensors(t *testing.T) {
	steps := make([]int, 2500)
	for i := range steps {
		steps[i] = i + 1
	}
	inv := small(t, rawFile, "")
	inv.Layers = make([]int, 10)
	inv, err := inv.WithPositions(kernel.Steps(1, steps...))
	require.NoError(t, err)
	require.Equal(t, 100_000, inv.Len())
	var asked, given, most atomic.Int64
	one := make([]float32, 32)
	source := kernel.Func(func(at kernel.Key) []float32 {
		if n := asked.Add(1) - 2*given.Load(); n > most.Load() {
			most.Store(n)
		}
		heads, width := inv.Shape(at)
		return one[:heads*width]
	}).Of(inv)
	j := kernel.NewJudge(inv, kernel.DefaultThresholds())
	require.NoError(t, kernel.Compare(context.Background(), inv, source, source, kernel.Options{Workers: 4}, func(r kernel.Row) error {
		given.Add(1)
		return j.Add(r)
	}))
	_, own := j.Verdicts()
	require.Equal(t, 100_000, own.Compared)
	require.Equal(t, 100_000, own.ZeroReference)
	require.Less(t, most.Load(), int64(2*64*16), "rows that wait for their turn are bounded")
}

func TestCompareEnds(t *testing.T) {
	inv := small(t, rawFile, "")
	ref, cand := writeRaw(t, inv)
	stop := errors.New("enough")
	n := 0
	err := kernel.Compare(context.Background(), inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), kernel.Options{Workers: 3}, func(kernel.Row) error {
		if n++; n == 5 {
			return stop
		}
		return nil
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, 5, n)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = kernel.Compare(ctx, inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), kernel.Options{}, func(kernel.Row) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
}

// The legacy denominator would let this pass: the error sits in few values, so that
// its mean is small.
func TestKernelBoundIsNotTheLegacyFormula(t *testing.T) {
	inv := small(t, rawFile, "")
	side := func(shift float32) kernel.Source {
		return kernel.Func(func(at kernel.Key) []float32 {
			heads, width := inv.Shape(at)
			out := make([]float32, heads*width)
			for i := range out {
				out[i] = 1e-4
			}
			out[0] += shift
			return out
		}).Of(inv)
	}
	j := kernel.NewJudge(inv, kernel.DefaultThresholds())
	for _, r := range compare(t, inv, side(0), side(2e-4), 1) {
		require.NoError(t, j.Add(r))
		if r.Op == sdpa {
			require.Less(t, r.RelErrPct/100, 0.15, "the legacy figure")
			require.Greater(t, r.NRMSE, 0.15)
		}
	}
	s, own := j.Verdicts()
	assert.False(t, s.BoundHolds)
	assert.False(t, own.BoundHolds)
	assert.Equal(t, kernel.Ambiguous, own.Class)
}

// BenchmarkCompareFolders reads folders of small files from the page cache: 8
// positions, or with PLUMBLINE_BENCH_LARGE set 200, i.e. 48,000 files, 639 MB. MB/s
// counts both sides.
func BenchmarkCompareFolders(b *testing.B) {
	steps := make([]int, 8)
	if os.Getenv("PLUMBLINE_BENCH_LARGE") != "" {
		steps = make([]int, 200)
	}
	for i := range steps {
		steps[i] = i + 1
	}
	inv, err := kernel.Gemma4().WithPositions(kernel.Steps(22, steps...))
	require.NoError(b, err)
	benchmarkCompare(b, inv)
}

// BenchmarkCompareLargeTensor streams one tensor of 256 MB per side, on one core.
func BenchmarkCompareLargeTensor(b *testing.B) {
	inv := &kernel.Inventory{Name: "large", Types: []kernel.LayerType{{Name: "a", Heads: 64, KVHeads: 1, HeadDim: 1 << 20}}, Layers: []int{0},
		Ops: kernel.StandardOps()[3:], Positions: kernel.Steps(1, 1), File: "x.bin"}
	require.NoError(b, inv.Validate())
	benchmarkCompare(b, inv)
}

func benchmarkCompare(b *testing.B, inv *kernel.Inventory) {
	ref, cand := writeRaw(b, inv)
	var size int64
	for i := range inv.Len() {
		heads, width := inv.Shape(inv.Key(i))
		size += 8 * int64(heads) * int64(width)
	}
	b.SetBytes(size)
	for b.Loop() {
		compare(b, inv, kernel.Folder(ref, inv), kernel.Folder(cand, inv), 0)
	}
	b.ReportMetric(float64(2*inv.Len()), "files/op")
}
