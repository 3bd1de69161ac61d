// Package tinyllm is a small inference engine for Qwen2 checkpoints, in plain Go
// and float32: the engine that this module is about. It knows nothing of
// Plumbline but the formats of its dumps (see dump.go).
package tinyllm

import "math"

// Model is a loaded checkpoint. It is safe for concurrent use.
type Model struct {
	config
	embedding matrix
	layers    []layer
	finalNorm []float32
	// Fault breaks the model on purpose, so that a test can be seen failing.
	Fault Fault
}

// Session is one sequence with its KV cache. It is for one goroutine.
type Session struct {
	m    *Model
	pos  int
	k, v [][]float32 // one per layer: a row of all key/value heads per position
	// Rows are the embedding of the last token and the residual stream after each
	// layer, before the final norm.
	Rows [][]float32
}

// NewSession starts a sequence.
func (m *Model) NewSession() *Session {
	return &Session{m: m, k: make([][]float32, m.Layers), v: make([][]float32, m.Layers)}
}

// Vocabulary is the number of token ids.
func (m *Model) Vocabulary() int { return m.Vocab }

// Step runs one token through all layers.
func (s *Session) Step(id int) {
	m := s.m
	x := make([]float32, m.Hidden)
	copy(x, m.embedding.w[id*m.Hidden:])
	s.Rows = append(s.Rows[:0], clone(x))
	for i := range m.layers {
		if !m.Fault.skips(i) {
			s.attention(i, x)
			s.mlp(i, x)
		}
		s.Rows = append(s.Rows, clone(x))
	}
	s.pos++
}

// Logits are those behind the last token.
func (s *Session) Logits() []float32 {
	m := s.m
	out := make([]float32, m.Vocab)
	m.embedding.times(out, norm(s.Rows[m.Layers], m.finalNorm, m.Epsilon))
	return out
}

func (s *Session) attention(i int, x []float32) {
	m, l := s.m, &s.m.layers[i]
	head := m.Hidden / m.Heads
	n := norm(x, l.attnNorm, m.Epsilon)
	q := make([]float32, l.q.out)
	k := make([]float32, l.k.out)
	v := make([]float32, l.v.out)
	l.q.times(q, n)
	l.k.times(k, n)
	l.v.times(v, n)
	theta := m.Fault.theta(i, m.Theta)
	rotate(q, head, s.pos, theta)
	rotate(k, head, s.pos, theta)
	s.k[i] = append(s.k[i], k...)
	s.v[i] = append(s.v[i], v...)
	width := len(k)
	mixed := make([]float32, len(q))
	scores := make([]float64, s.pos+1)
	for h := range m.Heads {
		at := m.Fault.kvHead(i, h/(m.Heads/m.KVHeads), m.KVHeads) * head // in a row of the cache
		most := math.Inf(-1)
		for t := range scores {
			row := s.k[i][t*width+at:]
			sum := 0.0
			for j, a := range q[h*head : (h+1)*head] {
				sum += float64(a) * float64(row[j])
			}
			scores[t] = sum / math.Sqrt(float64(head))
			most = max(most, scores[t])
		}
		total := 0.0
		for t := range scores {
			scores[t] = math.Exp(scores[t] - most)
			total += scores[t]
		}
		for j := range head {
			sum := 0.0
			for t, p := range scores {
				sum += p * float64(s.v[i][t*width+at+j])
			}
			mixed[h*head+j] = float32(sum / total)
		}
	}
	out := make([]float32, m.Hidden)
	l.o.times(out, mixed)
	add(x, out)
}

func (s *Session) mlp(i int, x []float32) {
	m, l := s.m, &s.m.layers[i]
	n := norm(x, l.mlpNorm, m.Epsilon)
	gate := make([]float32, m.MLP)
	up := make([]float32, m.MLP)
	l.gate.times(gate, n)
	l.up.times(up, n)
	for j, g := range gate {
		gate[j] = float32(float64(g)/(1+math.Exp(-float64(g)))) * up[j] // SwiGLU
	}
	out := make([]float32, m.Hidden)
	l.down.times(out, gate)
	add(x, out)
}

// times is dst = m x + bias.
func (m *matrix) times(dst, x []float32) {
	for i := range dst {
		row := m.w[i*m.in : (i+1)*m.in]
		sum := 0.0
		for j, w := range row {
			sum += float64(w) * float64(x[j])
		}
		if m.bias != nil {
			sum += float64(m.bias[i])
		}
		dst[i] = float32(sum)
	}
}

// norm is the root mean square norm.
func norm(x, weight []float32, epsilon float64) []float32 {
	sum := 0.0
	for _, a := range x {
		sum += float64(a) * float64(a)
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+epsilon)
	out := make([]float32, len(x))
	for i, a := range x {
		out[i] = weight[i] * float32(float64(a)*scale)
	}
	return out
}

// rotate turns each head's pairs (j, j + head/2) by their angle at pos.
func rotate(x []float32, head, pos int, theta float64) {
	half := head / 2
	for j := range half {
		sin, cos := math.Sincos(float64(pos) * math.Pow(theta, -float64(2*j)/float64(head)))
		for h := 0; h < len(x); h += head {
			a, b := float64(x[h+j]), float64(x[h+j+half])
			x[h+j] = float32(a*cos - b*sin)
			x[h+j+half] = float32(b*cos + a*sin)
		}
	}
}

func add(x, y []float32) {
	for i := range x {
		x[i] += y[i]
	}
}

func clone(x []float32) []float32 { return append([]float32(nil), x...) }
