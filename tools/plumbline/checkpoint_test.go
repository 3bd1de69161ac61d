package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// A NaN in the checkpoint would pass for a difference in every check that wants
// one: the model is refused, and no dump is written.
func TestLayersRefusesAWeightThatIsNaN(t *testing.T) {
	dir := modelFolder(t)
	path := filepath.Join(dir, "model.safetensors")
	weights, err := dumpfmt.OpenSafetensors(path)
	require.NoError(t, err)
	norm, ok := weights.Tensor("model.norm.weight")
	require.True(t, ok)
	require.NoError(t, weights.Close())
	// The upper half of a float32 is a bfloat16: 0x7FC0 is NaN in both.
	nan, last := []byte{0xC0, 0x7F}, norm.Offset+norm.Bytes-2
	require.Contains(t, []dumpfmt.DType{dumpfmt.BF16, dumpfmt.F32}, norm.DType)
	require.NoError(t, os.Chmod(path, 0o644))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(nan, last)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	dump := filepath.Join(t.TempDir(), "x.layers.bin")
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitBroken, run([]string{"layers", "foobar", "--templated", "--ids", "1,2", "--model", dir, "--dump", dump}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "tensor model.norm.weight: element ")
	require.Contains(t, stderr.String(), "got NaN, want a finite value")
	require.NoFileExists(t, dump)
}

// Tensors that the model as configured doesn't use are named, like config keys.
func TestTensorsNotUsedAreNamed(t *testing.T) {
	dir := modelFolder(t)
	require.NoError(t, os.Rename(filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "a.safetensors")))
	w, err := dumpfmt.CreateSafetensors(filepath.Join(dir, "b.safetensors"),
		[]dumpfmt.TensorSpec{{Name: "a\x1b[31mdapter", DType: dumpfmt.F32, Shape: []int{1}}}, nil, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, w.WriteFloat32s("a\x1b[31mdapter", []float32{1}))
	require.NoError(t, w.Commit())
	require.NoError(t, writeFile(filepath.Join(dir, "model.safetensors.index.json"),
		[]byte(`{"weight_map":{"model.norm.weight":"a.safetensors","a\u001b[31mdapter":"b.safetensors"}}`)))
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitDone, run([]string{"layers", "foobar", "--templated", "--ids", "1,2", "--model", dir,
		"--dump", filepath.Join(t.TempDir(), "x.layers.bin")}, &stdout, &stderr), stderr.String())
	require.Contains(t, stderr.String(), `plumbline: tensors not used: "a\x1b[31mdapter"`+"\n")
}

func TestPrintables(t *testing.T) {
	require.Equal(t, `a, "b\n" and 1 more`, printables([]string{"a", "b\n", "c"}, 2))
	require.Equal(t, "a", printables([]string{"a"}, 2))
}

func TestShellQuotesControlCharacters(t *testing.T) {
	require.Equal(t, `plain 'a b' 'it'\''s' $'it\'s\012\033[31m\303\251\\'`, shellJoin([]string{"plain", "a b", "it's", "it's\n\x1b[31mé\\"}))
}
