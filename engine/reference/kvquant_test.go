package reference_test

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
)

// kernelBound is the bound on nRMSE of the output of attention under which a
// quantised cache is held.
const kernelBound = 0.15

func attentionProbes(layers int) []engine.Probe {
	var all []engine.Probe
	for n := range layers {
		for _, part := range []engine.Part{engine.PartQRope, engine.PartKRope, engine.PartV, engine.PartAttnOut} {
			all = append(all, engine.Block(n, part))
		}
	}
	return all
}

// naiveStore quantises a head in plain loops, from the documentation of KVQuant.
func naiveStore(head []float64, q reference.KVQuant) []float64 {
	x := head
	if q.Hadamard {
		x = naiveHadamard(head)
	}
	var top float64
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	out, largest := make([]float64, len(x)), float64(int(1)<<(q.Bits-1)-1)
	for i, v := range x {
		if top > 0 {
			out[i] = math.Round(v/(top/largest)) * (top / largest)
		}
	}
	if q.Hadamard {
		out = naiveHadamard(out)
		for i := range out {
			out[i] /= float64(len(out))
		}
	}
	return out
}

func naiveHadamard(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range y {
		for j, v := range x {
			y[i] += v * float64(1-2*(bits.OnesCount(uint(i&j))%2))
		}
	}
	return y
}

// naiveAttention is the output of attention at a position from the layer's own q,
// k and v, stored as q says.
func naiveAttention(a engine.Arch, n, pos int, run probesOf, q reference.KVQuant) []float64 {
	d, kv, window := a.HeadDimOf(n), a.KVHeadsOf(n), a.PerLayer[n].Window
	from := 0
	if window > 0 {
		from = max(0, pos-window+1)
	}
	var out []float64
	query := widened(run[engine.Block(n, engine.PartQRope)].Row(pos))
	for h := range a.Heads {
		at := h / (a.Heads / kv) * d
		var weights []float64
		var sum float64
		result := make([]float64, d)
		for s := from; s <= pos; s++ {
			k := naiveStore(widened(run[engine.Block(n, engine.PartKRope)].Row(s))[at:at+d], q)
			var score float64
			for i, v := range k {
				score += v * query[h*d+i]
			}
			weights = append(weights, math.Exp(score))
			sum += math.Exp(score)
		}
		for i, w := range weights {
			v := naiveStore(widened(run[engine.Block(n, engine.PartV)].Row(from + i))[at:at+d], q)
			for j := range result {
				result[j] += w / sum * v[j]
			}
		}
		out = append(out, result...)
	}
	return out
}

func kvRun(t testing.TB, e *reference.Engine, c golden.TensorCase) probesOf {
	t.Helper()
	got, err := e.CaptureProbes(t.Context(), c.TokenIDs, c.ForcedIDs, attentionProbes(e.Weights().Arch().Layers))
	require.NoError(t, err)
	return got
}

var kvSchemes = []reference.KVQuant{{Bits: 8}, {Bits: 8, Hadamard: true}, {Bits: 4}, {Bits: 4, Hadamard: true}}

// TestQuantisedCacheAttention holds attention over a quantised cache to plain loops
// over the same run's queries, keys and values. In float64, so that no code lies
// between two.
func TestQuantisedCacheAttention(t *testing.T) {
	c := gemma4Golden(t)["long"]
	for _, q := range kvSchemes {
		t.Run(q.String(), func(t *testing.T) {
			e := gemma4Engine(t, reference.WithKVCache(q), reference.WithDType(reference.Float64))
			run, a := kvRun(t, e, c), e.Weights().Arch()
			for _, n := range []int{0, 5, 29} {
				for _, pos := range []int{0, 3, 8, 39, 46} {
					got := widened(run[engine.Block(n, engine.PartAttnOut)].Row(pos))
					// The probes are rounded to float32 once, which moves a code now and then.
					step := 3e-6
					if d := relL2(got, naiveAttention(a, n, pos, run, q)); !(d <= step) {
						t.Errorf("layer %d position %d: %v away", n, pos, d)
					}
					if d := relL2(got, naiveAttention(a, n, pos, run, reference.KVQuant{Bits: q.Bits, Hadamard: !q.Hadamard})); !(d > 10*step) {
						t.Errorf("layer %d position %d: the other scheme is %v away", n, pos, d)
					}
				}
			}
		})
	}
}

// kvFigures are, per layer, the largest nRMSE of the output of attention over the
// decode steps.
func kvFigures(t testing.TB, run, dense probesOf, c golden.TensorCase, layers int) []float64 {
	t.Helper()
	out := make([]float64, layers)
	for n := range out {
		p := engine.Block(n, engine.PartAttnOut)
		for pos := len(c.TokenIDs); pos < run[p].Rows; pos++ {
			out[n] = max(out[n], relL2(widened(run[p].Row(pos)), widened(dense[p].Row(pos))))
		}
	}
	return out
}

func largest(values []float64) float64 {
	var m float64
	for _, v := range values {
		m = max(m, v)
	}
	return m
}

// TestQuantisedCacheStaysInsideTheKernelBound: with 8 bits it does, in every layer;
// with four bits fewer, or with the scales of another layer, it doesn't. Largest
// nRMSE of a layer, without and with Hadamard: 8 bits 0.044 and 0.029 (in layer 0
// alone, where no error is passed on, 0.008 and 0.007), 4 bits 0.60 and 0.70 (0.13
// and 0.13), scales of another layer in all layers 2.2 and 1.3, in layer 17 alone
// 1.2 and 0.55.
func TestQuantisedCacheStaysInsideTheKernelBound(t *testing.T) {
	sweep(t)
	c := gemma4Golden(t)["long"]
	clean := gemma4Engine(t)
	dense, layers := kvRun(t, clean, c), clean.Weights().Arch().Layers
	for _, hadamard := range []bool{false, true} {
		q := reference.KVQuant{Bits: 8, Hadamard: hadamard}
		f := kvFigures(t, kvRun(t, gemma4Engine(t, reference.WithKVCache(q)), c), dense, c, layers)
		t.Logf("%s: %.4f at most; %.4f", q, largest(f), f)
		if !(largest(f) <= kernelBound/3) {
			t.Errorf("%s: got %v, want at most a third of %v", q, largest(f), kernelBound)
		}
		for _, fault := range []struct {
			name string
			at   int
		}{{"kv-scale-wrong-layer", -1}, {"kv-scale-wrong-layer", 17}, {"kv-four-bits-fewer", 0}} {
			m, err := mutant.Lookup(fault.name)
			require.NoError(t, err)
			w, err := m.Weights(clean.Weights(), fault.at)
			require.NoError(t, err)
			e, err := reference.New(w, reference.WithKVCache(q))
			require.NoError(t, err)
			f := kvFigures(t, kvRun(t, e, c), dense, c, layers)
			t.Logf("%s %s at %d: %.4f at most; %.4f", q, fault.name, fault.at, largest(f), f)
			if !(largest(f) > 2*kernelBound) {
				t.Errorf("%s %s at %d: got %v, want above twice %v", q, fault.name, fault.at, largest(f), kernelBound)
			}
		}
	}
}

// TestQuantisedCacheDecodes: a prompt in one batch and token by token, Capture and
// its layers agree with each other.
func TestQuantisedCacheDecodes(t *testing.T) {
	c := gemma4Golden(t)["long"]
	for _, q := range kvSchemes {
		t.Run(q.String(), func(t *testing.T) {
			e := gemma4Engine(t, reference.WithKVCache(q))
			require.Equal(t, q.String(), e.Describe().KVCache)
			trace, err := e.Capture(t.Context(), c.TokenIDs)
			require.NoError(t, err)
			rows := trace.Rows()
			for n := range e.Weights().Arch().Layers {
				out, err := trace.Layer(t.Context(), n, rows[n])
				require.NoError(t, err)
				require.Equal(t, rows[n+1], out, n)
			}
			// Layer 0 has the same keys and values either way; what follows differs
			// by what attention of the prompt does.
			batch, err := e.Decode(t.Context(), c.TokenIDs, engine.DecodeOptions{Forced: c.ForcedIDs})
			require.NoError(t, err)
			dense, err := gemma4Engine(t).Decode(t.Context(), c.TokenIDs, engine.DecodeOptions{Forced: c.ForcedIDs})
			require.NoError(t, err)
			require.Equal(t, dense.Logits[0], batch.Logits[0]) // no cache yet
			require.NotEqual(t, dense.Logits[1], batch.Logits[1])
			if d := relL2(batch.Logits[1], dense.Logits[1]); !(d <= map[int]float64{8: 0.05, 4: 0.5}[q.Bits]) {
				t.Errorf("second logit row: %v away from dense", d)
			}
		})
	}
}

func TestQuantisedCacheRefusals(t *testing.T) {
	var unsupported *engine.UnsupportedError
	e := gemma4Engine(t, reference.WithKVCache(reference.KVQuant{Bits: 8}))
	ids := []int{2, 3, 4}
	_, err := e.CaptureWholeStep(t.Context(), ids)
	require.ErrorAs(t, err, &unsupported)
	_, err = e.LastHidden(t.Context(), ids)
	require.ErrorAs(t, err, &unsupported)
	_, err = e.Decode(t.Context(), ids, engine.DecodeOptions{Chunk: 2})
	require.ErrorAs(t, err, &unsupported)
	_, err = e.DecodeBatch(t.Context(), [][]int{ids}, [][]int{{5}})
	require.ErrorAs(t, err, &unsupported)
	err = e.CaptureMany(t.Context(), [][]int{ids}, reference.ManyOptions{Oracle: true}, nil)
	require.ErrorAs(t, err, &unsupported)

	for _, n := range []int{0, 2, 5, 16, -8} {
		_, err := reference.New(e.Weights(), reference.WithKVCache(reference.KVQuant{Bits: n}))
		require.ErrorContains(t, err, fmt.Sprintf("option KV cache: got %d bits, want 8 or 4", n))
	}
	w := randomWeights(smallArch(), 1)
	w.arch.HeadDim = 6
	_, err = reference.New(w, reference.WithKVCache(reference.KVQuant{Bits: 8, Hadamard: true}))
	require.ErrorAs(t, err, &unsupported)
	for name, plant := range map[string]func(*engine.Arch){
		"scale shift":     func(a *engine.Arch) { a.PerLayer[2].ScaleShift = 1 },
		"cache bits lost": func(a *engine.Arch) { a.Fault.CacheBitsLost = 4 },
	} {
		w := randomWeights(smallArch(), 1)
		plant(&w.arch)
		_, err := reference.New(w)
		var config *engine.ConfigError
		require.ErrorAs(t, err, &config, name)
		require.ErrorContains(t, err, name)
	}
	// A layer with other heads has no scales to take.
	w2 := &altered{e.Weights(), e.Weights().Arch(), nil}
	w2.arch.PerLayer[5].ScaleShift = 1
	_, err = reference.New(w2, reference.WithKVCache(reference.KVQuant{Bits: 8}))
	require.ErrorContains(t, err, "layer 5: scale shift: got 1")
}

// TestDumpsOfBothSides: the dense run and that of a quantised cache become folders
// of named tensors, as teams compare them, at decode steps across layer types.
func TestDumpsOfBothSides(t *testing.T) {
	c := gemma4Golden(t)["long"]
	dense := gemma4Engine(t)
	f := engine.TensorFolder{Layers: dense.Weights().Arch().Layers, Positions: []int{40, 44, 46}}
	folders := map[string]string{}
	for name, e := range map[string]*reference.Engine{"dense": dense, "tq8": gemma4Engine(t, reference.WithKVCache(reference.KVQuant{Bits: 8, Hadamard: true}))} {
		run, err := e.CaptureProbes(t.Context(), c.TokenIDs, c.ForcedIDs, f.Probes())
		require.NoError(t, err)
		folders[name] = t.TempDir()
		n, err := f.Write(t.Context(), folders[name], engine.ProbeValues(run), dumpfmt.WriteOptions{})
		require.NoError(t, err)
		require.Equal(t, 30*3*4, n)
	}
	read := func(side, op string, layer, pos int) []byte {
		data, err := os.ReadFile(filepath.Join(folders[side], engine.AttentionFile(op, layer, pos)))
		require.NoError(t, err)
		return data
	}
	for op, bytes := range map[string][2]int{"q_normed": {128, 256}, "k_normed": {64, 64}, "v_normed": {64, 64}, "sdpa_out": {128, 256}} {
		require.Len(t, read("tq8", op, 4, 44), bytes[0], op)
		require.Len(t, read("tq8", op, 5, 44), bytes[1], op)
	}
	// What comes before the first cached attention is the same on both sides.
	require.Equal(t, read("dense", "q_normed", 0, 40), read("tq8", "q_normed", 0, 40))
	require.NotEqual(t, read("dense", "sdpa_out", 0, 40), read("tq8", "sdpa_out", 0, 40))
	require.NotEqual(t, read("dense", "q_normed", 1, 40), read("tq8", "q_normed", 1, 40))
}
