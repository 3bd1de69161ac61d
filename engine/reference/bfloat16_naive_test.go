package reference_test

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// The places inside a layer at which transformers' bfloat16 run rounds, and those
// marked + at which it doesn't.
const (
	atNormalised = "the normalised row, before the weight"
	atBias       = "+ the product, before the bias"
	atCos        = "cos and sin"
	atTurned     = "the products of a rotation"
	atScores     = "scores"
	atScaled     = "scores times the scale"
	atMasses     = "the softmax's weights"
	atSigmoid    = "+ the sigmoid"
	atActivation = "the activation"
	atGated      = "the gated product"
	atSum        = "the residual sum, before the layer's factor"
	atTwiceGemma = "+ the normalised row, before Gemma's weight"
)

// naive16 is one layer in bfloat16: float64 loops, each result rounded as the
// published code of transformers rounds it. It shares nothing with the package. flip
// is a place at which it does the opposite.
type naive16 struct {
	a     engine.Arch
	w     engine.Weights
	layer int
	flip  string
}

// bf16 is the nearest bfloat16 value, ties to even: 8 significant bits.
func bf16(x float64) float64 {
	if x == 0 {
		return x
	}
	_, e := math.Frexp(x)
	step := math.Ldexp(1, max(e-8, -133))
	return math.RoundToEven(x/step) * step
}

// at rounds x unless its place is flipped; places marked + are rounded if they are.
func (m naive16) at(place string, x float64) float64 {
	if (place == m.flip) != (place[0] == '+') {
		return x
	}
	return bf16(x)
}

func (m naive16) gemma() bool { return m.a.Family == "gemma4_text" }

func (m naive16) weight(name string) []float64 {
	t, err := m.w.Tensor(fmt.Sprintf("model.layers.%d.%s", m.layer, name))
	if err != nil {
		return nil
	}
	out := make([]float64, len(t.Data))
	for i, v := range t.Data {
		out[i] = bf16(float64(v))
	}
	return out
}

func (m naive16) norm(x []float64, weight string) []float64 {
	g := m.weight(weight)
	var ss float64
	for _, v := range x {
		ss += v * v
	}
	r := 1 / math.Sqrt(ss/float64(len(x))+m.a.PerLayer[m.layer].NormEps)
	y := make([]float64, len(x))
	for i, v := range x {
		place := atNormalised
		if m.gemma() {
			place = atTwiceGemma
		}
		y[i] = m.at(place, v*r)
		if g != nil {
			y[i] *= g[i]
		}
		y[i] = bf16(y[i])
	}
	return y
}

func (m naive16) headNorm(x []float64, dim int, weight string) []float64 {
	var y []float64
	for h := 0; h < len(x); h += dim {
		y = append(y, m.norm(x[h:h+dim], weight)...)
	}
	return y
}

func (m naive16) linear(x []float64, name string) []float64 {
	w, b := m.weight(name+".weight"), m.weight(name+".bias")
	y := make([]float64, len(w)/len(x))
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
		if b != nil {
			y[o] = m.at(atBias, y[o]) + b[o]
		}
		y[o] = bf16(y[o])
	}
	return y
}

func (m naive16) rope(x []float64, position int) []float64 {
	l, dim := m.a.PerLayer[m.layer], m.a.HeadDimOf(m.layer)
	pairs, factor := dim/2, 1.0
	if l.RopePairs != 0 {
		pairs = l.RopePairs
	}
	if l.RopeFactor != 0 {
		factor = l.RopeFactor
	}
	y := make([]float64, len(x))
	for h := 0; h < len(x); h += dim {
		for i := range dim / 2 {
			s, c := 0.0, 1.0
			if i < pairs {
				s, c = math.Sincos(float64(position) / math.Pow(l.RopeTheta, 2*float64(i)/float64(dim)) / factor)
			}
			s, c = m.at(atCos, s), m.at(atCos, c)
			a, b := x[h+i], x[h+i+dim/2]
			y[h+i] = bf16(m.at(atTurned, a*c) + m.at(atTurned, -b*s))
			y[h+i+dim/2] = bf16(m.at(atTurned, b*c) + m.at(atTurned, a*s))
		}
	}
	return y
}

// attention is that of the last of the positions of k and v.
func (m naive16) attention(q []float64, k, v [][]float64) []float64 {
	dim, scale, first := m.a.HeadDimOf(m.layer), 1.0, 0
	if !m.gemma() {
		scale = float64(float32(1 / math.Sqrt(float64(dim)))) // torch has it as float32
	}
	if w := m.a.PerLayer[m.layer].Window; w > 0 {
		first = max(0, len(k)-w)
	}
	k, v = k[first:], v[first:]
	rep := m.a.Heads / m.a.KVHeadsOf(m.layer)
	out := make([]float64, len(q))
	for head := range m.a.Heads {
		from, masses := head/rep*dim, make([]float64, len(k))
		top, sum := math.Inf(-1), 0.0
		for s := range k {
			for i := range dim {
				masses[s] += q[head*dim+i] * k[s][from+i]
			}
			masses[s] = m.at(atScores, masses[s])
			if scale != 1 {
				masses[s] = m.at(atScaled, masses[s]*scale)
			}
			top = max(top, masses[s])
		}
		for s := range masses {
			masses[s] = math.Exp(masses[s] - top)
			sum += masses[s]
		}
		for i := range dim {
			var y float64
			for s, e := range masses {
				y += m.at(atMasses, e/sum) * v[s][from+i]
			}
			out[head*dim+i] = bf16(y)
		}
	}
	return out
}

func (m naive16) mlp(mid []float64) []float64 {
	before := "post_attention_layernorm.weight"
	if m.gemma() {
		before = "pre_feedforward_layernorm.weight"
	}
	h := m.norm(mid, before)
	gate, up := m.linear(h, "mlp.gate_proj"), m.linear(h, "mlp.up_proj")
	for i, g := range gate {
		if m.gemma() {
			g = g / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g)))
		} else {
			g *= m.at(atSigmoid, 1/(1+math.Exp(-g)))
		}
		gate[i] = m.at(atGated, m.at(atActivation, g)*up[i])
	}
	down := m.linear(gate, "mlp.down_proj")
	if m.gemma() {
		return m.norm(down, "post_feedforward_layernorm.weight")
	}
	return down
}

// places are all places of the layer, each from the places before it in have: what
// strayed on the way to them strays no further.
func (m naive16) places(rows [][]float64, have map[engine.Part][][]float64) map[engine.Part][][]float64 {
	out := map[engine.Part][][]float64{}
	dim := m.a.HeadDimOf(m.layer)
	for pos, x := range rows {
		add := func(part engine.Part, values []float64) { out[part] = append(out[part], values) }
		add(engine.PartAttnNorm, m.norm(x, "input_layernorm.weight"))
		h := have[engine.PartAttnNorm][pos]
		q, k := m.linear(h, "self_attn.q_proj"), m.linear(h, "self_attn.k_proj")
		v := k
		if !m.a.PerLayer[m.layer].KeyIsValue {
			v = m.linear(h, "self_attn.v_proj")
		}
		if m.gemma() {
			q, k = m.headNorm(q, dim, "self_attn.q_norm.weight"), m.headNorm(k, dim, "self_attn.k_norm.weight")
			v = m.headNorm(v, dim, "none")
		}
		add(engine.PartQ, q)
		add(engine.PartK, k)
		add(engine.PartV, v)
		add(engine.PartQRope, m.rope(have[engine.PartQ][pos], pos))
		add(engine.PartKRope, m.rope(have[engine.PartK][pos], pos))
		add(engine.PartAttnOut, m.attention(have[engine.PartQRope][pos], have[engine.PartKRope][:pos+1], have[engine.PartV][:pos+1]))
		o := m.linear(have[engine.PartAttnOut][pos], "self_attn.o_proj")
		if m.gemma() {
			o = m.norm(o, "post_attention_layernorm.weight")
		}
		mid, mlp := have[engine.PartResidMid][pos], have[engine.PartMLPOut][pos]
		resid, post := make([]float64, len(x)), make([]float64, len(x))
		factor := m.weight("layer_scalar")
		for i := range x {
			resid[i] = bf16(x[i] + o[i])
			post[i] = m.at(atSum, mid[i]+mlp[i])
			if factor != nil {
				post[i] *= factor[0]
			}
			post[i] = bf16(post[i])
		}
		add(engine.PartResidMid, resid)
		add(engine.PartMLPOut, m.mlp(mid))
		add(engine.PartResidPost, post)
	}
	return out
}
