package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

func TestProbeNames(t *testing.T) {
	arch := engine.Arch{Family: "qwen2", Layers: 2, Hidden: 4, Heads: 2, KVHeads: 1, HeadDim: 2, Vocab: 9}
	for list, want := range map[string][]engine.Probe{
		"embed":                                  {"embed"},
		"final_norm, embed,embed":                {"embed", "final_norm"},
		"logits,blocks.1.q":                      {"blocks.1.q", "logits"},
		"blocks.*.resid_mid,blocks.0.resid_post": {"blocks.0.resid_mid", "blocks.0.resid_post", "blocks.1.resid_mid"},
	} {
		got, err := parseProbes(list, arch)
		require.NoError(t, err, list)
		assert.Equal(t, want, got, list)
	}
	routed := arch
	routed.PerLayer = []engine.LayerParams{{}, {Experts: engine.Experts{Count: 4, PerToken: 2}}}
	got, err := parseProbes("blocks.*.route_ids", routed)
	require.NoError(t, err)
	require.Equal(t, []engine.Probe{"blocks.1.route_ids"}, got, "of the layers that have a router")
	_, err = parseProbes("blocks.*.shared_out", routed)
	require.ErrorContains(t, err, "the layer has no router")
	all, err := parseProbes("all", arch)
	require.NoError(t, err)
	require.Len(t, all, 2*10+2) // ten parts a layer, embed and final_norm
	require.NotContains(t, all, engine.ProbeLogits)
	for _, list := range []string{"nonsense", "blocks.2.q", "blocks.*.nonsense", "blocks.0.router_logits", "embed,,logits", "*"} {
		_, err := parseProbes(list, arch)
		var usage *usageError
		require.ErrorAs(t, err, &usage, list)
		require.ErrorContains(t, err, "--probes: ", list)
	}
}

// probing is a reference whose probes are given.
type probing map[engine.Probe]engine.Matrix

func (p probing) CaptureProbes(context.Context, []int, []int, []engine.Probe) (map[engine.Probe]engine.Matrix, error) {
	return p, nil
}

// Probes that aren't those of the run that they stand beside are no probes.
func TestProbesAreHeldToTheCapture(t *testing.T) {
	rows := [][]float64{{1, 2}, {3, 4}}
	sound := func() probing {
		return probing{
			"embed":               {Rows: 3, Width: 2, Data: []float32{9, 9, 1, 2, 9, 9}}, // two of prompt, one behind
			"blocks.0.resid_mid":  {Rows: 3, Width: 2, Data: []float32{7, 7, 7, 7, 7, 7}},
			"blocks.0.resid_post": {Rows: 3, Width: 2, Data: []float32{9, 9, 3, 4, 9, 9}},
		}
	}
	wanted := []engine.Probe{"embed", "blocks.0.resid_mid", "blocks.0.resid_post"}
	for _, tt := range []struct {
		name  string
		spoil func(probing)
		says  string
	}{
		{"sound", func(probing) {}, ""},
		{"another embedding", func(p probing) { p["embed"].Data[3] = 2.5 }, "probes: row 0: channel 1 of embed at position 1: got 2.5, the capture has 2"},
		{"shifted by a position", func(p probing) { copy(p["blocks.0.resid_post"].Data, []float32{3, 4, 9, 9}) }, "probes: row 1: channel 0 of blocks.0.resid_post at position 1"},
		{"NaN", func(p probing) { p["blocks.0.resid_mid"].Data[5] = float32(math.NaN()) }, "probes: row 1: blocks.0.resid_mid: position 2, channel 1: got NaN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sound()
			tt.spoil(p)
			got, err := captureProbes(t.Context(), p, []int{5, 6}, []int{7, 8}, wanted, rows)
			if tt.says == "" {
				require.NoError(t, err)
				require.Equal(t, 3, got.positions())
				return
			}
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// A score of -Inf is an expert that can't be chosen; anything else must be finite.
func TestMaskedScoresAreProbes(t *testing.T) {
	for name, c := range map[engine.Probe]struct {
		x    float64
		says string
	}{
		"blocks.0.router_scores": {math.Inf(-1), ""},
		"blocks.1.router_scores": {math.Inf(1), "blocks.1.router_scores: position 0, channel 1: got +Inf"},
		"blocks.0.router_logits": {math.Inf(-1), "blocks.0.router_logits: position 0, channel 1: got -Inf"},
	} {
		p := probing{name: {Rows: 1, Width: 2, Data: []float32{1, float32(c.x)}}}
		_, err := captureProbes(t.Context(), p, []int{5}, nil, []engine.Probe{name}, [][]float64{{1}, {1}, {1}})
		if c.says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.says)
		}
	}
}

// The probes of layers are those of the prompt: at its last position the residual
// stream is the dump's, and they are written together or not at all.
func TestLayersWithProbes(t *testing.T) {
	t.Setenv(modelEnv, "")
	model, dir := modelFolder(t), t.TempDir()
	dump, probes := filepath.Join(dir, "x.layers.bin"), filepath.Join(dir, "x.probes.safetensors")
	args := []string{"layers", "foobar", "--templated", "--ids", "1,2,3", "--model", model, "--dump", dump, "--probes", probes, "--quiet"}
	var out, stderr bytes.Buffer
	require.Equal(t, exitDone, run(args, &out, &stderr), stderr.String())
	require.Contains(t, out.String(), fmt.Sprintf("\nprobes_written: 282 probes x 3 positions -> %s\n", probes)) // 28 layers of 10, embed, final_norm
	rows, err := dumpfmt.OpenFloatLayers(dump)
	require.NoError(t, err)
	defer rows.Close()
	tensors, err := dumpfmt.OpenSafetensors(probes)
	require.NoError(t, err)
	defer tensors.Close()
	require.Len(t, tensors.Tensors(), 282)
	row := make([]float32, rows.Header().Width)
	data, err := os.ReadFile(probes)
	require.NoError(t, err)
	for i := range rows.Header().Rows {
		require.NoError(t, rows.Row(i, row))
		info, ok := tensors.Tensor(string(engine.RowProbe(i)))
		require.True(t, ok)
		require.Equal(t, []int{3, len(row)}, info.Shape)
		last := data[info.Offset+2*4*int64(len(row)):]
		for j, x := range row {
			require.Equal(t, math.Float32bits(x), binary.LittleEndian.Uint32(last[4*j:]), "row %d, channel %d", i, j)
		}
	}

	require.NoError(t, os.Remove(dump))
	require.Equal(t, exitBroken, run(args, &out, &stderr))
	require.Contains(t, stderr.String(), "x.probes.safetensors: file already exists")
	require.NoFileExists(t, dump)
	require.Equal(t, exitBroken, run(append(args, "--probes", dump, "--overwrite"), &out, &stderr))
	require.Contains(t, stderr.String(), "--probes and --dump: got one file for both")
}

// A folder with probes is one that its reader accepts, decode steps included.
func TestCaptureWithProbes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	ref := seeded(t)
	_, err := captureWithFlags(t, ref, &app{}, captureFlags{out: dir, maxNew: 4, probes: "final_norm,embed", wanted: []engine.Probe{"embed", "final_norm"}})
	require.NoError(t, err)
	folder, err := dumpfmt.OpenFolder(dir)
	require.NoError(t, err)
	require.Equal(t, "f32, every position but the last output token's: final_norm,embed", folder.Engine().Probes)
	for _, c := range folder.Cases() {
		require.NoError(t, c.Check())
		d, err := c.OpenProbes()
		require.NoError(t, err)
		positions := len(c.File.TokenIDs) + 4 - 1
		for _, info := range d.Tensors() {
			require.Equal(t, []int{positions, 64}, info.Shape, info.Name)
		}
		// Position p of embed is the embedding of the token that was run there.
		run := append(append([]int{}, c.File.TokenIDs...), c.File.OutputIDs[:3]...)
		info, ok := d.Tensor("embed")
		require.True(t, ok)
		data, err := os.ReadFile(c.ProbesPath)
		require.NoError(t, err)
		for p, id := range run {
			want, err := ref.Embedding(id)
			require.NoError(t, err)
			for j, x := range want {
				got := math.Float32frombits(binary.LittleEndian.Uint32(data[info.Offset+int64(4*(64*p+j)):]))
				require.Equal(t, float32(x), got, "%s: position %d, channel %d", c.Name, p, j)
			}
		}
		require.NoError(t, d.Close())
	}
}

// A case whose probes are another run's isn't written; the others are.
func TestCaptureWritesNoCaseWithUnsoundProbes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	text, err := captureWithFlags(t, stale{seeded(t)}, &app{}, captureFlags{out: dir, maxNew: 2, probes: "embed", wanted: []engine.Probe{"embed"}})
	require.ErrorContains(t, err, "1 of 3 cases not written: a self-check failed")
	require.Contains(t, text, "c: not written: probes: row 0: ")
	require.NotContains(t, names(t, dir), "c.json")
	require.Contains(t, names(t, dir), "a.probes.safetensors")
}

// stale answers a prompt of one token with another token's places.
type stale struct{ *reference.Engine }

func (s stale) CaptureProbes(ctx context.Context, ids, output []int, probes []engine.Probe) (map[engine.Probe]engine.Matrix, error) {
	if len(ids) == 1 {
		ids = []int{ids[0] + 1}
	}
	return s.Engine.CaptureProbes(ctx, ids, output, probes)
}
