package reference_test

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// naive is a Qwen2 or Llama decoder in plain float64 loops, written from the published
// formulas for these tests and sharing nothing with the package. It keeps all
// keys and values, so the rows of all positions come from one pass. It plants
// the faults of a.Fault as package engine documents them.
type naive struct {
	a engine.Arch
	w engine.Weights
	// prompt is how many of the tokens are the prompt's, all when 0, and chunk
	// the length of its chunks, for Fault.ChunkShift.
	prompt, chunk int
	// front is what lies in front of the sequence in the cache, per layer, and
	// behind, when not nil, gets what the sequence itself puts there.
	front, behind []heads
	// unwritten leaves zeros in the cache for what comes behind the prompt.
	unwritten bool
	// see, when not nil, is shown the places inside the layers.
	see func(p engine.Probe, pos int, values []float64)
}

// heads are the keys (after RoPE) and values of some positions of a layer.
type heads struct{ k, v [][]float64 }

// position resolves one that counts from the end of a prompt of n tokens.
func position(p, n int) int {
	if p < 0 {
		return n + p
	}
	return p
}

func (m naive) tensor(name string) []float64 {
	t, err := m.w.Tensor(name)
	if err != nil {
		panic(err)
	}
	out := make([]float64, len(t.Data))
	for i, v := range t.Data {
		out[i] = float64(v)
	}
	return out
}

func (m naive) norm(x, g []float64, eps float64) []float64 {
	var ss float64
	for _, v := range x {
		ss += v * v
	}
	r := 1 / math.Sqrt(ss/float64(len(x))+eps)
	y := make([]float64, len(x))
	for i := range x {
		y[i] = x[i] * r * g[i]
	}
	return y
}

func (m naive) mul(w, x, bias []float64) []float64 {
	n := len(w) / len(x)
	y := make([]float64, n)
	for o := range n {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
		if bias != nil {
			y[o] += bias[o]
		}
	}
	return y
}

// rope turns each pair (i, i+d/2) of each head by position * theta^(-2i/d).
func (m naive) rope(x []float64, position int, theta float64) []float64 {
	d := m.a.HeadDim
	y := make([]float64, len(x))
	for h := 0; h < len(x); h += d {
		for i := range d / 2 {
			angle := float64(position) / math.Pow(theta, 2*float64(i)/float64(d))
			s, c := math.Sincos(angle)
			a, b := x[h+i], x[h+i+d/2]
			y[h+i], y[h+i+d/2] = a*c-b*s, b*c+a*s
		}
	}
	return y
}

// layer runs layer n on all positions and returns all outputs.
func (m naive) layer(n int, xs [][]float64) [][]float64 {
	pre := fmt.Sprintf("model.layers.%d.", n)
	lp := m.a.PerLayer[n]
	load := func(s string) []float64 { return m.tensor(pre + s) }
	g1, g2 := load("input_layernorm.weight"), load("post_attention_layernorm.weight")
	wq, wk, wv, wo := load("self_attn.q_proj.weight"), load("self_attn.k_proj.weight"), load("self_attn.v_proj.weight"), load("self_attn.o_proj.weight")
	var bq, bk, bv, bo []float64
	if m.a.Family == "qwen2" || m.a.AttentionBias {
		bq, bk, bv = load("self_attn.q_proj.bias"), load("self_attn.k_proj.bias"), load("self_attn.v_proj.bias")
	}
	if m.a.AttentionBias {
		bo = load("self_attn.o_proj.bias")
	}
	gate, up, down := load("mlp.gate_proj.weight"), load("mlp.up_proj.weight"), load("mlp.down_proj.weight")
	d, rep := m.a.HeadDim, m.a.Heads/m.a.KVHeads
	var front heads
	if m.front != nil {
		front = m.front[n]
	}
	lead := len(front.k)
	ks, vs := append([][]float64(nil), front.k...), append([][]float64(nil), front.v...)
	var out [][]float64
	for pos, x := range xs {
		show := func(part engine.Part, values []float64) {
			if m.see != nil {
				m.see(engine.Block(n, part), pos, append([]float64(nil), values...))
			}
		}
		h := m.norm(x, g1, lp.NormEps)
		show(engine.PartAttnNorm, h)
		turn, f := pos, m.a.Fault
		if f.DecodeShift != 0 && pos >= position(f.DecodeFrom, len(xs)) {
			turn += f.DecodeShift
		}
		if m.chunk > 1 && pos >= m.chunk && (m.prompt == 0 || pos < m.prompt) {
			turn += f.ChunkShift
		}
		q, k := m.mul(wq, h, bq), m.mul(wk, h, bk)
		show(engine.PartQ, q)
		show(engine.PartK, k)
		q = m.rope(q, turn+lp.QueryOffset, lp.RopeTheta)
		ks = append(ks, m.rope(k, turn, lp.RopeTheta))
		vs = append(vs, m.mul(wv, h, bv))
		show(engine.PartQRope, q)
		show(engine.PartKRope, ks[lead+pos])
		show(engine.PartV, vs[lead+pos])
		if f.StaleCache && n == f.StaleLayer && pos == position(f.StalePosition, len(xs)) || m.unwritten && pos >= m.prompt {
			clear(ks[lead+pos])
			clear(vs[lead+pos])
		}
		att := make([]float64, m.a.Heads*d)
		for head := range m.a.Heads {
			from := head / rep * d
			weights := make([]float64, lead+pos+1)
			var sum float64
			for s := range weights {
				var dot float64
				for i := range d {
					dot += q[head*d+i] * ks[s][from+i]
				}
				weights[s] = math.Exp(dot / math.Sqrt(float64(d)))
				sum += weights[s]
			}
			for s, p := range weights {
				for i := range d {
					att[head*d+i] += p / sum * vs[s][from+i]
				}
			}
		}
		show(engine.PartAttnOut, att)
		y := append([]float64(nil), x...)
		for i, v := range m.mul(wo, att, bo) {
			y[i] += v
		}
		show(engine.PartResidMid, y)
		h = m.norm(y, g2, lp.NormEps)
		gv, uv := m.mul(gate, h, nil), m.mul(up, h, nil)
		for i := range gv {
			gv[i] = gv[i] / (1 + math.Exp(-gv[i])) * uv[i]
		}
		mlp := m.mul(down, gv, nil)
		show(engine.PartMLPOut, mlp)
		for i, v := range mlp {
			y[i] += v
		}
		out = append(out, y)
	}
	if m.behind != nil {
		m.behind[n] = heads{ks[lead:], vs[lead:]}
	}
	return out
}

// stream returns the residual stream of all positions: embed, then the output of
// each layer.
func (m naive) stream(ids []int) [][][]float64 {
	table := m.tensor("model.embed_tokens.weight")
	var xs [][]float64
	for _, id := range ids {
		xs = append(xs, table[id*m.a.Hidden:(id+1)*m.a.Hidden])
	}
	if m.a.Fault.EmbedFirst {
		xs[len(xs)-1] = xs[0]
	}
	all := [][][]float64{xs}
	for n := range m.a.Layers {
		xs = m.layer(n, xs)
		all = append(all, xs)
	}
	return all
}

// rows returns the layers+1 rows of the last position.
func (m naive) rows(ids []int) (rows [][]float64) {
	for _, xs := range m.stream(ids) {
		rows = append(rows, xs[len(xs)-1])
	}
	return rows
}

// forced returns the logits behind the prompt and behind each forced token but
// the last.
func (m naive) forced(ids, forced []int) (logits [][]float64) {
	m.prompt = len(ids)
	all := m.stream(append(ids[:len(ids):len(ids)], forced[:len(forced)-1]...))
	for _, row := range all[m.a.Layers][len(ids)-1:] {
		logits = append(logits, m.logits(row))
	}
	return logits
}

// logits is the final norm and the head of a row.
func (m naive) logits(row []float64) []float64 {
	head := "lm_head.weight"
	if m.a.TiedHead {
		head = "model.embed_tokens.weight"
	}
	return m.mul(m.tensor(head), m.norm(row, m.tensor("model.norm.weight"), m.a.FinalNormEps), nil)
}
