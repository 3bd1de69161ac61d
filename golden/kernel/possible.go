package kernel

import (
	"fmt"
	"math"
)

// figureMargin is more than float32 means differ by, relatively, from exact ones:
// numpy's pairwise addition of n values errs by some log2(n)+20 roundings of 2^-24.
const figureMargin = 1e-5

// smallestFloat32 is what a figure that underflows is rounded by, at most.
const smallestFloat32 = math.SmallestNonzeroFloat32

// impossible says which figure of a recorded row no two tensors of count values
// have. It leaves out what isn't finite, which is found elsewhere.
func (r *Row) impossible(count float64) (what, got, want string) {
	f := r.Figures
	if r.NonFinite() {
		return "", "", ""
	}
	above := func(x, limit float64) bool { return x > limit*(1+figureMargin)+2*smallestFloat32 }
	of := func(x float64, text string, limit float64) (string, string) {
		return PythonFloat(x), fmt.Sprintf("at most %s, %s", text, PythonFloat(limit))
	}
	square := f.MaxAbs * f.MaxAbs
	switch {
	case above(f.MeanAbs, f.MaxAbs):
		got, want = of(f.MeanAbs, "max_abs_diff", f.MaxAbs)
		return "mean_abs_diff", got, want
	case math.IsInf(f.MSE, 1) && square*count*(1+figureMargin) < math.MaxFloat32, // float32 sums of squares may overflow
		!math.IsInf(f.MSE, 1) && above(f.MSE, square):
		got, want = of(f.MSE, "the square of max_abs_diff", square)
		return "mse", got, want
	case f.NRMSE > 0 && f.MaxAbs == 0:
		return "nrmse", PythonFloat(f.NRMSE), "0 without a difference"
	case f.NRMSE == 0 && f.MaxAbs > 0 && f.RefMeanAbs > 0:
		return "nrmse", PythonFloat(f.NRMSE), "above 0 with a max_abs_diff of " + PythonFloat(f.MaxAbs)
	case math.Abs(f.RefMeanAbs-f.CandMeanAbs) > f.MeanAbs+figureMargin*(f.MeanAbs+f.RefMeanAbs+f.CandMeanAbs)+2*smallestFloat32:
		return "tq_mean_abs", PythonFloat(f.CandMeanAbs), fmt.Sprintf("within mean_abs_diff, %s, of dense_mean_abs, %s", PythonFloat(f.MeanAbs), PythonFloat(f.RefMeanAbs))
	}
	return "", "", ""
}
