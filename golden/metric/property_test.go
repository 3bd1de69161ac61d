package metric_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// Identities that hold for every pair of rows, checked on random ones.
func TestIdentities(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9 }
	for trial := range 300 {
		n := 3 + rng.IntN(60)
		c, r, scaled, shifted, mono := make(row, n), make(row, n), make(row, n), make(row, n), make(row, n)
		k := math.Exp(4 * rng.NormFloat64())
		for i := range c {
			c[i], r[i] = math.Round(8*rng.NormFloat64())/4, math.Round(8*rng.NormFloat64())/4 // with ties
			scaled[i], shifted[i], mono[i] = k*c[i], c[i]+3, math.Exp(c[i])
		}
		if metric.Classify(c).Degenerate() || metric.Classify(r).Degenerate() {
			continue
		}
		cos, ratio, rel := metric.Cosine(c, r), metric.NormRatio(c, r), metric.RelativeL2(c, r)
		// |c-r|^2 = |c|^2 + |r|^2 - 2 c.r, divided by |r|^2.
		if want := 1 + ratio*ratio - 2*ratio*cos; !near(rel*rel, want) {
			t.Errorf("trial %d: relative l2 squared is %v, law of cosines gives %v", trial, rel*rel, want)
		}
		// Two z-scored rows differ by 2(1 - pearson) in mean square, so the
		// largest difference is at least that.
		pe, z := metric.PearsonZ(c, r), metric.MaxZDiff(c, r)
		if lower := math.Sqrt(math.Max(0, 2*(1-pe))); !(z >= lower-1e-9) {
			t.Errorf("trial %d: max z-diff %v is below the root mean square %v", trial, z, lower)
		}
		for name, ok := range map[string]bool{
			"relative l2 of a row and itself is 0":        metric.RelativeL2(r, r) == 0,
			"nrmse is the relative l2":                    near(metric.NRMSE(c, r), rel),
			"norm ratio scales":                           near(metric.NormRatio(scaled, r)/k, ratio),
			"cosine doesn't see scale":                    near(metric.Cosine(scaled, r), cos),
			"pearson doesn't see scale":                   near(metric.PearsonZ(scaled, r), pe),
			"pearson doesn't see an offset":               near(metric.PearsonZ(shifted, r), pe),
			"max z-diff doesn't see scale":                near(metric.MaxZDiff(scaled, r), z),
			"spearman doesn't see a monotone map":         near(metric.Spearman(mono, r), metric.Spearman(c, r)),
			"pearson is symmetric":                        near(metric.PearsonZ(r, c), pe),
			"spearman is symmetric":                       near(metric.Spearman(r, c), metric.Spearman(c, r)),
			"norm ratio inverts":                          near(metric.NormRatio(r, c)*ratio, 1),
			"correlations stay within 1":                  math.Abs(pe) <= 1 && math.Abs(cos) <= 1 && math.Abs(metric.Spearman(c, r)) <= 1,
			"quantiles are ordered":                       metric.Quantile(0, c) <= metric.Median(c) && metric.Median(c) <= metric.P99(c) && metric.P99(c) <= metric.Quantile(1, c),
			"the median of a row and its opposite cancel": near(metric.Median(c)+metric.Median(negated(c)), 0),
		} {
			if !ok {
				t.Errorf("trial %d: %s: doesn't hold for %v against %v", trial, name, c, r)
			}
		}
	}
}

func negated(r row) row {
	out := make(row, len(r))
	for i, x := range r {
		out[i] = -x
	}
	return out
}
