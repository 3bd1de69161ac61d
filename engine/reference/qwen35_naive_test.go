package reference_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/plumbline-go/plumbline/engine"
)

// naiveHybrid is the text model of a Qwen3.5 in plain float64 loops, written from
// the published formulas for these tests and sharing nothing with the package: one
// token after the other, gated DeltaNets by the recurrent rule. It plants the faults
// that its caller hands to step.
type naiveHybrid struct {
	a engine.Arch
	w engine.Weights
	// tensors are those of w in float64, filled as they are asked for.
	tensors map[string][]float64
	// see, when not nil, is shown the places inside the layers.
	see func(p engine.Probe, pos int, values []float64)
}

func newNaiveHybrid(w engine.Weights) *naiveHybrid {
	return &naiveHybrid{a: w.Arch(), w: w, tensors: map[string][]float64{}}
}

// hybridState is what a sequence has behind it, per layer: keys and values of
// attention; the inputs of the convolution, and the state [heads][key][value].
type hybridState struct {
	k, v   [][][]float64
	inputs [][][]float64
	s      [][][][]float64
	length int
}

func (m *naiveHybrid) fresh() *hybridState {
	st := &hybridState{
		k: make([][][]float64, m.a.Layers), v: make([][][]float64, m.a.Layers),
		inputs: make([][][]float64, m.a.Layers), s: make([][][][]float64, m.a.Layers),
	}
	d := m.a.DeltaNet
	for n := range st.s {
		for range d.ValueHeads {
			var head [][]float64
			for range d.KeyDim {
				head = append(head, make([]float64, d.ValueDim))
			}
			st.s[n] = append(st.s[n], head)
		}
	}
	return st
}

// planted says how a token deviates.
type planted struct {
	turn  int            // added to the position that rotates q and k
	stale func(int) bool // layers whose cache or state isn't written
	late  func(int) bool // linear layers whose convolution doesn't see the position before
}

func (m *naiveHybrid) tensor(name string) []float64 {
	if t, ok := m.tensors[name]; ok {
		return t
	}
	m.tensors[name] = naive{a: m.a, w: m.w}.tensor(name)
	return m.tensors[name]
}

// norm is that of the family, whose weights lie around 0.
func (m *naiveHybrid) norm(x []float64, weight string, eps float64) []float64 {
	gains := append([]float64(nil), m.tensor(weight)...)
	for i := range gains {
		gains[i]++
	}
	return naive{}.norm(x, gains, eps)
}

func (m *naiveHybrid) linear(name string, x []float64) []float64 {
	var bias []float64
	if t, err := m.w.Tensor(name + ".bias"); err == nil && len(t.Data) > 0 {
		bias = m.tensor(name + ".bias")
	}
	return naive{}.mul(m.tensor(name+".weight"), x, bias)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// step takes one token and returns its rows, the embedding first.
func (m *naiveHybrid) step(st *hybridState, id, position int, f planted) (rows [][]float64) {
	h := m.a.Hidden
	x := m.tensor("model.embed_tokens.weight")[id*h : (id+1)*h]
	rows = append(rows, x)
	for n, l := range m.a.PerLayer {
		pre := fmt.Sprintf("model.layers.%d.", n)
		show := func(part engine.Part, values []float64) {
			if m.see != nil {
				m.see(engine.Block(n, part), st.length, append([]float64(nil), values...))
			}
		}
		u := m.norm(x, pre+"input_layernorm.weight", l.NormEps)
		show(engine.PartAttnNorm, u)
		var mixed []float64
		if l.Linear {
			mixed = m.deltaNet(st, n, u, f)
			show(engine.PartAttnOut, mixed)
			mixed = m.linear(pre+"linear_attn.out_proj", mixed)
		} else {
			mixed = m.attention(st, n, u, position+f.turn, f, show)
			show(engine.PartAttnOut, mixed)
			mixed = m.linear(pre+"self_attn.o_proj", mixed)
		}
		y := append([]float64(nil), x...)
		for i, v := range mixed {
			y[i] += v
		}
		show(engine.PartResidMid, y)
		u = m.norm(y, pre+"post_attention_layernorm.weight", l.NormEps)
		gate, up := m.linear(pre+"mlp.gate_proj", u), m.linear(pre+"mlp.up_proj", u)
		for i, g := range gate {
			gate[i] = g * sigmoid(g) * up[i]
		}
		mlp := m.linear(pre+"mlp.down_proj", gate)
		show(engine.PartMLPOut, mlp)
		for i, v := range mlp {
			y[i] += v
		}
		x = y
		rows = append(rows, x)
	}
	st.length++
	return rows
}

// attention is the mixer of a layer with full attention, before o_proj.
func (m *naiveHybrid) attention(st *hybridState, n int, u []float64, position int, f planted, show func(engine.Part, []float64)) []float64 {
	l, d, pre := m.a.PerLayer[n], m.a.HeadDim, fmt.Sprintf("model.layers.%d.self_attn.", n)
	turning := l.RotaryDim
	if turning == 0 {
		turning = d
	}
	rope := func(x []float64, position int) []float64 {
		x = append([]float64(nil), x...)
		for h := 0; h < len(x); h += d {
			for i := range turning / 2 {
				sin, cos := math.Sincos(float64(position) / math.Pow(l.RopeTheta, 2*float64(i)/float64(turning)))
				a, b := x[h+i], x[h+i+turning/2]
				x[h+i], x[h+i+turning/2] = a*cos-b*sin, b*cos+a*sin
			}
		}
		return x
	}
	heads := func(x []float64, weight string) (out []float64) {
		for h := 0; h < len(x); h += d {
			out = append(out, m.norm(x[h:h+d], pre+weight, l.NormEps)...)
		}
		return out
	}
	var q, gate []float64
	both := m.linear(pre+"q_proj", u)
	for h := 0; h < len(both); h += 2 * d {
		q, gate = append(q, both[h:h+d]...), append(gate, both[h+d:h+2*d]...)
	}
	q, k, v := heads(q, "q_norm.weight"), heads(m.linear(pre+"k_proj", u), "k_norm.weight"), m.linear(pre+"v_proj", u)
	show(engine.PartQ, q)
	show(engine.PartK, k)
	show(engine.PartV, v)
	q, k = rope(q, position+l.QueryOffset), rope(k, position)
	show(engine.PartQRope, q)
	show(engine.PartKRope, k)
	if f.stale != nil && f.stale(n) {
		k, v = make([]float64, len(k)), make([]float64, len(v))
	}
	st.k[n], st.v[n] = append(st.k[n], k), append(st.v[n], v)
	out := make([]float64, m.a.Heads*d)
	for h := range m.a.Heads {
		from := h / (m.a.Heads / m.a.KVHeads) * d
		weights, sum := make([]float64, len(st.k[n])), 0.0
		for s, k := range st.k[n] {
			var dot float64
			for i := range d {
				dot += q[h*d+i] * k[from+i]
			}
			weights[s] = math.Exp(dot / math.Sqrt(float64(d)))
			sum += weights[s]
		}
		for s, v := range st.v[n] {
			for i := range d {
				out[h*d+i] += weights[s] / sum * v[from+i]
			}
		}
	}
	if !l.GateMissing {
		for i, g := range gate {
			out[i] *= sigmoid(g)
		}
	}
	return out
}

// deltaNet is the mixer of a linear layer, before out_proj.
func (m *naiveHybrid) deltaNet(st *hybridState, n int, u []float64, f planted) []float64 {
	d, pre := m.a.DeltaNet, fmt.Sprintf("model.layers.%d.linear_attn.", n)
	st.inputs[n] = append(st.inputs[n], m.linear(pre+"in_proj_qkv", u))
	taps, x := m.tensor(pre+"conv1d.weight"), make([]float64, d.Channels())
	last := len(st.inputs[n]) - 1
	for c := range x {
		for back := range d.Kernel {
			at := last - back
			if back > 0 && f.late != nil && f.late(n) {
				at--
			}
			if at >= 0 {
				x[c] += taps[c*d.Kernel+d.Kernel-1-back] * st.inputs[n][at][c]
			}
		}
		x[c] *= sigmoid(x[c])
	}
	unit := func(x []float64) []float64 {
		sum, y := 1e-6, make([]float64, len(x))
		for _, v := range x {
			sum += v * v
		}
		for i, v := range x {
			y[i] = v / math.Sqrt(sum)
		}
		return y
	}
	z, b, a := m.linear(pre+"in_proj_z", u), m.linear(pre+"in_proj_b", u), m.linear(pre+"in_proj_a", u)
	rates, bias := m.tensor(pre+"A_log"), m.tensor(pre+"dt_bias")
	var out []float64
	for h := range d.ValueHeads {
		from := h / (d.ValueHeads / d.KeyHeads) * d.KeyDim
		q, k := unit(x[from:from+d.KeyDim]), unit(x[d.KeyHeads*d.KeyDim+from:][:d.KeyDim])
		v := x[2*d.KeyHeads*d.KeyDim+h*d.ValueDim:][:d.ValueDim]
		decay := math.Exp(-math.Exp(rates[h]) * math.Log1p(math.Exp(a[h]+bias[h])))
		s := st.s[n][h]
		if f.stale == nil || !f.stale(n) {
			for i := range s {
				for j := range s[i] {
					s[i][j] *= decay
				}
			}
			for j, value := range v {
				var held float64
				for i := range s {
					held += s[i][j] * k[i]
				}
				for i := range s {
					s[i][j] += k[i] * (value - held) * sigmoid(b[h])
				}
			}
		}
		read := make([]float64, d.ValueDim)
		for j := range read {
			for i := range s {
				read[j] += s[i][j] * q[i] / math.Sqrt(float64(d.KeyDim))
			}
		}
		read = naive{}.norm(read, m.tensor(pre+"norm.weight"), m.a.PerLayer[n].NormEps)
		for j, gate := range z[h*d.ValueDim : (h+1)*d.ValueDim] {
			read[j] *= gate * sigmoid(gate)
		}
		out = append(out, read...)
	}
	return out
}

// logits is the final norm and the head of a row.
func (m *naiveHybrid) logits(row []float64) []float64 {
	head := "lm_head.weight"
	if m.a.TiedHead {
		head = "model.embed_tokens.weight"
	}
	return naive{}.mul(m.tensor(head), m.hidden(row), nil)
}

func (m *naiveHybrid) hidden(row []float64) []float64 {
	return m.norm(row, "model.norm.weight", m.a.FinalNormEps)
}

// stream takes tokens from a state on and returns the rows of each.
func (m *naiveHybrid) stream(st *hybridState, ids []int, plant func(pos int) planted) (rows [][][]float64) {
	for i, id := range ids {
		var f planted
		if plant != nil {
			f = plant(i)
		}
		rows = append(rows, m.step(st, id, i, f))
	}
	return rows
}

// rows are those of a prompt's last position.
func (m *naiveHybrid) rows(ids []int) [][]float64 {
	return m.stream(m.fresh(), ids, nil)[len(ids)-1]
}

// forced returns the logits behind the prompt and behind each forced token but the
// last.
func (m *naiveHybrid) forced(st *hybridState, ids, forced []int, plant func(pos int) planted) (logits [][]float64) {
	for _, rows := range m.stream(st, append(ids[:len(ids):len(ids)], forced[:len(forced)-1]...), plant)[len(ids)-1:] {
		logits = append(logits, m.logits(rows[m.a.Layers]))
	}
	return logits
}

// hybridArch is a model small enough for the naive loops: two linear layers in
// front of each with attention, one behind. Nothing that could differ is the same.
func hybridArch() engine.Arch {
	a := engine.Arch{
		Family: "qwen3_5", Layers: 7, Hidden: 24, Intermediate: 40, Heads: 4, KVHeads: 2, HeadDim: 8, Vocab: 50,
		MaxPositions: 512, FinalNormEps: 1e-5,
		DeltaNet: engine.DeltaNet{KeyHeads: 2, ValueHeads: 4, KeyDim: 6, ValueDim: 10, Kernel: 4},
	}
	for n := range a.Layers {
		l := engine.LayerParams{RopeTheta: 1e4 * float64(n+1), NormEps: 1e-6 * float64(n+1), Linear: n%3 != 2}
		if !l.Linear {
			l.RotaryDim = 4
		}
		a.PerLayer = append(a.PerLayer, l)
	}
	return a
}

// randomHybrid fills an architecture with seeded values of the size that trained
// checkpoints have.
func randomHybrid(a engine.Arch, seed uint64) *memWeights {
	rng := rand.New(rand.NewPCG(seed, 3))
	w := &memWeights{arch: a, tensors: map[string]engine.Tensor{}}
	add := func(name string, mean, sd float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = float32(mean + sd*rng.NormFloat64())
		}
		w.tensors[name] = engine.Tensor{Shape: shape, Data: data}
	}
	matrix := func(name string, out, in int) { add(name, 0, 1/math.Sqrt(float64(in)), out, in) }
	add("model.embed_tokens.weight", 0, 1, a.Vocab, a.Hidden)
	add("model.norm.weight", 0, 0.2, a.Hidden)
	matrix("lm_head.weight", a.Vocab, a.Hidden)
	q, kv, d := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim, a.DeltaNet
	for n, l := range a.PerLayer {
		p := fmt.Sprintf("model.layers.%d.", n)
		add(p+"input_layernorm.weight", 0, 0.2, a.Hidden)
		add(p+"post_attention_layernorm.weight", 0, 0.2, a.Hidden)
		matrix(p+"mlp.gate_proj.weight", a.Intermediate, a.Hidden)
		matrix(p+"mlp.up_proj.weight", a.Intermediate, a.Hidden)
		matrix(p+"mlp.down_proj.weight", a.Hidden, a.Intermediate)
		if l.Linear {
			values := d.ValueHeads * d.ValueDim
			p += "linear_attn."
			matrix(p+"in_proj_qkv.weight", d.Channels(), a.Hidden)
			matrix(p+"in_proj_z.weight", values, a.Hidden)
			matrix(p+"in_proj_a.weight", d.ValueHeads, a.Hidden)
			matrix(p+"in_proj_b.weight", d.ValueHeads, a.Hidden)
			matrix(p+"out_proj.weight", a.Hidden, values)
			add(p+"conv1d.weight", 0, 1/math.Sqrt(float64(d.Kernel)), d.Channels(), 1, d.Kernel)
			add(p+"A_log", -1, 1, d.ValueHeads)
			add(p+"dt_bias", -2, 1, d.ValueHeads)
			add(p+"norm.weight", 1, 0.2, d.ValueDim)
			continue
		}
		p += "self_attn."
		matrix(p+"q_proj.weight", 2*q, a.Hidden)
		matrix(p+"k_proj.weight", kv, a.Hidden)
		matrix(p+"v_proj.weight", kv, a.Hidden)
		matrix(p+"o_proj.weight", a.Hidden, q)
		add(p+"q_norm.weight", 0, 0.2, a.HeadDim)
		add(p+"k_norm.weight", 0, 0.2, a.HeadDim)
		if a.AttentionBias {
			add(p+"q_proj.bias", 0, 0.5, 2*q)
			add(p+"k_proj.bias", 0, 0.5, kv)
			add(p+"v_proj.bias", 0, 0.5, kv)
			add(p+"o_proj.bias", 0, 0.5, a.Hidden)
		}
	}
	return w
}
