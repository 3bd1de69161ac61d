package kernel_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/kernel"
)

// An archive per op is opened once, not once per tensor: what is open can be read
// after its name is gone.
func TestArchivesStayOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file can't be removed")
	}
	inv := small(t, "{op}.safetensors", "{layer}.{step}")
	dir := t.TempDir()
	for op := range inv.Ops {
		var specs []dumpfmt.TensorSpec
		var data [][]float32
		for i := range inv.Len() {
			at := inv.Key(i)
			if at.Op != op {
				continue
			}
			heads, width := inv.Shape(at)
			specs = append(specs, dumpfmt.TensorSpec{Name: nameIn(inv, at), DType: dumpfmt.F32, Shape: []int{heads, width}})
			data = append(data, values(inv, at, 0))
		}
		w, err := dumpfmt.CreateSafetensors(filepath.Join(dir, inv.Ops[op].Name+".safetensors"), specs, nil, dumpfmt.WriteOptions{})
		require.NoError(t, err)
		for i := range specs {
			require.NoError(t, w.WriteFloat32s(specs[i].Name, data[i]))
		}
		require.NoError(t, w.Commit())
	}
	s := kernel.Folder(dir, inv).Session()
	for i := range inv.Len() {
		if i == len(inv.Ops) {
			for op := range inv.Ops {
				require.NoError(t, os.Remove(filepath.Join(dir, inv.Ops[op].Name+".safetensors")))
			}
		}
		at := inv.Key(i)
		got, err := s.Tensor(at)
		require.NoError(t, err, inv.Coordinates(at))
		v := make([]float32, got.Reader.Len())
		_, err = got.Reader.ReadValues(v, 0)
		require.NoError(t, err)
		require.Equal(t, values(inv, at, 0), v)
	}
	require.NoError(t, s.Close())
	_, err := s.Tensor(inv.Key(0))
	var p *kernel.ProblemError
	require.ErrorAs(t, err, &p)
	require.Equal(t, kernel.Missing, p.Problem)
}

func nameIn(inv *kernel.Inventory, at kernel.Key) string {
	return string(rune('0'+at.Layer)) + "." + string(rune('0'+inv.Positions[at.Position].Step))
}

// An array of another shape than the inventory's isn't inflated to find out.
func TestBombIsARow(t *testing.T) {
	inv := small(t, "all.npz", "{op}.{layer}.{step}")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("q_normed.0.1.npy")
	require.NoError(t, err)
	header := "{'descr': '<f4', 'fortran_order': False, 'shape': (16777216,), }\n"
	_, err = f.Write(append([]byte("\x93NUMPY\x01\x00"+string(rune(len(header)))+"\x00"), header...))
	require.NoError(t, err)
	_, err = f.Write(make([]byte, 64<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "all.npz"), b.Bytes(), 0o666))
	s := kernel.Folder(dir, inv).Session()
	defer func() { require.NoError(t, s.Close()) }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = s.Tensor(inv.Key(0))
	runtime.ReadMemStats(&after)
	var p *kernel.ProblemError
	require.ErrorAs(t, err, &p)
	require.Equal(t, kernel.WrongSize, p.Problem)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
}
