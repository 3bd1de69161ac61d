package metric_test

import (
	"math"
	"testing"

	"github.com/plumbline-go/plumbline/golden/metric"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// same reports whether got is want within a relative 1e-14, NaN equal to NaN.
func same(got, want float64) bool {
	if math.IsNaN(want) || math.IsNaN(got) {
		return math.IsNaN(want) && math.IsNaN(got)
	}
	if got == want {
		return true
	}
	return math.Abs(got-want) <= 1e-14*math.Max(1, math.Abs(want))
}

type row = []float64

// Expected values: numpy 2 and scipy.stats (spearmanr, pearsonr, rankdata) on
// the same rows, or the arithmetic in the comment.
func TestRowMetrics(t *testing.T) {
	// Without ties.
	c1, r1 := row{1, 2, 3, 4, 5, 6, 7, 10}, row{2, 1, 4, 3, 7, 8, 6, 9}
	// Ties in both rows: ranks 2 3.5 3.5 6 6 6 1 and 2.5 2.5 6.5 6.5 4 5 1.
	c2, r2 := row{1, 2, 2, 3, 3, 3, -4}, row{0, 0, 5, 5, 1, 2, -1}
	tests := []struct {
		name      string
		fn        func(c, r []float64) float64
		cand, ref row
		want      float64
	}{
		{"relative l2", metric.RelativeL2, c1, r1, 0.23204774044612855},
		{"norm ratio", metric.NormRatio, c1, r1, 0.9607689228305228},
		{"cosine", metric.Cosine, c1, r1, 0.9727785343659044},
		{"nrmse", metric.NRMSE, c1, r1, 0.23204774044612855},
		// 6*sum d^2/(n(n^2-1)) = 6*10/504; 1-0.119... = 0.88095...
		{"spearman", metric.Spearman, c1, r1, 0.880952380952381},
		{"pearson", metric.PearsonZ, c1, r1, 0.8870370532810664},
		{"max z-diff", metric.MaxZDiff, c1, r1, 0.6386268936374003},
		{"spearman ties", metric.Spearman, c2, r2, 0.705049738919203},
		{"pearson ties", metric.PearsonZ, c2, r2, 0.5705911770261592},
		{"max z-diff ties", metric.MaxZDiff, c2, r2, 1.2143184785435255},

		// Scale: seen by the two that gate, not by the owners' three.
		{"doubled: relative l2", metric.RelativeL2, row{2, 4, -6}, row{1, 2, -3}, 1},
		{"doubled: norm ratio", metric.NormRatio, row{2, 4, -6}, row{1, 2, -3}, 2},
		{"doubled: cosine", metric.Cosine, row{2, 4, -6}, row{1, 2, -3}, 1},
		{"doubled: pearson", metric.PearsonZ, row{2, 4, -6}, row{1, 2, -3}, 1},
		{"doubled: max z-diff", metric.MaxZDiff, row{2, 4, -6}, row{1, 2, -3}, 0},

		{"opposite: relative l2", metric.RelativeL2, row{-1, -2, 3}, row{1, 2, -3}, 2},
		{"opposite: norm ratio", metric.NormRatio, row{-1, -2, 3}, row{1, 2, -3}, 1},
		{"opposite: cosine", metric.Cosine, row{-1, -2, 3}, row{1, 2, -3}, -1},
		{"opposite: spearman", metric.Spearman, row{-1, -2, 3}, row{1, 2, -3}, -1},
		{"opposite: pearson", metric.PearsonZ, row{-1, -2, 3}, row{1, 2, -3}, -1},

		{"zero candidate: relative l2", metric.RelativeL2, row{0, 0}, row{3, 4}, 1},
		{"zero candidate: norm ratio", metric.NormRatio, row{0, 0}, row{3, 4}, 0},
		{"zero candidate: cosine", metric.Cosine, row{0, 0}, row{3, 4}, nan},
		{"zero reference: relative l2", metric.RelativeL2, row{3, 4}, row{0, 0}, inf},
		{"zero reference: norm ratio", metric.NormRatio, row{3, 4}, row{0, 0}, inf},
		{"zero reference: nrmse is 0 by the script", metric.NRMSE, row{3, 4}, row{0, 0}, 0},
		{"zero reference, nan candidate: nrmse", metric.NRMSE, row{nan, 4}, row{0, 0}, nan},
		{"both zero: relative l2", metric.RelativeL2, row{0, 0}, row{0, 0}, nan},
		{"both zero: norm ratio", metric.NormRatio, row{0, 0}, row{0, 0}, nan},

		// 0.1 three times has a float64 mean that isn't 0.1.
		{"constant candidate: spearman", metric.Spearman, row{0.1, 0.1, 0.1, 0.1}, row{1, 2, 3, 4}, nan},
		{"constant candidate: pearson", metric.PearsonZ, row{0.1, 0.1, 0.1, 0.1}, row{1, 2, 3, 4}, nan},
		{"constant reference: pearson", metric.PearsonZ, row{1, 2, 3, 4}, row{0.1, 0.1, 0.1, 0.1}, nan},
		// max |z| of 1 2 3 4 = 1.5/sqrt(1.25).
		{"constant candidate: max z-diff", metric.MaxZDiff, row{0.1, 0.1, 0.1, 0.1}, row{1, 2, 3, 4}, 1.3416407864998738},
		{"both constant: max z-diff", metric.MaxZDiff, row{0.1, 0.1, 0.1}, row{7, 7, 7}, 0},
		{"both constant: spearman", metric.Spearman, row{0.1, 0.1, 0.1}, row{7, 7, 7}, nan},

		{"infinity ranks as an extreme", metric.Spearman, row{1, inf, 2}, row{1, 3, 2}, 1},
		{"infinite candidate: relative l2", metric.RelativeL2, row{inf, 1}, row{1, 1}, inf},
		{"infinite on both sides: relative l2", metric.RelativeL2, row{inf, 1}, row{inf, 1}, nan},
		{"infinite candidate: pearson", metric.PearsonZ, row{inf, 1, 2}, row{1, 2, 3}, nan},
		{"infinite candidate: max z-diff", metric.MaxZDiff, row{inf, 1, 2}, row{1, 2, 3}, nan},

		{"no overflow", metric.RelativeL2, row{3e200, 0}, row{0, 4e200}, 1.25},
		{"no underflow", metric.Cosine, row{1e-200, 1e-200}, row{1e-200, 1e-200}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.fn(tt.cand, tt.ref); !same(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

var rowMetrics = map[string]func(c, r []float64) float64{
	"RelativeL2": metric.RelativeL2, "NormRatio": metric.NormRatio, "Cosine": metric.Cosine,
	"NRMSE": metric.NRMSE, "Spearman": metric.Spearman, "PearsonZ": metric.PearsonZ, "MaxZDiff": metric.MaxZDiff,
}

func TestNaNIsNeverSkipped(t *testing.T) {
	clean := row{3, 1, 2, 5}
	for name, fn := range rowMetrics {
		for i := range clean {
			dirty := append(row(nil), clean...)
			dirty[i] = nan
			if got := fn(dirty, clean); !math.IsNaN(got) {
				t.Errorf("%s: NaN at %d of the candidate: got %v, want NaN", name, i, got)
			}
			if got := fn(clean, dirty); !math.IsNaN(got) {
				t.Errorf("%s: NaN at %d of the reference: got %v, want NaN", name, i, got)
			}
		}
	}
}

func TestEmptyRowsAreUndefined(t *testing.T) {
	for name, fn := range rowMetrics {
		if got := fn(nil, nil); !math.IsNaN(got) {
			t.Errorf("%s of nothing: got %v, want NaN", name, got)
		}
	}
	if got := metric.L2(nil); !math.IsNaN(got) {
		t.Errorf("L2 of nothing: got %v, want NaN", got)
	}
}

func TestLengthsThatDifferPanic(t *testing.T) {
	for name, fn := range rowMetrics {
		for _, tt := range [][2]row{{{1, 2, 3}, {1, 2}}, {{1, 2}, {1, 2, 3}}, {nil, {1}}, {{1}, nil}} {
			func() {
				defer func() {
					e, ok := recover().(*metric.LengthError)
					if !ok || e.Func != name || e.Cand != len(tt[0]) || e.Ref != len(tt[1]) {
						t.Errorf("%s of %d and %d elements: recovered %v", name, len(tt[0]), len(tt[1]), e)
					}
				}()
				fn(tt[0], tt[1])
				t.Errorf("%s of %d and %d elements returned", name, len(tt[0]), len(tt[1]))
			}()
		}
	}
}

func TestZScores(t *testing.T) {
	// mean 2.5, population variance (2.25+0.25+0.25+2.25)/4 = 1.25.
	s := math.Sqrt(1.25)
	for i, want := range (row{-1.5 / s, -0.5 / s, 0.5 / s, 1.5 / s}) {
		if got := metric.ZScores(row{1, 2, 3, 4})[i]; !same(got, want) {
			t.Errorf("z[%d]: got %v, want %v", i, got, want)
		}
	}
	for _, flat := range []row{{0.1, 0.1, 0.1}, {0, 0}, {-3}, {1e-300, 2e-300}} {
		for i, got := range metric.ZScores(flat) {
			if got != 0 {
				t.Errorf("z of %v at %d: got %v, want 0", flat, i, got)
			}
		}
	}
	for _, broken := range []row{{1, nan, 3}, {1, inf, 3}, {inf, inf}} {
		for i, got := range metric.ZScores(broken) {
			if !math.IsNaN(got) {
				t.Errorf("z of %v at %d: got %v, want NaN", broken, i, got)
			}
		}
	}
}

func TestL2(t *testing.T) {
	for _, tt := range []struct {
		in   row
		want float64
	}{{row{3, 4}, 5}, {row{-3, -4}, 5}, {row{0}, 0}, {row{3e300, 4e300}, 5e300}, {row{nan, inf}, nan}, {row{inf, 1}, inf}} {
		if got := metric.L2(tt.in); !same(got, tt.want) {
			t.Errorf("L2(%v): got %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	// numpy.quantile([15 20 35 40 50 7 3], p), method linear.
	xs := row{15, 20, 35, 40, 50, 7, 3}
	for _, tt := range []struct {
		p, want float64
	}{{0, 3}, {0.25, 11}, {0.4, 17}, {0.5, 20}, {0.95, 46.99999999999999}, {0.99, 49.39999999999999}, {1, 50}} {
		if got := metric.Quantile(tt.p, xs); !same(got, tt.want) {
			t.Errorf("Quantile(%v): got %v, want %v", tt.p, got, tt.want)
		}
	}
	if xs[0] != 15 || xs[6] != 3 {
		t.Errorf("Quantile reordered its argument: %v", xs)
	}
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"median of an even count", metric.Median(row{10, 1, 3, 2}), 2.5},
		{"p99", metric.P99(xs), 49.39999999999999},
		{"mean", metric.Mean(row{1, 2, 6}), 3},
		{"median of nothing", metric.Median(nil), nan},
		{"mean of nothing", metric.Mean(nil), nan},
		{"median with a NaN far from the middle", metric.Median(row{1, 2, 3, nan}), nan},
		{"maximum with a NaN", metric.Quantile(1, row{nan, 2}), nan},
		{"mean with a NaN", metric.Mean(row{1, nan}), nan},
		{"median below an infinity", metric.Median(row{1, 2, inf}), 2},
		{"median of infinities", metric.Median(row{inf, inf}), inf},
		{"p99 that reaches an infinity", metric.P99(row{1, 2, inf}), inf},
	} {
		if !same(tt.got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
	for _, p := range []float64{-0.01, 1.01, nan} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Quantile(%v) returned", p)
				}
			}()
			metric.Quantile(p, xs)
		}()
	}
}

func TestClassify(t *testing.T) {
	negZero := math.Copysign(0, -1)
	for _, tt := range []struct {
		in   row
		kind metric.Kind
		at   int
	}{
		{nil, metric.Empty, -1},
		{row{1, 2}, metric.Ordinary, -1},
		{row{0, 0, 1e-30}, metric.Ordinary, -1},
		{row{0, negZero, 0}, metric.AllZero, -1},
		{row{0}, metric.AllZero, -1},
		{row{2, 2, 2}, metric.Constant, -1},
		{row{2}, metric.Constant, -1},
		{row{1, 2, nan}, metric.NonFinite, 2},
		{row{inf, nan}, metric.NonFinite, 0},
		{row{0, -inf, 0}, metric.NonFinite, 1},
		{row{nan, nan}, metric.NonFinite, 0},
	} {
		got := metric.Classify(tt.in)
		if got.Kind != tt.kind || got.Index != tt.at || got.Degenerate() != (tt.kind != metric.Ordinary) {
			t.Errorf("Classify(%v): got %v at %d, want %v at %d", tt.in, got.Kind, got.Index, tt.kind, tt.at)
		}
		at, ok := metric.Finite(tt.in)
		if ok != (tt.kind != metric.NonFinite) || at != tt.at {
			t.Errorf("Finite(%v): got %d, %v", tt.in, at, ok)
		}
	}
	if got := metric.Classify(row{2.5, 2.5}).Value; got != 2.5 {
		t.Errorf("value of a constant row: got %v, want 2.5", got)
	}
}
