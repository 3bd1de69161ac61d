package quant

import "math"

// rotate applies RoPE to x [n, heads, dim] in place: the pair (j, j+dim/2) of
// the row at position p turns by p*theta^(-2j/dim). Source: Su et al.,
// "RoFormer", arXiv 2104.09864, in the half-split layout of Hugging Face.
func rotate(x []float64, heads, dim int, theta float64, position func(t int) int) {
	half, width := dim/2, heads*dim
	freq := make([]float64, half)
	for j := range freq {
		freq[j] = math.Pow(theta, -2*float64(j)/float64(dim))
	}
	for t := range len(x) / width {
		row, p := x[t*width:(t+1)*width], float64(position(t))
		for j := range half {
			sin, cos := math.Sincos(p * freq[j])
			for h := range heads {
				a, b := row[h*dim+j], row[h*dim+j+half]
				row[h*dim+j], row[h*dim+j+half] = a*cos-b*sin, b*cos+a*sin
			}
		}
	}
}

// attend writes causal softmax attention of q [n, heads, dim] on k and v
// [positions, kvHeads, dim] to dst [n, heads, dim]: the queries are those of the
// last n positions. scores is memory for a value per position and goroutine.
// halfWeights rounds the weights of the sum over v to float16.
func attend(dst, q, k, v []float64, scores *[]float64, heads, kvHeads, dim int, halfWeights bool) {
	kvWidth := kvHeads * dim
	n, all := len(q)/(heads*dim), len(k)/kvWidth
	before := all - n
	scale := 1 / math.Sqrt(float64(dim))
	count := workers(n, len(q)*(before+all))
	*scores = grow(*scores, count*all)
	spread(count, n, func(worker, t int) {
		scores := (*scores)[worker*all:]
		for h := range heads {
			at := (t*heads + h) * dim
			query, out := q[at:at+dim], dst[at:at+dim]
			kv := h * kvHeads / heads * dim
			s := scores[:before+t+1]
			for i := range s {
				s[i] = dot(query, k[i*kvWidth+kv:][:dim]) * scale
			}
			softmax(s)
			if halfWeights {
				halves(s) // at most 1, or NaN, which is told of the sum
			}
			clear(out)
			for i, w := range s {
				row := v[i*kvWidth+kv:][:dim]
				for j := range out {
					out[j] += w * row[j]
				}
			}
		}
	})
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// softmax is in place, with the largest score subtracted first.
func softmax(s []float64) {
	largest := math.Inf(-1)
	for _, v := range s {
		largest = math.Max(largest, v)
	}
	sum := 0.0
	for i, v := range s {
		s[i] = math.Exp(v - largest)
		sum += s[i]
	}
	for i := range s {
		s[i] /= sum
	}
}

// rmsNorm writes x/sqrt(mean(x²)+eps)*gain to dst, row by row. Source: Zhang and
// Sennrich, "Root Mean Square Layer Normalization", arXiv 1910.07467.
func rmsNorm(dst, x, gain []float64, eps float64) {
	n := len(gain)
	for at := 0; at < len(x); at += n {
		row, out := x[at:at+n], dst[at:at+n]
		inv := 1 / math.Sqrt(dot(row, row)/float64(n)+eps)
		for i, v := range row {
			out[i] = v * inv * gain[i]
		}
	}
}

// silu is x/(1+exp(-x)).
func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }
