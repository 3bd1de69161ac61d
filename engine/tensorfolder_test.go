package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// attentionRun has two layers of other widths, and four positions; a value says
// where it is from: layer, part, position, channel.
func attentionRun() engine.ProbeValues {
	run := engine.ProbeValues{}
	for n, width := range []int{2, 3} {
		for i, op := range engine.AttentionOps() {
			m := engine.Matrix{Rows: 4, Width: width}
			for j := range 4 * width {
				m.Data = append(m.Data, float32(1000*n+100*i+10*(j/width)+j%width))
			}
			run[engine.Block(n, op.Part)] = m
		}
	}
	return run
}

func TestTensorFolderWritesOneFilePerTensor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dense")
	f := engine.TensorFolder{Layers: 2, Positions: []int{1, 3}}
	require.Len(t, f.Probes(), 8)
	n, err := f.Write(t.Context(), dir, attentionRun(), dumpfmt.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 16, n)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 16)
	// 1131, 1132 in float32, little-endian: 0x448D6000, 0x448D8000; 1130 is 0x448D4000.
	data, err := os.ReadFile(filepath.Join(dir, "hf2q_k_normed_layer01_pos03.bin"))
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0x40, 0x8d, 0x44, 0, 0x60, 0x8d, 0x44, 0, 0x80, 0x8d, 0x44}, data)
	data, err = os.ReadFile(filepath.Join(dir, "hf2q_sdpa_out_layer00_pos01.bin"))
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0x9b, 0x43, 0, 0x80, 0x9b, 0x43}, data) // 310, 311

	_, err = f.Write(t.Context(), dir, attentionRun(), dumpfmt.WriteOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = f.Write(t.Context(), dir, attentionRun(), dumpfmt.WriteOptions{Overwrite: true})
	require.NoError(t, err)
}

func TestTensorFolderNames(t *testing.T) {
	require.Equal(t, "hf2q_v_normed_layer05_pos22.bin", engine.AttentionFile("v_normed", 5, 22))
	require.Equal(t, "hf2q_v_normed_layer123_pos4567.bin", engine.AttentionFile("v_normed", 123, 4567))
	dir := t.TempDir()
	f := engine.TensorFolder{Layers: 1, Positions: []int{0}, Ops: []engine.TensorOp{{Name: "out", Part: engine.PartAttnOut}},
		File: func(op string, layer, position int) string { return fmt.Sprintf("%d/%s-%d.f32", layer, op, position) }}
	n, err := f.Write(t.Context(), dir, attentionRun(), dumpfmt.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.FileExists(t, filepath.Join(dir, "0", "out-0.f32"))
}

func TestTensorFolderRefusesBeforeItWrites(t *testing.T) {
	same := func(string, int, int) string { return "one.bin" }
	out := func(string, int, int) string { return "../one.bin" }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name, want string
		ctx        context.Context
		f          engine.TensorFolder
	}{
		{"no positions", "got 2 layers, 4 ops and 0 positions", t.Context(), engine.TensorFolder{Layers: 2}},
		{"a layer too many", "blocks.2.q: got no such probe of the run", t.Context(), engine.TensorFolder{Layers: 3, Positions: []int{0}}},
		{"a position too many", "blocks.0.q: got position 4, want 0 to 3", t.Context(), engine.TensorFolder{Layers: 2, Positions: []int{0, 4}}},
		{"a position twice", `got file "hf2q_q_normed_layer00_pos01.bin" a second time`, t.Context(), engine.TensorFolder{Layers: 2, Positions: []int{1, 1}}},
		{"one name", `got file "one.bin" a second time`, t.Context(), engine.TensorFolder{Layers: 2, Positions: []int{1}, File: same}},
		{"outside", `got file "../one.bin", want a path inside the folder`, t.Context(), engine.TensorFolder{Layers: 1, Positions: []int{1}, File: out}},
		{"ended", context.Canceled.Error(), ended, engine.TensorFolder{Layers: 2, Positions: []int{1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			_, err := c.f.Write(c.ctx, dir, attentionRun(), dumpfmt.WriteOptions{})
			require.ErrorContains(t, err, c.want)
			_, err = os.Stat(dir)
			require.True(t, errors.Is(err, fs.ErrNotExist))
		})
	}
}

func ExampleTensorFolder() {
	// A run of one layer at one position, as an engine's probes give it.
	run := engine.ProbeValues{"blocks.0.attn_out": {Rows: 1, Width: 2, Data: []float32{1, 2}}}
	dir, err := os.MkdirTemp("", "tensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f := engine.TensorFolder{Layers: 1, Positions: []int{0}, Ops: []engine.TensorOp{{Name: "sdpa_out", Part: engine.PartAttnOut}}}
	n, err := f.Write(context.Background(), dir, run, dumpfmt.WriteOptions{})
	fmt.Println(n, err, engine.AttentionFile("sdpa_out", 0, 0))
	// Output: 1 <nil> hf2q_sdpa_out_layer00_pos00.bin
}
