package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// tensor is one entry of a probe file that a test writes by hand.
type tensor struct {
	name, dtype string
	shape       []int
	data        string
}

// probeBytes puts a safetensors file together from its description: the length
// of the header, the header, the data.
func probeBytes(tensors ...tensor) string {
	var header, data strings.Builder
	for i, e := range tensors {
		if i > 0 {
			header.WriteByte(',')
		}
		shape := strings.ReplaceAll(fmt.Sprint(e.shape), " ", ",")
		fmt.Fprintf(&header, `%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, e.name, e.dtype, shape, data.Len(), data.Len()+len(e.data))
		data.WriteString(e.data)
	}
	return raw(uint64(header.Len()+2)) + "{" + header.String() + "}" + data.String()
}

// Values whose bits a detour through another type, or a comparison, would lose.
var strangeFloats = []float32{1, -2.5, math.Float32frombits(0x80000000), math.Float32frombits(1),
	math.Float32frombits(0x7FC12345), float32(math.Inf(-1)), math.MaxFloat32, 0.1}

func requireBits(t *testing.T, want, got []float32) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("value %d: got bits 0x%08X, want 0x%08X", i, math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

// TestDirReadsProbesBack: what dumpfmt's writer put into a folder comes back
// bit for bit, each probe over positions of its own number.
func TestDirReadsProbesBack(t *testing.T) {
	dir := t.TempDir()
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "e"}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	c, err := w.Case("x", dumpfmt.CaseFile{Text: text, TokenIDs: []int{4, 5}, OutputIDs: []int{6}})
	require.NoError(t, err)
	// Not in name order, and the last of three positions is a decode step.
	p, err := c.Probes([]dumpfmt.TensorSpec{{Name: "embed", DType: dumpfmt.F32, Shape: []int{2, 4}},
		{Name: "blocks.10.q", DType: dumpfmt.F32, Shape: []int{3, 2}}, {Name: "blocks.2.mlp_out", DType: dumpfmt.F32, Shape: []int{1, 1}}})
	require.NoError(t, err)
	require.NoError(t, errors.Join(p.WriteFloat32s("embed", strangeFloats), p.WriteFloat32s("blocks.10.q", []float32{9, 8, 7, 6, 5, 4}),
		p.WriteFloat32s("blocks.2.mlp_out", []float32{3}), p.Commit(), c.Commit()))

	r, err := engine.Dir(dir).Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.Equal(t, engine.ResponseFiles{Probes: filepath.Join(dir, "x.probes.safetensors")}, r.Files)
	want := []engine.Probe{"blocks.10.q", "blocks.2.mlp_out", "embed"}
	got := r.Probes.Probes()
	require.Equal(t, want, got)
	got[0] = "mine"
	require.Equal(t, want, r.Probes.Probes(), "the list is the caller's own")
	for name, want := range map[engine.Probe]engine.Matrix{
		"embed":            {Rows: 2, Width: 4, Data: strangeFloats},
		"blocks.10.q":      {Rows: 3, Width: 2, Data: []float32{9, 8, 7, 6, 5, 4}},
		"blocks.2.mlp_out": {Rows: 1, Width: 1, Data: []float32{3}},
	} {
		positions, width := r.Probes.Shape(name)
		require.Equal(t, []int{want.Rows, want.Width}, []int{positions, width}, name)
		m, err := r.Probes.Matrix(name)
		require.NoError(t, err, name)
		require.Equal(t, []int{want.Rows, want.Width}, []int{m.Rows, m.Width}, name)
		requireBits(t, want.Data, m.Data)
	}

	// A place that a model may have, and this file doesn't.
	positions, width := r.Probes.Shape(engine.ProbeFinalNorm)
	require.Equal(t, []int{0, 0}, []int{positions, width})
	_, err = r.Probes.Matrix(engine.ProbeFinalNorm)
	require.ErrorContains(t, err, `x.probes.safetensors: got no probe "final_norm"`)
	require.NoError(t, r.Close())
	_, err = r.Probes.Matrix(engine.ProbeEmbed)
	require.ErrorIs(t, err, fs.ErrClosed, "closing the response closes the file")
}

func TestDirMalformedProbes(t *testing.T) {
	f32 := func(name string, shape ...int) tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return tensor{name, "F32", shape, raw(make([]float32, n))}
	}
	embed := f32("embed", 3, 2)
	const names = "want embed, final_norm, logits, or blocks.N. with N from 0 on and one of attn_norm, q, k, v, q_rope"
	for name, tt := range map[string]struct {
		file, want string
	}{
		"another's name":       {probeBytes(embed, f32("hidden_states.3", 1, 2)), `x.probes.safetensors: name of a tensor: got "hidden_states.3", ` + names},
		"an unknown part":      {probeBytes(f32("blocks.0.o", 1, 2)), `got "blocks.0.o", ` + names},
		"a number with a sign": {probeBytes(f32("blocks.+1.q", 1, 2)), `got "blocks.+1.q", ` + names},
		"a number past any":    {probeBytes(f32("blocks.99999999999999999999.q", 1, 2)), `got "blocks.99999999999999999999.q", ` + names},
		"no name":              {probeBytes(f32("", 1, 2)), `got "", ` + names},
		"another type":         {probeBytes(embed, tensor{"final_norm", "F64", []int{1, 1}, raw(1.0)}), `dtype of probe "final_norm": got F64, want F32`},
		"no position":          {probeBytes(embed, f32("final_norm", 0, 2)), `shape of probe "final_norm": got [0 2], want [positions, width], each at least 1, with at most 3 positions`},
		"a position too many":  {probeBytes(embed, f32("final_norm", 4, 2)), `shape of probe "final_norm": got [4 2], want [positions, width], each at least 1, with at most 3 positions`},
		"no probe":             {raw(uint64(2)) + "{}", "tensors: got none, want at least one probe"},
		"cut":                  {probeBytes(embed)[:70], "data_offsets[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"engine.json": floatSide, "x.json": caseJSON, "x.layers.bin": floatLayers, "x.probes.safetensors": tt.file})
			r, err := engine.Dir(dir).Run(t.Context(), request("x"))
			require.Nil(t, r)
			var bad *engine.MalformedError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, filepath.Join(dir, "x.probes.safetensors"), bad.File)
			require.False(t, bad.Provenance)
			require.ErrorContains(t, err, tt.want)
			requireClosed(t, dir)
		})
	}
}

// requireClosed demands that this process has no file of the folder open. It
// sees that on Linux alone.
func requireClosed(t *testing.T, dir string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil && strings.HasPrefix(file, dir+"/") {
			t.Errorf("%s is still open", file)
		}
	}
}

// TestDirKeepsNamesOfModelsToCome: a name is held to a model by whoever knows
// the model.
func TestDirKeepsNamesOfModelsToCome(t *testing.T) {
	dir := folder(t, map[string]string{"engine.json": floatSide, "x.json": caseJSON, "x.probes.safetensors": probeBytes(
		tensor{"blocks.4000.router_logits", "F32", []int{1, 2}, raw([]float32{1, 2})}, tensor{"logits", "F32", []int{1, 1}, raw(float32(3))})})
	r, err := engine.Dir(dir).Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.Equal(t, []engine.Probe{"blocks.4000.router_logits", "logits"}, r.Probes.Probes())
	require.NoError(t, r.Close())
	requireClosed(t, dir)
}

// TestDirProbesOfAFileThatShrank: what was sound when it was opened is an error
// when it is read, never a matrix of zeros.
func TestDirProbesOfAFileThatShrank(t *testing.T) {
	dir := folder(t, map[string]string{"engine.json": floatSide, "x.json": caseJSON,
		"x.probes.safetensors": probeBytes(tensor{"embed", "F32", []int{2, 2}, raw([]float32{1, 2, 3, 4})})})
	r, err := engine.Dir(dir).Run(t.Context(), request("x"))
	require.NoError(t, err)
	st, err := os.Stat(r.Files.Probes)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(r.Files.Probes, st.Size()-3))
	m, err := r.Probes.Matrix(engine.ProbeEmbed)
	require.Zero(t, m)
	var broken *dumpfmt.FormatError
	require.ErrorAs(t, err, &broken)
	require.ErrorContains(t, err, "13 of 16 bytes")
	require.NoError(t, r.Close())
}

func TestDirProbesConcurrently(t *testing.T) {
	dir := folder(t, map[string]string{"engine.json": floatSide, "x.json": caseJSON, "x.probes.safetensors": probeBytes(
		tensor{"embed", "F32", []int{1, 2}, raw([]float32{1, 2})}, tensor{"logits", "F32", []int{1, 2}, raw([]float32{3, 4})})})
	r, err := engine.Dir(dir).Run(t.Context(), request("x"))
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name, want := engine.ProbeEmbed, float32(2)
			if i%2 > 0 {
				name, want = engine.ProbeLogits, 4
			}
			for range 200 {
				if m, err := r.Probes.Matrix(name); err != nil || m.Data[1] != want {
					t.Errorf("%s: got %v, %v, want %v", name, m, err, want)
				}
			}
		})
	}
	wg.Wait()
}
