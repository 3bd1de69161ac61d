package reference

import (
	"fmt"
	"math/bits"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// KVQuant is a quantised KV cache. Keys (after RoPE) and values are whole numbers
// from -(2^(Bits-1)-1) to 2^(Bits-1)-1 times a scale of their own for each
// position and key-value head: the head's largest magnitude over the largest code.
type KVQuant struct {
	// Bits is 8 or 4.
	Bits int
	// Hadamard has each head turned by the Hadamard matrix before it is quantised,
	// which spreads an outlier over all channels. Attention turns queries alike,
	// and its result back: the matrix is its own inverse, up to the head's
	// dimension, a power of two, so that without rounding nothing changes.
	Hadamard bool
}

// String is what [Engine.Describe] says of it.
func (q KVQuant) String() string {
	s := fmt.Sprintf("int%d, a scale per position and head", q.Bits)
	if q.Hadamard {
		s += ", Hadamard"
	}
	return s
}

// WithKVCache has token-by-token runs keep a quantised KV cache: Capture, its
// layers, CaptureProbes, CaptureMany without an oracle, and Decode, whose prompt
// is quantised when it has run as one batch. What runs without a cache is dense as
// before; a Decode in chunks, DecodeBatch, CaptureWholeStep and LastHidden are
// refused with an [*engine.UnsupportedError]. Such an engine is a candidate, not a
// reference.
func WithKVCache(q KVQuant) Option {
	return func(s *settings) error {
		if q.Bits != 8 && q.Bits != 4 {
			return fmt.Errorf("reference: option KV cache: got %d bits, want 8 or 4", q.Bits)
		}
		s.kv = q
		return nil
	}
}

// quantised reports whether there is a quantised KV cache.
func (q KVQuant) quantised() bool { return q.Bits > 0 }

// check refuses a cache that the model can't have, and faults that the
// cache can't.
func (q KVQuant) check(a engine.Arch) error {
	bad := func(what, got, want string) error {
		return &engine.ConfigError{File: "architecture", What: what, Got: got, Want: want}
	}
	if lost := a.Fault.CacheBitsLost; lost != 0 && (lost < 0 || q.Bits-lost < 2) {
		return bad("fault: cache bits lost", fmt.Sprint(lost), fmt.Sprintf("a quantised KV cache, of at least 2 bits more; it has %d", q.Bits))
	}
	if q.quantised() && a.Latent.KVRank > 0 {
		return &engine.UnsupportedError{What: "a quantised KV cache of latent rows", Why: "it keeps keys and values of heads"}
	}
	for n, l := range a.PerLayer {
		if q.quantised() && l.Linear {
			return &engine.UnsupportedError{What: fmt.Sprintf("a quantised KV cache in layer %d", n), Why: "a linear layer has a state, and no keys and values to quantise"}
		}
		if q.Hadamard && bits.OnesCount(uint(a.HeadDimOf(n))) != 1 {
			return &engine.UnsupportedError{What: fmt.Sprintf("a Hadamard matrix for heads of dimension %d", a.HeadDimOf(n)), Why: "it has to be a power of two"}
		}
		if l.ScaleShift == 0 {
			continue
		}
		if from := n - l.ScaleShift; !q.quantised() || l.ScaleShift < 0 || from < 0 || a.KVHeadsOf(from) != a.KVHeadsOf(n) {
			return bad(fmt.Sprintf("fault: layer %d: scale shift", n), fmt.Sprint(l.ScaleShift),
				"a quantised KV cache, and a layer before it with as many key-value heads")
		}
	}
	return nil
}

// largest is the largest code.
func (q KVQuant) largest() float64 { return float64(int(1)<<(q.Bits-1) - 1) }

// store quantises heads x [..., d]: codes of that shape, and scales [..., 1]. A head
// of zeros has the scale 0.
func (q KVQuant) store(x *graph.Node) (codes, scales *graph.Node) {
	if q.Hadamard {
		x = hadamard(x)
	}
	scales = graph.DivScalar(graph.ReduceAndKeep(graph.Abs(x), graph.ReduceMax, -1), q.largest())
	zero := graph.Equal(scales, graph.ZerosLike(scales))
	codes = graph.Round(graph.Div(x, graph.Where(zero, graph.OnesLike(scales), scales)))
	// The largest magnitude over its scale may be rounded to above the largest code.
	limit := graph.Scalar(x.Graph(), x.DType(), q.largest())
	return graph.Max(graph.Min(codes, limit), graph.Neg(limit)), scales
}

// turned is what becomes of queries before attention to the codes, and of its
// result: Hq·Hk is d times q·k, and H·Hv is d times v.
func (q KVQuant) turned(x *graph.Node) *graph.Node {
	if !q.Hadamard {
		return x
	}
	d := x.Shape().Dimensions[x.Rank()-1]
	return graph.MulScalar(hadamard(x), 1/float64(d))
}

// hadamard multiplies the last axis of x by the Hadamard matrix of Sylvester's
// construction: entry i, j is 1, or -1 where i and j have an odd number of bits
// in common.
func hadamard(x *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	d := dims[len(dims)-1]
	signs := make([]float64, d*d)
	for i := range d {
		for j := range d {
			signs[i*d+j] = 1 - 2*float64(bits.OnesCount(uint(i&j))%2)
		}
	}
	h := graph.ConvertDType(graph.Reshape(graph.Const(x.Graph(), signs), d, d), x.DType())
	return graph.Reshape(graph.Dot(graph.Reshape(x, x.Shape().Size()/d, d), h).General([]int{1}, nil, []int{1}, nil), dims...)
}

// storedCache is a layer's cache inside a graph: dense, or codes and scales.
type storedCache struct{ k, v, kScale, vScale *graph.Node }

// takeCache takes what a layer's cache consists of from a graph's inputs.
func (g *layerGraphs) takeCache(c *cursor) storedCache {
	s := storedCache{k: c.take(), v: c.take()}
	if g.kv.quantised() {
		s.kScale, s.vScale = c.take(), c.take()
	}
	return s
}

// nodes are the parts in the order of a layerState.
func (s storedCache) nodes() []*graph.Node {
	if s.kScale == nil {
		return []*graph.Node{s.k, s.v}
	}
	return []*graph.Node{s.k, s.v, s.kScale, s.vScale}
}

// write returns the cache with k and v, each [1, kv, d], at position at.
func (g *layerGraphs) write(s storedCache, k, v, at *graph.Node) storedCache {
	if !g.kv.quantised() {
		return storedCache{k: writeCache(s.k, k, at), v: writeCache(s.v, v, at)}
	}
	kCodes, kScale := g.kv.store(k)
	vCodes, vScale := g.kv.store(v)
	return storedCache{writeCache(s.k, kCodes, at), writeCache(s.v, vCodes, at), writeCache(s.kScale, kScale, at), writeCache(s.vScale, vScale, at)}
}

// attend is q [1, heads, d] against a cache; scales, where given, are those of
// another layer, to be read in place of the cache's.
func (g *layerGraphs) attend(p params, q *graph.Node, s storedCache, scales *storedCache, pos *graph.Node) *graph.Node {
	if !g.kv.quantised() {
		return g.attention(p).cache(q, s.k, s.v, pos)
	}
	if scales != nil {
		s.kScale, s.vScale = scales.kScale, scales.vScale
	}
	out := g.attention(p).cache(g.kv.turned(q), graph.Mul(s.k, s.kScale), graph.Mul(s.v, s.vScale), pos)
	heads, d := q.Shape().Dimensions[1], q.Shape().Dimensions[2]
	return graph.Reshape(g.kv.turned(graph.Reshape(out, 1, heads, d)), 1, heads*d)
}

// quantiseGraph makes codes and scales of keys and values [kv, T, d].
func (e *Engine) quantiseGraph(in []*graph.Node) []*graph.Node {
	k, kScale := e.kv.store(in[0])
	v, vScale := e.kv.store(in[1])
	return storedCache{k, v, kScale, vScale}.nodes()
}

// quantise replaces the dense keys and values of a cache by codes and scales,
// where the engine's cache has them.
func (e *Engine) quantise(c kvCache) (kvCache, error) {
	if !e.kv.quantised() {
		return c, nil
	}
	var out kvCache
	for n, l := range c {
		ts, err := call(e.quantiser, []any{l.parts[keys], l.parts[values]})
		if err != nil {
			return nil, fmt.Errorf("reference: layer %d: cache: %w", n, err)
		}
		out = append(out, layerState{parts: ts})
	}
	return out, c.finalize()
}

// needDense refuses what a quantised cache isn't built for.
func (e *Engine) needDense(what string) error {
	if e.kv.quantised() {
		return &engine.UnsupportedError{What: what + " with a quantised KV cache", Why: "it is there for runs token by token"}
	}
	return nil
}
