package kernel_test

import (
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
