package conformance

import (
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// Gain is what the error of a half of a layer has of the half's own update: a
// fault that scales the update shows here long before it leaves the noise. A half
// that contributes nothing has gain -1.
type Gain struct {
	// Got and Yard are the candidate's and the yardstick's: the median over the
	// positions of the update's share in the error.
	Got, Yard float64
	// Channel is the one whose error follows its update most surely, with the
	// share (Slope: -1 is a dead channel, -2 one of the wrong sign) and the t-value
	// of the regression over positions. YardT is the largest that the yardstick
	// has in any channel of this half.
	Channel  int
	Slope, T float64
	YardT    float64
}

// minGainPositions is the smallest number of different positions that a
// regression is run over: with fewer, an outlier is the regression.
const minGainPositions = 8

// fit regresses the errors of n positions on the layer's own updates. Position 0
// is left out. Where resid_mid isn't offered the two updates share the error of
// the whole layer.
func (l *LayerProbes) fit(offered map[engine.Part][][]float64, in, mid [][]float64, want, yard, halves, halvesYard engine.LayerRun, n int) {
	if differentRows(want[engine.PartResidMid][1:]) < minGainPositions {
		return
	}
	post := offered[engine.PartResidPost]
	if mid != nil {
		attn := updates(want[engine.PartResidMid], in, n)
		l.Gains[engine.PartResidMid] = gainOf(
			residuals(mid, want[engine.PartResidMid], n), residuals(yard[engine.PartResidMid], want[engine.PartResidMid], n), attn)
		if post != nil {
			mlp := updates(halves[engine.PartResidPost], mid, n)
			l.Gains[engine.PartResidPost] = gainOf(
				residuals(post, halves[engine.PartResidPost], n), residuals(halvesYard[engine.PartResidPost], halves[engine.PartResidPost], n), mlp)
		}
		return
	}
	if post == nil {
		return
	}
	attn, mlp := updates(want[engine.PartResidMid], in, n), updates(want[engine.PartResidPost], want[engine.PartResidMid], n)
	got, own := residuals(post, want[engine.PartResidPost], n), residuals(yard[engine.PartResidPost], want[engine.PartResidPost], n)
	a, m := jointGains(got, attn, mlp)
	ya, ym := jointGains(own, attn, mlp)
	l.Gains[engine.PartResidMid] = Gain{Got: a, Yard: ya, Channel: -1}
	g := gainOf(got, own, mlp)
	g.Got, g.Yard = m, ym
	l.Gains[engine.PartResidPost] = g
}

// differentRows counts the rows whose first values differ: a token that is
// repeated says the same thing at each of its positions.
func differentRows(rows [][]float64) int {
	seen := map[float64]bool{}
	for _, row := range rows {
		seen[row[0]] = true
	}
	return len(seen)
}

func updates(out, in [][]float64, n int) [][]float64 { return residuals(out, in, n) }

// residuals are a-b at positions 1 to n-1.
func residuals(a, b [][]float64, n int) [][]float64 {
	out := make([][]float64, n-1)
	for i := range out {
		out[i] = make([]float64, len(b[i+1]))
		for j := range out[i] {
			out[i][j] = a[i+1][j] - b[i+1][j]
		}
	}
	return out
}

func gainOf(got, yard, update [][]float64) Gain {
	g := Gain{Got: medianShare(got, update), Yard: medianShare(yard, update)}
	_, _, g.YardT = surest(yard, update)
	g.YardT = math.Abs(g.YardT)
	g.Channel, g.Slope, g.T = surest(got, update)
	return g
}

// medianShare is the median over the positions of (d·u)/(u·u): one position with
// a huge update counts as one.
func medianShare(d, u [][]float64) float64 {
	xs := make([]float64, 0, len(d))
	for i := range d {
		if du, uu := dotOf(d[i], u[i]), dotOf(u[i], u[i]); uu > 0 {
			xs = append(xs, du/uu)
		}
	}
	if len(xs) == 0 {
		return 0
	}
	return metric.Median(xs)
}

// jointGains are the medians over the positions of the least-squares a and m in
// d = a*attn + m*mlp.
func jointGains(d, attn, mlp [][]float64) (a, m float64) {
	var as, ms []float64
	for i := range d {
		aa, mm, am := dotOf(attn[i], attn[i]), dotOf(mlp[i], mlp[i]), dotOf(attn[i], mlp[i])
		det := aa*mm - am*am
		if !(det > 1e-9*aa*mm) {
			continue
		}
		da, dm := dotOf(d[i], attn[i]), dotOf(d[i], mlp[i])
		as, ms = append(as, (da*mm-dm*am)/det), append(ms, (dm*aa-da*am)/det)
	}
	if len(as) == 0 {
		return 0, 0
	}
	return metric.Median(as), metric.Median(ms)
}

// surest is the channel with the largest |t| in the regression, through the
// origin, of its error on its update over the positions; -1 when there is none.
func surest(d, u [][]float64) (channel int, slope, t float64) {
	channel = -1
	for j := range d[0] {
		var du, uu, dd float64
		for i := range d {
			du, uu, dd = du+d[i][j]*u[i][j], uu+u[i][j]*u[i][j], dd+d[i][j]*d[i][j]
		}
		if uu == 0 || dd == 0 {
			continue
		}
		s := du / uu
		rest := max(dd-s*du, 0)
		x := worstRatio // all of the error follows the update
		if rest > 0 {
			x = min(worstRatio, math.Abs(s)/math.Sqrt(rest/uu/float64(len(d)-1)))
		}
		if x > math.Abs(t) {
			channel, slope, t = j, s, math.Copysign(x, s)
		}
	}
	return channel, slope, t
}

func dotOf(a, b []float64) float64 {
	var s float64
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}
