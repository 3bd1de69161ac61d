package reference

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// deltaChunk is how many positions the batched form of the delta rule takes at
// once, as in transformers.
const deltaChunk = 64

// deltaNormEps is what the norm of queries and keys adds to the sum of squares.
const deltaNormEps = 1e-6

// deltaState is what a gated DeltaNet keeps of the positions behind it, for B
// sequences: the inputs of the convolution at the last K positions, [B, K, C], of
// which the oldest is of no more use, and the recurrent state [B, nv, dk, dv],
// which maps a key to the value stored under it. It is held in the engine's dtype
// from step to step, as in transformers' cache, and not inside one.
type deltaState struct{ conv, s *graph.Node }

// deltaDims are the dimensions of one sequence's state.
func deltaDims(d engine.DeltaNet) [][]int {
	return [][]int{{d.Kernel, d.Channels()}, {d.ValueHeads, d.KeyDim, d.ValueDim}}
}

// emptyState is the state before the first position.
func (g *layerGraphs) emptyState(like *graph.Node, sequences int) deltaState {
	zeros := func(dims []int) *graph.Node {
		return graph.Zeros(like.Graph(), shapes.Make(like.DType(), append([]int{sequences}, dims...)...))
	}
	dims := deltaDims(g.arch.DeltaNet)
	return deltaState{zeros(dims[0]), zeros(dims[1])}
}

// deltaInputs are what a gated DeltaNet makes of the normed rows of B sequences
// of T positions: the convolution's input [B*T, C], and per value head the
// strength of writing beta and the logarithm of the decay, [B*T, nv].
type deltaInputs struct{ qkv, beta, decay *graph.Node }

// deltaInputs projects u [B*T, H].
func (g *layerGraphs) deltaInputs(p params, u *graph.Node) deltaInputs {
	rate := graph.Exp(p.vector("linear_attn.A_log"))
	step := softplus(graph.Add(p.linear(u, "linear_attn.in_proj_a"), p.vector("linear_attn.dt_bias")))
	return deltaInputs{
		qkv:   p.linear(u, "linear_attn.in_proj_qkv"),
		beta:  p.held(graph.Sigmoid(p.linear(u, "linear_attn.in_proj_b"))),
		decay: graph.Neg(graph.Mul(step, rate)),
	}
}

// softplus is log(1 + exp(x)).
func softplus(x *graph.Node) *graph.Node {
	return graph.Add(graph.Max(x, graph.ZerosLike(x)), graph.Log1P(graph.Exp(graph.Neg(graph.Abs(x)))))
}

// convolve is silu of the causal depthwise convolution of x [B, T, C] with w [C,
// 1, K], whose last column is the position's own, behind the positions in the
// state [B, K, C]. late sees a state that is shifted by one position.
func (g *layerGraphs) convolve(x, w, state *graph.Node, late bool) (y, next *graph.Node) {
	t, c, k := x.Shape().Dimensions[1], x.Shape().Dimensions[2], g.arch.DeltaNet.Kernel
	taps := graph.Reshape(w, c, k)
	all := graph.Concatenate([]*graph.Node{state, x}, 1) // position i is at K+i
	for j := range k {
		from := j + 1
		if late && j < k-1 {
			from = j
		}
		tap := graph.Reshape(graph.Slice(taps, graph.AxisRange(), graph.AxisElem(j)), 1, 1, c)
		term := graph.Mul(graph.Slice(all, graph.AxisRange(), graph.AxisRange(from, from+t)), tap)
		if y == nil {
			y = term
		} else {
			y = graph.Add(y, term)
		}
	}
	return g.held(silu(g.held(y))), graph.Slice(all, graph.AxisRange(), graph.AxisRange(t, t+k))
}

// deltaHeads are queries, keys and values of B sequences of T positions, [B, T, nv,
// d] each.
type deltaHeads struct{ q, k, v *graph.Node }

// deltaHeads takes x [B, T, C] apart. Queries and keys are repeated for the value
// heads that they serve and get the length 1, and queries are divided by sqrt(dk). The
// lengths are those of the repeated ones because transformers has them so: how torch
// rounds a root depends on how many there are.
func (g *layerGraphs) deltaHeads(x *graph.Node) deltaHeads {
	d := g.arch.DeltaNet
	b, t := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	at := 0
	part := func(heads, dim int) *graph.Node {
		y := graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(at, at+heads*dim))
		at += heads * dim
		return graph.Reshape(y, b, t, heads, dim)
	}
	unit := func(x *graph.Node) *graph.Node {
		sum := g.held(graph.ReduceAndKeep(g.mul(x, x), graph.ReduceSum, -1))
		return g.mul(x, g.rsqrt(g.held(graph.AddScalar(sum, deltaNormEps))))
	}
	repeated := func(x *graph.Node) *graph.Node {
		times := d.ValueHeads / d.KeyHeads
		x = graph.BroadcastToDims(graph.Reshape(x, b, t, d.KeyHeads, 1, d.KeyDim), b, t, d.KeyHeads, times, d.KeyDim)
		return graph.Reshape(x, b, t, d.ValueHeads, d.KeyDim)
	}
	q := unit(repeated(part(d.KeyHeads, d.KeyDim)))
	k := unit(repeated(part(d.KeyHeads, d.KeyDim)))
	return deltaHeads{graph.MulScalar(q, 1/math.Sqrt(float64(d.KeyDim))), k, part(d.ValueHeads, d.ValueDim)}
}

// deltaStep is one position of each of B sequences by the gated delta rule (Yang,
// Kautz and Hatamizadeh 2024, arXiv:2412.06464): the state decays, what it holds
// under the key is moved towards the value by beta, and the query reads it. in has
// B rows; the result is [B, nv, dv]. A sequence whose slot in write (int32 [B]) is
// negative keeps its recurrent state as it was, and reads that.
func (g *layerGraphs) deltaStep(in deltaInputs, w *graph.Node, st deltaState, write *graph.Node, late bool) (*graph.Node, deltaState) {
	d := g.arch.DeltaNet
	b, heads := in.qkv.Shape().Dimensions[0], d.ValueHeads
	x, conv := g.convolve(graph.Reshape(in.qkv, b, 1, d.Channels()), w, st.conv, late)
	h := g.deltaHeads(x)
	n := b * heads
	q, k, v := graph.Reshape(h.q, n, 1, d.KeyDim), graph.Reshape(h.k, n, 1, d.KeyDim), graph.Reshape(h.v, n, 1, d.ValueDim)
	old := graph.Reshape(st.s, n, d.KeyDim, d.ValueDim)
	s := graph.Mul(old, graph.Exp(graph.Reshape(in.decay, n, 1, 1)))
	delta := graph.Mul(graph.Sub(v, product(k, s)), graph.Reshape(in.beta, n, 1, 1))
	s = graph.Add(s, graph.Mul(graph.Reshape(k, n, d.KeyDim, 1), delta))
	written := graph.GreaterOrEqual(write, graph.ZerosLike(write))
	written = graph.BroadcastToDims(graph.Reshape(written, b, 1, 1, 1), b, heads, d.KeyDim, d.ValueDim)
	s = graph.Where(graph.Reshape(written, n, d.KeyDim, d.ValueDim), s, old)
	return graph.Reshape(product(q, s), b, heads, d.ValueDim), deltaState{conv, g.held(graph.Reshape(s, st.s.Shape().Dimensions...))}
}

// deltaScan is deltaStep for all positions of B sequences, in chunks whose
// positions are taken at once: in has B*T rows, the result is [B*T, nv, dv].
//
// Within a chunk, with the decay up to position i in c_i, the values that the rule
// writes are the solution of a unit lower triangular system with the entries
// beta_i (k_i·k_j) exp(c_i-c_j), to right-hand sides of values and of keys; across
// chunks they depend on the state alone (section 3.3 of arXiv:2412.06464).
func (g *layerGraphs) deltaScan(in deltaInputs, w *graph.Node, st deltaState) (*graph.Node, deltaState) {
	d := g.arch.DeltaNet
	b := st.s.Shape().Dimensions[0]
	t := in.qkv.Shape().Dimensions[0] / b
	x, conv := g.convolve(graph.Reshape(in.qkv, b, t, d.Channels()), w, st.conv, false)
	h := g.deltaHeads(x)
	length := min(t, deltaChunk)
	chunks := (t + length - 1) / length
	n := b * d.ValueHeads
	// cut makes [B, T, nv, dim] into [B*nv, chunks, length, dim]. Zeros fill the
	// last chunk: they neither write nor decay.
	cut := func(x *graph.Node, dim int) *graph.Node {
		x = graph.TransposeAllAxes(graph.Reshape(x, b, t, d.ValueHeads, dim), 0, 2, 1, 3)
		if fill := chunks*length - t; fill > 0 {
			x = graph.Concatenate([]*graph.Node{x, graph.Zeros(x.Graph(), shapes.Make(x.DType(), b, d.ValueHeads, fill, dim))}, 2)
		}
		return graph.Reshape(x, n, chunks, length, dim)
	}
	c := deltaChunks{q: cut(h.q, d.KeyDim), k: cut(h.k, d.KeyDim), v: cut(h.v, d.ValueDim), beta: cut(in.beta, 1), decay: cut(in.decay, 1)}
	out, s := c.run(graph.Reshape(st.s, n, d.KeyDim, d.ValueDim))
	out = graph.Reshape(out, b, d.ValueHeads, chunks*length, d.ValueDim)
	out = graph.Slice(out, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(0, t))
	return graph.Reshape(graph.TransposeAllAxes(out, 0, 2, 1, 3), b*t, d.ValueHeads, d.ValueDim),
		deltaState{conv, g.held(graph.Reshape(s, st.s.Shape().Dimensions...))}
}

// deltaChunks are the inputs of the rule for n heads, [n, chunks, length, dim] each.
type deltaChunks struct{ q, k, v, beta, decay *graph.Node }

// run takes a state [n, dk, dv] through all chunks.
func (c deltaChunks) run(s *graph.Node) (out, last *graph.Node) {
	dims := c.k.Shape().Dimensions
	n, chunks, length := dims[0], dims[1], dims[2]
	square := shapes.Make(dtypes.Int32, n*chunks, length, length)
	row, col := graph.Iota(s.Graph(), square, 1), graph.Iota(s.Graph(), square, 2)
	flat := func(x *graph.Node) *graph.Node { return graph.Reshape(x, n*chunks, length, x.Shape().Dimensions[3]) }
	q, k, beta := flat(c.q), flat(c.k), flat(c.beta)
	sum := graph.CumSum(flat(c.decay), 1) // [n*chunks, length, 1]
	// The differences above the diagonal are positive, and may be large.
	fade := graph.Sub(sum, graph.TransposeAllAxes(sum, 0, 2, 1))
	upTo := graph.GreaterOrEqual(row, col)
	fade = keptWhere(upTo, graph.Exp(keptWhere(upTo, fade)))
	written := graph.Mul(k, beta)
	coupling := keptWhere(graph.GreaterThan(row, col), graph.Mul(productT(written, k), fade))
	solve := unitLowerInverse(coupling, row, col)
	grown := graph.Exp(sum)
	chunked := func(x *graph.Node) *graph.Node { return graph.Reshape(x, n, chunks, length, x.Shape().Dimensions[2]) }
	values := chunked(product(solve, graph.Mul(flat(c.v), beta)))
	known := chunked(product(solve, graph.Mul(written, grown)))
	scores := chunked(graph.Mul(productT(q, k), fade))
	reads := chunked(graph.Mul(q, grown))
	end := graph.Slice(sum, graph.AxisRange(), graph.AxisElem(length-1)) // [n*chunks, 1, 1]
	kept := chunked(graph.Mul(k, graph.Exp(graph.Sub(end, sum))))
	end = graph.Reshape(graph.Exp(end), n, chunks, 1, 1)
	outs := make([]*graph.Node, chunks)
	for i := range chunks {
		chunk := func(x *graph.Node) *graph.Node {
			dims := x.Shape().Dimensions
			return graph.Reshape(graph.Slice(x, graph.AxisRange(), graph.AxisElem(i)), dims[0], dims[2], dims[3])
		}
		written := graph.Sub(chunk(values), product(chunk(known), s))
		outs[i] = graph.Add(product(chunk(reads), s), product(chunk(scores), written))
		s = graph.Add(graph.Mul(s, chunk(end)), transposedProduct(chunk(kept), written))
	}
	return graph.Concatenate(outs, 1), s
}

// unitLowerInverse is the inverse of 1 + a for strictly lower triangular a [n, L,
// L], with the indices of rows and columns. Blocks on the diagonal are inverted
// pair by pair: that of a pair has -D⁻¹·C·B⁻¹ below the inverses B⁻¹ and D⁻¹ of
// the two, where C couples them. All products are of blocks of the matrix and its
// inverse, and none is of powers of a, which may be as large as binomials where
// the inverse is small.
func unitLowerInverse(a, row, col *graph.Node) *graph.Node {
	length := a.Shape().Dimensions[1]
	one := graph.ConvertDType(graph.Equal(row, col), a.DType())
	inverse := one
	for size := 1; size < length; size *= 2 {
		block := func(x *graph.Node, size int) *graph.Node { return graph.DivScalar(x, size) }
		// In one pair of blocks, and not in one block.
		pair := graph.And(graph.Equal(block(row, 2*size), block(col, 2*size)), graph.NotEqual(block(row, size), block(col, size)))
		coupling := keptWhere(pair, a)
		if size == 1 {
			inverse = graph.Sub(one, coupling)
			continue
		}
		inverse = graph.Sub(inverse, product(product(inverse, coupling), inverse))
	}
	return inverse
}

// keptWhere has zeros where keep is false.
func keptWhere(keep, x *graph.Node) *graph.Node { return graph.Where(keep, x, graph.ZerosLike(x)) }

// product is a·b for matrices a [n, i, j] and b [n, j, k].
func product(a, b *graph.Node) *graph.Node {
	return graph.Dot(a, b).General([]int{2}, []int{0}, []int{1}, []int{0})
}

// productT is a·bᵀ.
func productT(a, b *graph.Node) *graph.Node {
	return graph.Dot(a, b).General([]int{2}, []int{0}, []int{2}, []int{0})
}

// transposedProduct is aᵀ·b.
func transposedProduct(a, b *graph.Node) *graph.Node {
	return graph.Dot(a, b).General([]int{1}, []int{0}, []int{1}, []int{0})
}
