package conformance

import (
	"context"
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Profile is a candidate's error along the depth of the model, for one case.
// c are the candidate's rows, r the reference's, f_n its layers with its own KV
// cache.
type Profile struct {
	// Accumulated has one entry per row: |c_i - r_i| / |r_i|.
	Accumulated []Measure
	// Local has one entry per layer: |c_(n+1) - f_n(c_n)| / |f_n(c_n) - c_n|.
	Local []Measure
	// Over[k-2] has one entry per layer: the same over k layers from n on, which
	// passes over the rows between: |c_(n+k) - f_(n+k-1)(…f_n(c_n))| over the
	// update of the k layers. It is measured only behind a suspicious layer, and
	// everywhere in an unknown scheme.
	Over [maxStride - 1][]Measure
	// NormRatio has one entry per row: |c_i| / |r_i|.
	NormRatio []float64
	// Update has one entry per layer: |r_(n+1) - r_n| / |r_(n+1)|.
	Update []float64
	// Rescaled[i] is the factor by which row i is a rescaled right row, 0 when
	// it is not one: direction right, scale wrong.
	Rescaled []float64
	// CopyOf[i] is an earlier row whose values row i repeats, -1 when none.
	CopyOf []int
	// PostNormLast is true when the last row is much nearer to the final norm
	// of the reference's last row than to that row.
	PostNormLast bool
	// SchemeUnknown says why the yardstick doesn't emulate the candidate's
	// declared arithmetic, in which case only the shape of Local means something;
	// empty when it does.
	SchemeUnknown string
	// Factors are the bounds for this candidate's arithmetic.
	Factors Factors
}

// maxStride is the largest number of layers that are run in one go to see
// whether the rows between them are wrong in the dump only.
const maxStride = 4

// suspicious is the local ratio from which more than one layer is run: well
// below every bound, so that nothing that is judged lacks the figures.
const suspicious = 1.2

// Measure is one error beside the yardstick's error of the same kind.
type Measure struct {
	// Got and Yard are relative L2 errors.
	Got, Yard float64
	// Missing is true where there was nothing to measure: a row that is not
	// finite or carries no information.
	Missing bool
}

// unmeasured stands for a ratio that there is none of. It is below every bound:
// what can't be measured is reported by the check of form.
const unmeasured = -1

// Ratio is Got/Yard. A yardstick of zero allows zero. A ratio that is not a
// finite number (an overflow, a NaN) is as bad as a ratio can be, and still a
// number, so that quantiles over ratios are.
func (m Measure) Ratio() float64 {
	if m.Missing {
		return unmeasured
	}
	if m.Yard == 0 && m.Got == 0 {
		return 0
	}
	if x := m.Got / m.Yard; x < worstRatio {
		return x
	}
	return worstRatio
}

const worstRatio = 1e30

func ratios(ms []Measure) []float64 {
	out := make([]float64, len(ms))
	for i, m := range ms {
		out[i] = m.Ratio()
	}
	return out
}

// truth is the run that a candidate's rows are measured from, with the
// yardstick's rows for the same prompt.
type truth struct {
	trace engine.Trace
	yard  [][]float64
	// pushed gives the yardstick's rows through the layers, deep. It may be
	// shared: nobody writes it.
	pushed func() (path, error)
	// everywhere asks for more than one layer behind every row: in an unknown
	// scheme the ratios have no level that could be called suspicious.
	everywhere bool
	// floor is the smallest relative error that the yardstick can be trusted
	// to show: one rounding of float32, or 0 for a quantised yardstick.
	floor float64
}

// path is a set of rows pushed through the reference's layers.
type path struct {
	rows [][]float64
	// ahead[k-1][n] is f_(n+k-1)(…f_n(rows[n])), nil where it was not asked for.
	ahead [maxStride][][]float64
}

// push runs one layer on each usable row, and with deep the layers behind it.
func push(ctx context.Context, tr engine.Trace, rows [][]float64, deep bool) (path, error) {
	p := path{rows: rows}
	layers := len(rows) - 1
	for k := range p.ahead {
		p.ahead[k] = make([][]float64, layers)
	}
	for n := range layers {
		if rows[n] == nil {
			continue
		}
		y, err := tr.Layer(ctx, n, rows[n])
		if err != nil {
			return p, fmt.Errorf("conformance: layer %d on a given row: %w", n, err)
		}
		p.ahead[0][n] = y
		if deep {
			if err := p.pushOn(ctx, tr, n); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// pushOn runs the layers behind n as well.
func (p *path) pushOn(ctx context.Context, tr engine.Trace, n int) error {
	for k := 1; k < maxStride && n+k < len(p.rows)-1; k++ {
		if p.ahead[k][n] != nil || p.ahead[k-1][n] == nil {
			continue
		}
		y, err := tr.Layer(ctx, n+k, p.ahead[k-1][n])
		if err != nil {
			return fmt.Errorf("conformance: layers %d to %d on a given row: %w", n, n+k, err)
		}
		p.ahead[k][n] = y
	}
	return nil
}

// share is the error of row n+k as a share of what the k layers before it
// added, so that an error is charged to the layers that introduced it.
func (p *path) share(n, k int) (float64, bool) {
	want := p.ahead[k-1][n]
	if want == nil || p.rows[n+k] == nil {
		return 0, false
	}
	num := distance(p.rows[n+k], want)
	if num == 0 {
		return 0, true
	}
	return num / distance(want, p.rows[n]), true
}

// profileOf measures the candidate's rows and the yardstick's rows against the
// same truth. A nil row of the candidate is one that can't be measured.
func profileOf(ctx context.Context, t truth, cand [][]float64) (*Profile, error) {
	ref := t.trace.Rows()
	c, err := push(ctx, t.trace, cand, false)
	if err != nil {
		return nil, err
	}
	y, err := t.pushed()
	if err != nil {
		return nil, err
	}
	p := &Profile{}
	for i := range ref {
		if cand[i] == nil {
			p.Accumulated = append(p.Accumulated, Measure{Missing: true})
			p.NormRatio = append(p.NormRatio, math.NaN())
			continue
		}
		p.Accumulated = append(p.Accumulated, Measure{
			Got:  metric.RelativeL2(cand[i], ref[i]),
			Yard: max(metric.RelativeL2(t.yard[i], ref[i]), t.floor),
		})
		p.NormRatio = append(p.NormRatio, metric.NormRatio(cand[i], ref[i]))
	}
	layers := len(ref) - 1
	measure := func(n, k int) Measure {
		got, ok := c.share(n, k)
		yard, yok := y.share(n, k)
		if !ok || !yok {
			return Measure{Missing: true}
		}
		// One rounding of the row, as a share of the update that it hides in.
		floor := t.floor * metric.L2(y.ahead[k-1][n]) / distance(y.ahead[k-1][n], y.rows[n])
		return Measure{Got: got, Yard: max(yard, floor)}
	}
	for n := range layers {
		p.Local = append(p.Local, measure(n, 1))
		p.Update = append(p.Update, distance(ref[n+1], ref[n])/metric.L2(ref[n+1]))
	}
	for n := range layers {
		if !t.everywhere && !p.Local[n].Missing && p.Local[n].Ratio() < suspicious {
			for k := range p.Over {
				p.Over[k] = append(p.Over[k], Measure{Missing: true})
			}
			continue
		}
		if err := c.pushOn(ctx, t.trace, n); err != nil {
			return nil, err
		}
		for k := range p.Over {
			m := Measure{Missing: true}
			if n+k+2 <= layers {
				m = measure(n, k+2)
			}
			p.Over[k] = append(p.Over[k], m)
		}
	}
	p.Rescaled = rescaled(c, p)
	p.CopyOf = copies(cand, ref)
	return p, nil
}

// rescaleGain is how much better a row must fit its layer once a factor is taken
// out. It only names what a bound has found.
const rescaleGain = 5

// rescaled finds the rows that are a right row times a factor: they fit their
// layer far better once the factor is taken out.
func rescaled(c path, p *Profile) []float64 {
	out := make([]float64, len(c.rows))
	for i := 1; i < len(c.rows); i++ {
		got, want := c.rows[i], c.ahead[0][i-1]
		if got == nil || want == nil || p.Local[i-1].Missing {
			continue
		}
		var dot, sq float64
		for k := range got {
			dot += got[k] * want[k]
			sq += want[k] * want[k]
		}
		a := dot / sq
		if a == 0 || math.IsNaN(a) || math.IsInf(a, 0) {
			continue
		}
		back := make([]float64, len(got))
		for k := range got {
			back[k] = got[k] / a
		}
		m := Measure{Got: distance(back, want) / distance(want, c.rows[i-1]), Yard: p.Local[i-1].Yard}
		if p.Local[i-1].Ratio() > rescaleGain*m.Ratio() {
			out[i] = a
		}
	}
	return out
}

// copies finds the rows that repeat an earlier row where the reference's don't.
func copies(cand, ref [][]float64) []int {
	out := make([]int, len(cand))
	for j := range cand {
		out[j] = -1
		for i := range j {
			if cand[i] == nil || cand[j] == nil {
				continue
			}
			if _, same := sameBits(cand[i], cand[j]); !same {
				continue
			}
			if _, same := sameBits(ref[i], ref[j]); !same {
				out[j] = i
				break
			}
		}
	}
	return out
}

func distance(a, b []float64) float64 {
	var s float64
	for i := range a {
		d := a[i] - b[i]
		s += d * d
	}
	return math.Sqrt(s)
}
