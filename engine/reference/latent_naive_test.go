package reference_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// latentNaive is a DeepSeek-V2 in plain float64 loops, written from the published
// formulas for these tests and sharing nothing with the package. Scores are taken
// in the latent space, queries times the keys' matrix, where the package makes keys
// of all heads: another order of the same sums.
type latentNaive struct {
	a engine.Arch
	w engine.Weights
	// first is the position of the first token.
	first int
	// forced are the experts to use, by position of the sequence.
	forced engine.Routes
	// stale, when not nil, keeps zeros in a layer's cache at a position.
	stale func(layer, pos int) bool
	// see, when not nil, is shown the places inside the layers.
	see func(p engine.Probe, pos int, values []float64)
}

func (m latentNaive) plain() naive { return naive{a: m.a, w: m.w} }

func (m latentNaive) load(name string) []float64 { return m.plain().tensor(name) }

func (m latentNaive) mul(w, x []float64) []float64 { return m.plain().mul(w, x, nil) }

// frequency is that of rotary pair i, with YaRN's ramp.
func (m latentNaive) frequency(layer, i int) float64 {
	l, d := m.a.PerLayer[layer], float64(m.a.Latent.RopeDim)
	f := math.Pow(l.RopeTheta, -2*float64(i)/d)
	y := l.Yarn
	if y.Factor == 0 {
		return f
	}
	pair := func(turns float64) float64 {
		// The pair p that turns so often in Original positions: Original*theta^(-2p/d) = 2π*turns.
		return d / 2 * math.Log(float64(y.Original)/(2*math.Pi*turns)) / math.Log(l.RopeTheta)
	}
	from, to := math.Max(0, math.Floor(pair(y.BetaFast))), math.Min(d-1, math.Ceil(pair(y.BetaSlow)))
	if from == to {
		to += 0.001
	}
	mix := math.Min(1, math.Max(0, (float64(i)-from)/(to-from)))
	return f*(1-mix) + f/y.Factor*mix
}

// turn rotates neighbouring pairs of x.
func (m latentNaive) turn(layer int, x []float64, position int) []float64 {
	y := make([]float64, len(x))
	size := m.a.PerLayer[layer].Yarn.TableFactor
	if size == 0 {
		size = 1
	}
	for i := range len(x) / 2 {
		s, c := math.Sincos(float64(position) * m.frequency(layer, i))
		y[2*i], y[2*i+1] = size*(x[2*i]*c-x[2*i+1]*s), size*(x[2*i]*s+x[2*i+1]*c)
	}
	return y
}

// layer runs layer n on all positions.
func (m latentNaive) layer(n int, xs [][]float64) (out [][]float64) {
	pre := fmt.Sprintf("model.layers.%d.", n)
	load := func(s string) []float64 { return m.load(pre + s + ".weight") }
	lat, lp, d := m.a.Latent, m.a.PerLayer[n], m.a.HeadDim
	plain, r := d-lat.RopeDim, lat.KVRank
	factor := lp.ScoreFactor
	if factor == 0 {
		factor = 1
	}
	up := load("self_attn.kv_b_proj")
	var keys, latents [][]float64
	for pos, x := range xs {
		show := func(part engine.Part, values []float64) {
			if m.see != nil {
				m.see(engine.Block(n, part), pos, slices.Clone(values))
			}
		}
		norm := func(x []float64, name string, eps float64) []float64 { return m.plain().norm(x, load(name), eps) }
		h := norm(x, "input_layernorm", lp.NormEps)
		show(engine.PartAttnNorm, h)
		q := h
		if lat.QRank > 0 {
			q = m.mul(load("self_attn.q_b_proj"), norm(m.mul(load("self_attn.q_a_proj"), h), "self_attn.q_a_layernorm", 1e-6))
		} else {
			q = m.mul(load("self_attn.q_proj"), h)
		}
		show(engine.PartQ, q)
		low := m.mul(load("self_attn.kv_a_proj_with_mqa"), h)
		latent, key := norm(low[:r], "self_attn.kv_a_layernorm", 1e-6), low[r:]
		turned := m.turn(n, key, m.first+pos)
		turnedQ := slices.Clone(q)
		for head := range m.a.Heads {
			copy(turnedQ[head*d+plain:(head+1)*d], m.turn(n, q[head*d+plain:(head+1)*d], m.first+pos+lp.QueryOffset))
		}
		show(engine.PartQRope, turnedQ)
		var k, kRope, v []float64
		wide := m.mul(up, latent)
		for head := range m.a.Heads {
			of := wide[head*(plain+lat.ValueDim):]
			k, kRope = append(append(k, of[:plain]...), key...), append(append(kRope, of[:plain]...), turned...)
			v = append(v, of[plain:plain+lat.ValueDim]...)
		}
		show(engine.PartK, k)
		show(engine.PartKRope, kRope)
		show(engine.PartV, v)
		if m.stale != nil && m.stale(n, pos) {
			latent, turned = make([]float64, r), make([]float64, lat.RopeDim)
		}
		keys, latents = append(keys, turned), append(latents, latent)

		var attn []float64
		for head := range m.a.Heads {
			// The rows of kv_b_proj of this head, [plain+ValueDim][r].
			rows := up[head*(plain+lat.ValueDim)*r:]
			absorbed := make([]float64, r)
			for i := range plain {
				for j := range r {
					absorbed[j] += turnedQ[head*d+i] * rows[i*r+j]
				}
			}
			scores, top := make([]float64, pos+1), math.Inf(-1)
			for t := range scores {
				for j := range r {
					scores[t] += absorbed[j] * latents[t][j]
				}
				for j := range lat.RopeDim {
					scores[t] += turnedQ[head*d+plain+j] * keys[t][j]
				}
				scores[t] *= factor / math.Sqrt(float64(d))
				top = math.Max(top, scores[t])
			}
			sum, mixed := 0.0, make([]float64, r)
			for t := range scores {
				scores[t] = math.Exp(scores[t] - top)
				sum += scores[t]
			}
			for t := range scores {
				for j := range r {
					mixed[j] += scores[t] / sum * latents[t][j]
				}
			}
			for i := range lat.ValueDim {
				var y float64
				for j := range r {
					y += rows[(plain+i)*r+j] * mixed[j]
				}
				attn = append(attn, y)
			}
		}
		show(engine.PartAttnOut, attn)
		mid := m.mul(load("self_attn.o_proj"), attn)
		for i := range mid {
			mid[i] += x[i]
		}
		show(engine.PartResidMid, mid)
		out = append(out, m.second(n, pos, mid, show))
	}
	return out
}

// second is the second half of layer n on the row of a position.
func (m latentNaive) second(n, pos int, mid []float64, show func(engine.Part, []float64)) []float64 {
	pre, lp := fmt.Sprintf("model.layers.%d.", n), m.a.PerLayer[n]
	h := m.plain().norm(mid, m.load(pre+"post_attention_layernorm.weight"), lp.NormEps)
	feed := func(prefix string) []float64 {
		gate, up := m.mul(m.load(pre+prefix+"gate_proj.weight"), h), m.mul(m.load(pre+prefix+"up_proj.weight"), h)
		for i := range gate {
			gate[i] *= up[i] / (1 + math.Exp(-gate[i]))
		}
		return m.mul(m.load(pre+prefix+"down_proj.weight"), gate)
	}
	added := make([]float64, len(mid))
	if x := lp.Experts; x.Count == 0 {
		added = feed("mlp.")
	} else {
		logits := m.mul(m.load(pre+"mlp.gate.weight"), h)
		var bias []float64
		if x.Gate.Scoring == engine.ScoringSigmoid {
			bias = m.load(pre + "mlp.gate.e_score_correction_bias")
		}
		ids, given := m.forced[n].At(pos)
		scores, chosen, weights := naiveGate(x, logits, bias, ids)
		if given != nil {
			weights = given
		}
		show(engine.PartRouterLogits, logits)
		show(engine.PartRouterScores, scores)
		show(engine.PartRouteIDs, asFloats(chosen))
		show(engine.PartRouteWeights, weights)
		for slot, id := range chosen {
			for i, y := range feed(fmt.Sprintf("mlp.experts.%d.", id)) {
				added[i] += weights[slot] * y
			}
		}
		if x.Shared > 0 {
			shared := feed("mlp.shared_experts.")
			show(engine.PartSharedOut, shared)
			for i, y := range shared {
				added[i] += y
			}
		}
	}
	show(engine.PartMLPOut, added)
	out := slices.Clone(mid)
	for i := range out {
		out[i] += added[i]
	}
	return out
}

func asFloats(ids []int) (out []float64) {
	for _, id := range ids {
		out = append(out, float64(id))
	}
	return out
}

// ordered are the indices of values, the largest first, of equal ones the lowest
// index, or the highest with last.
func ordered(values []float64, last bool) []int {
	ids := make([]int, len(values))
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		switch {
		case values[a] > values[b]:
			return -1
		case values[a] < values[b]:
			return 1
		case last:
			return b - a
		}
		return a - b
	})
	return ids
}

// naiveGate is a gate by its published formula, with the faults of the gate.
func naiveGate(x engine.Experts, logits, bias []float64, forced []int) (scores []float64, ids []int, weights []float64) {
	g, n := x.Gate, len(logits)
	top := slices.Max(logits)
	p := make([]float64, n)
	var sum float64
	for i, v := range logits {
		p[i] = math.Exp(v - top)
		sum += p[i]
	}
	for i, v := range logits {
		if p[i] /= sum; g.Scoring == engine.ScoringSigmoid {
			p[i] = 1 / (1 + math.Exp(-v))
		}
	}
	scores = slices.Clone(p)
	if g.Fault == engine.GateSoftmaxChosen {
		scores = slices.Clone(logits)
	}
	for i := range bias {
		scores[i] += bias[i]
	}
	last := g.Fault == engine.GateLastWins
	if g.Groups > 0 {
		size, of := n/g.Groups, make([]float64, g.Groups)
		for i := range of {
			group := slices.Clone(scores[i*size : (i+1)*size])
			slices.Sort(group)
			if of[i] = group[size-1]; g.Scoring == engine.ScoringSigmoid {
				of[i] += group[size-2]
			}
		}
		open := ordered(of, last)[:g.TopGroups]
		for i := range scores {
			if slices.Contains(open, i/size) {
				continue
			}
			if scores[i] = math.Inf(-1); g.Scoring == engine.ScoringSoftmax || g.Fault == engine.GateMaskZero {
				scores[i] = 0
			}
		}
	}
	if ids = forced; ids == nil {
		ids = ordered(scores, last)[:x.PerToken]
	}
	var total float64
	for _, id := range ids {
		weights = append(weights, p[id])
		total += p[id]
	}
	for i := range weights {
		switch {
		case g.Fault == engine.GateSoftmaxChosen:
			weights[i] *= g.Scale / total // a softmax over some of the logits is that
		case g.Normalise && x.PerToken > 1 && g.Scoring == engine.ScoringSigmoid:
			weights[i] *= g.Scale / total
		case g.Normalise && x.PerToken > 1:
			weights[i] /= total
		default:
			weights[i] *= g.Scale
		}
	}
	return scores, ids, weights
}

// stream are the rows of all positions: the embedding and every layer's.
func (m latentNaive) stream(ids []int) [][][]float64 {
	table, h := m.load("model.embed_tokens.weight"), m.a.Hidden
	var xs [][]float64
	for _, id := range ids {
		xs = append(xs, table[id*h:(id+1)*h])
	}
	all := [][][]float64{xs}
	for n := range m.a.Layers {
		xs = m.layer(n, xs)
		all = append(all, xs)
	}
	return all
}

// rows are those of the last position.
func (m latentNaive) rows(ids []int) (rows [][]float64) {
	for _, xs := range m.stream(ids) {
		rows = append(rows, xs[len(ids)-1])
	}
	return rows
}

// places are all places at all positions.
func (m latentNaive) places(ids []int) map[engine.Probe][][]float64 {
	all := map[engine.Probe][][]float64{}
	m.see = func(p engine.Probe, _ int, values []float64) { all[p] = append(all[p], values) }
	for i, xs := range m.stream(ids) {
		all[engine.RowProbe(i)] = xs
	}
	for _, x := range all[engine.RowProbe(m.a.Layers)] {
		all[engine.ProbeFinalNorm] = append(all[engine.ProbeFinalNorm], m.plain().norm(x, m.load("model.norm.weight"), m.a.FinalNormEps))
	}
	for _, x := range all[engine.ProbeFinalNorm] {
		all[engine.ProbeLogits] = append(all[engine.ProbeLogits], m.mul(m.load("lm_head.weight"), x))
	}
	return all
}

// decoded are the rows of a decode along given tokens.
func (m latentNaive) decoded(ids, forced []int) [][]float64 {
	return m.places(append(slices.Clone(ids), forced[:len(forced)-1]...))[engine.ProbeLogits][len(ids)-1:]
}

// latentArch is a DeepSeek-V2 small enough for the loops, with dimensions that
// all differ: a dense layer, then routed ones, the last with groups.
func latentArch() engine.Arch {
	a := engine.Arch{
		Family: "deepseek_v2", Layers: 4, Hidden: 22, Intermediate: 30, Heads: 3, KVHeads: 3, HeadDim: 14, Vocab: 50,
		MaxPositions: 256, FinalNormEps: 1e-5, Latent: engine.Latent{KVRank: 10, RopeDim: 8, ValueDim: 5},
	}
	for n := range a.Layers {
		l := engine.LayerParams{RopeTheta: 1e4, NormEps: 1e-6 * float64(n+1), ScoreFactor: 1.5896,
			Yarn: engine.Yarn{Factor: 40, BetaFast: 32, BetaSlow: 1, Original: 4096}}
		if n > 0 {
			l.Experts = engine.Experts{Count: 12, PerToken: 4, Shared: 2, Intermediate: 9, Gate: engine.Gate{Scoring: engine.ScoringSoftmax, Scale: 1}}
		}
		a.PerLayer = append(a.PerLayer, l)
	}
	a.PerLayer[2].Yarn.TableFactor = 1.25
	a.PerLayer[2].Experts.Shared = 0
	a.PerLayer[3].Experts.Gate = engine.Gate{Scoring: engine.ScoringSoftmax, Groups: 4, TopGroups: 2, Scale: 2.5}
	return a
}

// otherLatentArch has queries of a rank of their own, no YaRN, and gates that
// normalise: a softmax one, and a sigmoid one with negative scores.
func otherLatentArch() engine.Arch {
	a := latentArch()
	a.Latent.QRank = 9
	for n := range a.PerLayer {
		a.PerLayer[n].Yarn, a.PerLayer[n].ScoreFactor = engine.Yarn{}, 0
	}
	a.PerLayer[1].Experts.Gate.Normalise, a.PerLayer[1].Experts.Gate.Scale = true, 3
	sigmoid := engine.Gate{Scoring: engine.ScoringSigmoid, Groups: 4, TopGroups: 2, Normalise: true, Scale: 2.5}
	a.PerLayer[2].Experts.Gate, a.PerLayer[3].Experts.Gate = sigmoid, sigmoid
	return a
}

// latentWeights are random weights; the biases of sigmoid gates make all scores
// negative.
func latentWeights(a engine.Arch, seed uint64) *memWeights {
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
	matrix := func(name string, out, in int) { add(name+".weight", 0, 1/math.Sqrt(float64(in)), out, in) }
	norm := func(name string, n int) { add(name+".weight", 1, 0.2, n) }
	feed := func(p string, width int) {
		matrix(p+"gate_proj", width, a.Hidden)
		matrix(p+"up_proj", width, a.Hidden)
		matrix(p+"down_proj", a.Hidden, width)
	}
	add("model.embed_tokens.weight", 0, 1, a.Vocab, a.Hidden)
	norm("model.norm", a.Hidden)
	matrix("lm_head", a.Vocab, a.Hidden)
	m, q := a.Latent, a.Heads*a.HeadDim
	for n, l := range a.PerLayer {
		p := fmt.Sprintf("model.layers.%d.", n)
		norm(p+"input_layernorm", a.Hidden)
		norm(p+"post_attention_layernorm", a.Hidden)
		norm(p+"self_attn.kv_a_layernorm", m.KVRank)
		if m.QRank > 0 {
			matrix(p+"self_attn.q_a_proj", m.QRank, a.Hidden)
			norm(p+"self_attn.q_a_layernorm", m.QRank)
			matrix(p+"self_attn.q_b_proj", q, m.QRank)
		} else {
			matrix(p+"self_attn.q_proj", q, a.Hidden)
		}
		matrix(p+"self_attn.kv_a_proj_with_mqa", m.KVRank+m.RopeDim, a.Hidden)
		matrix(p+"self_attn.kv_b_proj", a.Heads*(a.HeadDim-m.RopeDim+m.ValueDim), m.KVRank)
		matrix(p+"self_attn.o_proj", a.Hidden, a.Heads*m.ValueDim)
		x := l.Experts
		if x.Count == 0 {
			feed(p+"mlp.", a.Intermediate)
			continue
		}
		matrix(p+"mlp.gate", x.Count, a.Hidden)
		if x.Gate.Scoring == engine.ScoringSigmoid {
			add(p+"mlp.gate.e_score_correction_bias", -3, 0.3, x.Count)
		}
		for i := range x.Count {
			feed(fmt.Sprintf("%smlp.experts.%d.", p, i), x.Intermediate)
		}
		if x.Shared > 0 {
			feed(p+"mlp.shared_experts.", x.Shared*x.Intermediate)
		}
	}
	return w
}
