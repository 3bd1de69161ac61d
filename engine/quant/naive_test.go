package quant

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
)

// naive is a second implementation of the scheme, straight from its
// description: token by token, with a growing KV cache, int64 sums, no batching
// and no caching.
type naive struct {
	w    *seeded.Memory
	kv8  bool
	away bool
	// perTensor weights, embedding per row
	perTensor, embedPerRow, rowsInt8 bool
	// what a scheme has beside rowsInt8
	floatWeights bool
	block        int
	cache        engine.KVCache
	// nearest, when not nil, becomes the least distance of a quotient from a tie,
	// as a share of the largest one in its format
	nearest *float64
	// codes leaves the scales of the head out; all its rows have the same one
	codes bool
	// see, when not nil, is given each part of each layer, position by position, and
	// the embedding as that of layer -1
	see func(n int, part engine.Part, x []float64)
}

func (m naive) note(n int, part engine.Part, x []float64) {
	if m.see != nil {
		m.see(n, part, append([]float64{}, x...))
	}
}

// near notes how near a quotient is to a tie.
func (m naive) near(x, largest float64) {
	if m.nearest != nil {
		*m.nearest = math.Min(*m.nearest, math.Abs(x-math.Floor(x)-0.5)/largest)
	}
}

func (m naive) tie(x float64) float64 {
	m.near(x, 127)
	if m.away {
		return math.Copysign(math.Floor(math.Abs(x)+0.5), x)
	}
	return math.RoundToEven(x)
}

func (m naive) quant(x []float64, scale float64) (codes []int64) {
	for _, v := range x {
		c := 0.0
		if scale != 0 {
			c = m.tie(v / scale)
		}
		codes = append(codes, int64(math.Max(-127, math.Min(127, c))))
	}
	return codes
}

func largest(x []float64) float64 {
	a := 0.0
	for _, v := range x {
		a = math.Max(a, math.Abs(v))
	}
	return a
}

func (m naive) fake(x []float64) []float64 {
	s := largest(x) / 127
	out := make([]float64, len(x))
	for i, c := range m.quant(x, s) {
		out[i] = float64(c) * s
	}
	return out
}

func (m naive) residual(x []float64) []float64 {
	if m.rowsInt8 {
		return m.fake(x)
	}
	return x
}

func (m naive) under(s engine.Scheme) naive {
	m.rowsInt8, m.floatWeights, m.block, m.cache = s.RowsInt8, s.FloatWeights, s.ActivationBlock, s.KVCache
	return m
}

// half is float16 by its definition: 11 significant bits, and no bit below 2^-24.
func (m naive) half(x float64) float64 {
	_, exp := math.Frexp(x)
	last := math.Max(float64(exp-11), -24)
	m.near(x/math.Exp2(last), 2048)
	return math.RoundToEven(x/math.Exp2(last)) * math.Exp2(last)
}

// inBlocks rounds to codes, block after block, with scales that are stored as
// float16.
func (m naive) inBlocks(x []float64, size int) (out []float64) {
	for lo := 0; lo < len(x); lo += size {
		b := x[lo:min(lo+size, len(x))]
		s := largest(b) / 127
		for _, c := range m.quant(b, s) {
			out = append(out, float64(c)*m.half(s))
		}
	}
	return out
}

// kept is a row of heads in the format of a KV cache.
func (m naive) kept(x []float64, f engine.KVFormat) (out []float64) {
	dim := m.w.Architecture.HeadDim
	for at := 0; at < len(x); at += dim {
		switch f {
		case engine.KVQ8_0:
			out = append(out, m.inBlocks(x[at:at+dim], 32)...)
		case engine.KVFloat16:
			for _, v := range x[at : at+dim] {
				out = append(out, m.half(v))
			}
		default:
			out = append(out, x[at:at+dim]...)
		}
	}
	return out
}

// product is the product of w [rows, len(x)] with x, both rounded as the scheme
// says: w with one scale per row or one for all.
func (m naive) product(w, x []float64, perTensor bool) []float64 {
	xs := largest(x) / 127
	xc := m.quant(x, xs)
	out := make([]float64, len(w)/len(x))
	for o := range out {
		row := w[o*len(x) : (o+1)*len(x)]
		ws := largest(row) / 127
		if perTensor {
			ws = largest(w) / 127
		}
		if !m.floatWeights && m.block == 0 {
			var sum int64
			for i, c := range m.quant(row, ws) {
				sum += c * xc[i]
			}
			if out[o] = float64(sum); !m.codes {
				out[o] *= xs * ws
			}
			continue
		}
		values, weights := make([]float64, len(x)), row
		for i, c := range xc {
			values[i] = float64(c) * xs
		}
		if m.block > 0 {
			values = m.inBlocks(x, m.block)
		}
		if !m.floatWeights {
			weights = make([]float64, len(row))
			for i, c := range m.quant(row, ws) {
				weights[i] = float64(c) * ws
			}
		}
		for i, v := range values {
			out[o] += v * weights[i]
		}
	}
	return out
}

func (m naive) get(name string) []float64 {
	var out []float64
	for _, v := range m.w.Tensors[name].Data {
		out = append(out, float64(v))
	}
	return out
}

func (m naive) linear(name string, x []float64) []float64 {
	m.codes = false
	out := m.product(m.get(name+".weight"), x, m.perTensor)
	for i, b := range m.get(name + ".bias") {
		out[i] += b
	}
	return out
}

func (m naive) norm(name string, x []float64, eps float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	out := make([]float64, len(x))
	for i, g := range m.get(name) {
		out[i] = x[i] / math.Sqrt(sum/float64(len(x))+eps) * g
	}
	return out
}

func rotated(x []float64, dim int, theta float64, pos int) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		j := i % dim
		angle := float64(pos) / math.Pow(theta, float64(2*(j%(dim/2)))/float64(dim))
		if j < dim/2 {
			out[i] = x[i]*math.Cos(angle) - x[i+dim/2]*math.Sin(angle)
		} else {
			out[i] = x[i]*math.Cos(angle) + x[i-dim/2]*math.Sin(angle)
		}
	}
	return out
}

func plus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

// rows returns the last token's rows.
func (m naive) rows(ids []int) [][]float64 {
	rows, _ := m.run(ids, []int{0})
	return rows
}

// logits is the final norm and the head of one row.
func (m naive) logits(x []float64) []float64 {
	a := m.w.Architecture
	name, perRow := "lm_head.weight", !m.perTensor
	if a.TiedHead {
		name, perRow = "model.embed_tokens.weight", m.embedPerRow
	}
	h := m.norm("model.norm.weight", x, a.FinalNormEps)
	return m.product(m.get(name), h, !perRow || m.codes)
}

// run returns the last prompt token's rows, and one row of logits per token of
// output.
func (m naive) run(ids, output []int) (rows, logits [][]float64) {
	a := m.w.Architecture
	f := a.Fault
	keys, values := make([][][]float64, a.Layers), make([][][]float64, a.Layers)
	table := m.get("model.embed_tokens.weight")
	end := func(p int) int { return map[bool]int{true: len(ids) + p, false: p}[p < 0] }
	for t, id := range append(append([]int{}, ids...), output[:len(output)-1]...) {
		if f.EmbedFirst && t == len(ids)-1 {
			id = ids[0]
		}
		row := table[id*a.Hidden : (id+1)*a.Hidden]
		s := largest(table) / 127
		if m.embedPerRow {
			s = largest(row) / 127
		}
		x := row
		if !m.floatWeights {
			x = make([]float64, a.Hidden)
			for i, c := range m.quant(row, s) {
				x[i] = float64(c) * s
			}
		}
		x = m.residual(x)
		m.note(-1, "", x)
		all := [][]float64{x}
		pos := t
		if t >= end(f.DecodeFrom) {
			pos += f.DecodeShift
		}
		for n := range a.Layers {
			c := a.PerLayer[n]
			p := fmt.Sprintf("model.layers.%d.", n)
			h := m.norm(p+"input_layernorm.weight", x, c.NormEps)
			q, k, v := m.linear(p+"self_attn.q_proj", h), m.linear(p+"self_attn.k_proj", h), m.linear(p+"self_attn.v_proj", h)
			m.note(n, engine.PartAttnNorm, h)
			m.note(n, engine.PartQ, q)
			m.note(n, engine.PartK, k)
			m.note(n, engine.PartV, v)
			q = rotated(q, a.HeadDim, c.RopeTheta, pos+c.QueryOffset)
			k = rotated(k, a.HeadDim, c.RopeTheta, pos)
			m.note(n, engine.PartQRope, q)
			m.note(n, engine.PartKRope, k)
			if !m.kv8 {
				k, v = m.kept(k, m.cache.K), m.kept(v, m.cache.V)
			}
			q = m.kept(q, m.cache.K)
			if m.kv8 {
				for g := range a.KVHeads {
					copy(k[g*a.HeadDim:], m.fake(k[g*a.HeadDim:(g+1)*a.HeadDim]))
					copy(v[g*a.HeadDim:], m.fake(v[g*a.HeadDim:(g+1)*a.HeadDim]))
				}
			}
			if f.StaleCache && f.StaleLayer == n && end(f.StalePosition) == t {
				k, v = make([]float64, len(k)), make([]float64, len(v))
			}
			keys[n], values[n] = append(keys[n], k), append(values[n], v)
			att := make([]float64, a.Heads*a.HeadDim)
			for head := range a.Heads {
				g := head / (a.Heads / a.KVHeads) * a.HeadDim
				var e []float64
				sum := 0.0
				for i := range keys[n] {
					score := 0.0
					for d := range a.HeadDim {
						score += q[head*a.HeadDim+d] * keys[n][i][g+d]
					}
					e = append(e, math.Exp(score/math.Sqrt(float64(a.HeadDim))))
					sum += e[i]
				}
				for i := range e {
					e[i] /= sum
					if m.cache.V == engine.KVFloat16 {
						e[i] = m.half(e[i])
					}
					for d := range a.HeadDim {
						att[head*a.HeadDim+d] += e[i] * values[n][i][g+d]
					}
				}
			}
			m.note(n, engine.PartAttnOut, att)
			x = m.residual(plus(x, m.linear(p+"self_attn.o_proj", att)))
			m.note(n, engine.PartResidMid, x)
			h = m.norm(p+"post_attention_layernorm.weight", x, c.NormEps)
			g, u := m.linear(p+"mlp.gate_proj", h), m.linear(p+"mlp.up_proj", h)
			for i := range g {
				g[i] = g[i] / (1 + math.Exp(-g[i])) * u[i]
			}
			down := m.linear(p+"mlp.down_proj", g)
			m.note(n, engine.PartMLPOut, down)
			x = m.residual(plus(x, down))
			m.note(n, engine.PartResidPost, x)
			all = append(all, x)
		}
		if t == len(ids)-1 {
			rows = all
		}
		if t >= len(ids)-1 {
			logits = append(logits, m.logits(x))
		}
	}
	return rows, logits
}

// tiny draws a model with full-precision weights, in which rounding meets no
// ties. Heads*HeadDim differs from Hidden, and no two dimensions agree.
func tiny(seed uint64) *seeded.Memory {
	rng := rand.New(rand.NewPCG(seed, 0))
	a := engine.Arch{Family: "qwen2", Layers: 3, Hidden: 10, Intermediate: 14, Heads: 4, KVHeads: 2, HeadDim: 6, Vocab: 19, TiedHead: true, FinalNormEps: 2e-3}
	w := &seeded.Memory{Tensors: map[string]engine.Tensor{}}
	add := func(name string, std float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		t := engine.Tensor{Shape: shape, Data: make([]float32, n)}
		for i := range t.Data {
			t.Data[i] = float32(std * rng.NormFloat64())
		}
		w.Tensors[name] = t
	}
	add("model.embed_tokens.weight", 1, a.Vocab, a.Hidden)
	for n := range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 100 * float64(n+1), NormEps: 1e-3 * float64(n+1), QueryOffset: n})
		p := fmt.Sprintf("model.layers.%d.", n)
		q, kv := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
		add(p+"input_layernorm.weight", 1, a.Hidden)
		add(p+"post_attention_layernorm.weight", 1, a.Hidden)
		for name, rows := range map[string]int{"q": q, "k": kv, "v": kv} {
			rng = rand.New(rand.NewPCG(seed, uint64(n)<<8+uint64(name[0]))) // map order must not matter
			add(p+"self_attn."+name+"_proj.weight", 0.4, rows, a.Hidden)
			add(p+"self_attn."+name+"_proj.bias", 0.4, rows)
		}
		rng = rand.New(rand.NewPCG(seed, uint64(n)))
		add(p+"self_attn.o_proj.weight", 0.1, a.Hidden, q)
		add(p+"mlp.gate_proj.weight", 0.4, a.Intermediate, a.Hidden)
		add(p+"mlp.up_proj.weight", 0.4, a.Intermediate, a.Hidden)
		add(p+"mlp.down_proj.weight", 0.2, a.Hidden, a.Intermediate)
	}
	rng = rand.New(rand.NewPCG(seed, 1<<20))
	add("model.norm.weight", 1, a.Hidden)
	add("lm_head.weight", 0.5, a.Vocab, a.Hidden) // for who unties it
	w.Architecture = a
	return w
}
