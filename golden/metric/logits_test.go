package metric_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// within reports whether got is want within a relative bound, NaN equal to NaN.
func within(got, want, rel float64) bool {
	if math.IsNaN(got) || math.IsNaN(want) {
		return math.IsNaN(got) && math.IsNaN(want)
	}
	return got == want || math.Abs(got-want) <= rel*math.Abs(want)
}

// Expected values: mpmath at 60 digits on the same float64 logits.
func TestKL(t *testing.T) {
	ref := row{1, 2, 3, -1}
	tiny, tinier := math.Ldexp(1, -20), math.Ldexp(1, -40)
	for _, tt := range []struct {
		name      string
		ref, cand row
		want      float64
	}{
		{"plain", ref, row{2, 1, 2.5, 0}, 0.19771478791900566812},
		// 3/4 log(3/2) + 1/4 log(1/2).
		{"three to one against even", row{math.Log(3), 0}, row{0, 0}, 0.13081203594113697782},
		{"near", ref, row{1.1, 1.95, 3.05, -1.2}, 0.0014033334989306367974},
		{"near, shifted by 7", ref, row{8.125, 8.9375, 10.0625, 5.8125}, 0.0020102228177088740841},
		// A plain sum of p log(p/q) is off in the third digit here …
		{"a float32 step", ref, row{1 + tiny, 2, 3 - tiny, -1}, 1.9246305591473203058e-13},
		// … and is noise of 1e-17 here.
		{"far below float64's step at 1", ref, row{1 + tinier, 2, 3 - tinier, -1}, 1.7504408536147038051e-25},
		{"one tail", row{0, 1, 2}, row{0, 1, 5}, 0.62141605836997667714},
		// exp(-800) is 0 in float64: q is gone, log q isn't.
		{"q underflows", row{0, 0}, row{0, -800}, 399.30685281944005469},
		{"p underflows", row{0, -800}, row{0, 0}, math.Ln2},
		{"both underflow", row{0, -2000}, row{-2000, 0}, 2000},
		{"p underflows, q is small", row{0, -800, -1}, row{0, -30, -1}, 6.8409705469555504901e-14},
		{"one token moves far, the others by 2^-20", row{3, 2, -60}, row{3 + tiny, 2, -50}, 8.9408742666823278174e-14},
		{"nothing overflows", row{1e308, 0}, row{1e308, 0}, 0},
		{"uniform at two levels", row{0, 0, 0, 0}, row{5, 5, 5, 5}, 0},
		{"one token", row{3}, row{-8}, 0},
		{"nothing", nil, nil, nan},
		{"NaN in the reference", row{1, nan}, row{1, 2}, nan},
		{"NaN in the candidate", row{1, 2}, row{nan, 2}, nan},
		{"NaN on both sides", row{nan, 2}, row{nan, 2}, nan},
		{"infinity in the reference", row{inf, 2}, row{1, 2}, nan},
		{"minus infinity in the candidate", row{1, 2}, row{1, -inf}, nan},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := metric.KL(tt.ref, tt.cand); !within(got, tt.want, 1e-13) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestKLProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for trial := range 400 {
		n := 1 + rng.IntN(80)
		spread := math.Exp(3 * rng.NormFloat64())
		noise := math.Exp(8 * rng.NormFloat64())
		ref, cand, shifted := make(row, n), make(row, n), make(row, n)
		for i := range ref {
			ref[i] = spread * rng.NormFloat64()
			cand[i] = ref[i] + noise*rng.NormFloat64()
			shifted[i] = cand[i] + 1024
		}
		kl := metric.KL(ref, cand)
		if !(kl >= 0) || math.IsInf(kl, 0) {
			t.Errorf("trial %d: KL is %v, want a finite number that isn't negative", trial, kl)
		}
		if n > 1 && kl == 0 && noise > 1e-6 && spread < 5 {
			t.Errorf("trial %d: KL of two distributions is 0", trial)
		}
		if got := metric.KL(ref, ref); got != 0 {
			t.Errorf("trial %d: KL of a row and itself is %v, want 0", trial, got)
		}
		// Adding 1024 rounds each logit by up to 1e-13.
		if got := metric.KL(ref, shifted); math.Abs(got-kl) > 1e-12+1e-11*kl {
			t.Errorf("trial %d: KL of a shifted candidate is %v, want %v", trial, got, kl)
		}
		// The definition, where its cancellation leaves anything.
		p, q := metric.LogSoftmax(nil, ref), metric.LogSoftmax(nil, cand)
		var plain float64
		for i := range p {
			plain += math.Exp(p[i]) * (p[i] - q[i])
		}
		if math.Abs(plain-kl) > 1e-12*(1+spread+noise) {
			t.Errorf("trial %d: KL is %v, sum p log(p/q) is %v", trial, kl, plain)
		}
	}
}

func TestKLAtScales(t *testing.T) {
	ref, cand := row{1, 2, 3, -1}, row{20, 10, 25, 0}
	got := metric.KLAtScales(ref, cand, 10, 5, 0, -1, nan, inf, -inf)
	for i, want := range []float64{
		0.19771478791900566812, // mpmath, as in TestKL: the candidate is 2 1 2.5 0
		metric.KL(ref, row{4, 2, 5, 0}),
		nan, nan, nan,
		metric.KL(ref, row{0, 0, 0, 0}), nan,
	} {
		if !within(got[i], want, 1e-13) {
			t.Errorf("scale %d: got %v, want %v", i, got[i], want)
		}
	}
	if got := metric.KLAtScales(row{1, 2}, row{1e308, 0}, 0.01)[0]; !math.IsNaN(got) {
		t.Errorf("a scale at which the logits overflow: got %v, want NaN", got)
	}
	for _, pair := range [][2]row{{{1, nan}, {1, 2}}, {{1, 2}, {1, inf}}, {nil, nil}} {
		if got := metric.KLAtScales(pair[0], pair[1], 1); len(got) != 1 || !math.IsNaN(got[0]) {
			t.Errorf("%v against %v: got %v, want NaN", pair[1], pair[0], got)
		}
	}
	if cand[0] != 20 {
		t.Errorf("the candidate was changed: %v", cand)
	}
}

// The two ways to sum meet: KL grows with the square of a small step, so it moves
// by little more than 4h where the step crosses from one to the other.
func TestKLIsContinuous(t *testing.T) {
	ref := row{0.5, -1, 2, 0}
	kl := func(d float64) float64 { return metric.KL(ref, row{0.5 + d, -1, 2, 0}) }
	const h = 1e-11
	for _, d := range []float64{0.25, -0.25} {
		below, above := kl(d*(1-h)), kl(d*(1+h))
		if math.Abs(above-below) > 6*h*below {
			t.Errorf("around d = %v: %v and %v", d, below, above)
		}
	}
}

func TestLogSoftmax(t *testing.T) {
	for _, tt := range []struct {
		name      string
		row, want row
	}{
		{"plain", row{1, 2, 3, -1}, row{-2.4197166463153394718, -1.4197166463153394718, -0.41971664631533947178, -4.4197166463153394718}},
		{"large", row{1000, 999, -1000}, row{-0.31326168751822283405, -1.313261687518222834, -2000.3132616875182228}},
		{"one token", row{-7}, row{0}},
		{"nothing", nil, row{}},
		{"NaN", row{1, nan, 2}, row{nan, nan, nan}},
		{"infinity", row{1, inf}, row{nan, nan}},
		{"minus infinity", row{-inf, 1}, row{nan, nan}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := metric.LogSoftmax(nil, tt.row)
			if len(got) != len(tt.want) {
				t.Fatalf("got %d values, want %d", len(got), len(tt.want))
			}
			for i := range got {
				if !within(got[i], tt.want[i], 1e-15) {
					t.Errorf("at %d: got %v, want %v", i, got[i], tt.want[i])
				}
			}
		})
	}
	in := row{1, 2, 3, -1}
	dst := make(row, 1, 4)
	if got := metric.LogSoftmax(dst, in); &got[0] != &dst[0] || in[0] != 1 {
		t.Error("dst with room isn't used, or the row was changed")
	}
	if got := metric.LogSoftmax(in, in); &got[0] != &in[0] || !within(in[2], -0.41971664631533947178, 1e-15) {
		t.Errorf("in place: got %v", got)
	}
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name          string
		row           row
		first, second int
	}{
		{"plain", row{1, 5, 3}, 1, 2},
		{"descending", row{9, 8, 7}, 0, 1},
		{"ascending", row{7, 8, 9}, 2, 1},
		{"tie at the top", row{1, 4, 4, 4}, 1, 2},
		{"tie for the second place", row{2, 9, 2}, 1, 0},
		{"zeros of either sign tie", row{math.Copysign(0, -1), 0}, 0, 1},
		{"all minus infinity", row{-inf, -inf, -inf}, 0, 1},
		{"plus infinity", row{0, inf, 1}, 1, 2},
		{"one token", row{3}, 0, -1},
		{"nothing", nil, -1, -1},
		{"NaN first", row{nan, 1, 2}, -1, -1},
		{"NaN second", row{1, nan}, -1, -1},
		{"NaN last", row{1, 2, 3, nan}, -1, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, second := metric.Top2(tt.row)
			if first != tt.first || second != tt.second {
				t.Errorf("Top2: got %d, %d, want %d, %d", first, second, tt.first, tt.second)
			}
			if got := metric.ArgMax(tt.row); got != tt.first {
				t.Errorf("ArgMax: got %d, want %d", got, tt.first)
			}
		})
	}
}

func TestRankAndRegret(t *testing.T) {
	r := row{1, 5, 3, 5, -2}
	for id, want := range []struct {
		rank   int
		regret float64
	}{{4, 4}, {1, 0}, {3, 2}, {1, 0}, {5, 7}} {
		if got := metric.Rank(r, id); got != want.rank {
			t.Errorf("rank of %d: got %d, want %d", id, got, want.rank)
		}
		if got := metric.Regret(r, id); got != want.regret {
			t.Errorf("regret of %d: got %v, want %v", id, got, want.regret)
		}
	}
	for id := range 2 {
		if got := metric.Rank(row{1, nan}, id); got != 0 {
			t.Errorf("rank of %d beside a NaN: got %d, want 0", id, got)
		}
		if got := metric.Regret(row{1, nan}, id); !math.IsNaN(got) {
			t.Errorf("regret of %d beside a NaN: got %v, want NaN", id, got)
		}
	}
	if got := metric.Regret(row{inf, 1}, 0); got != 0 {
		t.Errorf("regret of the infinite best: got %v, want 0", got)
	}
	if got := metric.Regret(row{inf, 1}, 1); got != inf {
		t.Errorf("regret against an infinite best: got %v, want +Inf", got)
	}
	for _, broken := range []row{nil, {nan, 1, 2}, {3, 2, nan}} {
		if got := metric.TopN(broken, 2); got != nil {
			t.Errorf("TopN(%v, 2): got %v, want nil", broken, got)
		}
	}
	for name, fn := range map[string]func(){
		"Rank": func() { metric.Rank(r, 5) }, "Regret": func() { metric.Regret(r, -1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of an id outside the row returned", name)
				}
			}()
			fn()
		}()
	}
}

// Against the definitions, on rows with many ties.
func TestOrderAgainstSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 17))
	for range 300 {
		r := make(row, 2+rng.IntN(30))
		order := make([]int, len(r))
		for i := range r {
			r[i], order[i] = float64(rng.IntN(6)), i
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(r[b] - r[a]) })
		if first, second := metric.Top2(r); first != order[0] || second != order[1] {
			t.Errorf("Top2(%v): got %d, %d, want %d, %d", r, first, second, order[0], order[1])
		}
		for _, n := range []int{0, 1, 2, len(r) / 2, len(r), len(r) + 3} {
			if got, want := metric.TopN(r, n), order[:min(n, len(r))]; !slices.Equal(got, want) {
				t.Errorf("TopN(%v, %d): got %v, want %v", r, n, got, want)
			}
		}
		for place, id := range order {
			rank := metric.Rank(r, id)
			if rank > place+1 || r[order[rank-1]] != r[id] || rank > 1 && r[order[rank-2]] == r[id] {
				t.Errorf("Rank(%v, %d): got %d", r, id, rank)
			}
			p := metric.LogSoftmax(nil, r)
			if got, want := metric.Regret(r, id), p[order[0]]-p[id]; math.Abs(got-want) > 1e-14 {
				t.Errorf("Regret(%v, %d): got %v, want %v", r, id, got, want)
			}
		}
	}
}

// Expected values: mpmath, or the arithmetic in the comment.
func TestCentred(t *testing.T) {
	want := row{2, 1, 5, 7}
	for _, tt := range []struct {
		name      string
		got, want row
		l2, slope float64
	}{
		{"plain", row{1, 2, 4, 8}, want, 0.41931393468876731831, 1.043956043956043956},
		{"shifted by a million", row{1000001, 1000002, 1000004, 1000008}, want, 0.41931393468876731831, 1.043956043956043956},
		{"ten times", row{30, 11, 52, 73}, row{3, 1, 5, 7}, 9.4047860156411852303, 10.4},
		{"equal", want, want, 0, 1},
		{"equal but for a shift", row{9, 8, 12, 14}, want, 0, 1},
		{"doubled", row{4, 2, 10, 14}, want, 1, 2},
		{"opposite", row{-2, -1, -5, -7}, want, 2, -1},
		// 0.1 three times has a float64 mean that is 0.1's neighbour, as far off as
		// this row is wide.
		{"shifted by 0.1, the row is as wide as 0.1's rounding", row{0.1, 0.1 + 0x1p-56, 0.1 + 0x1p-55}, row{0, 0x1p-56, 0x1p-55}, 0, 1},
		{"constant candidate", row{0.1, 0.1, 0.1, 0.1}, want, 1, 0},
		{"constant reference", want, row{0.1, 0.1, 0.1, 0.1}, inf, nan},
		{"both constant", row{0.3, 0.3, 0.3}, row{0.1, 0.1, 0.1}, nan, nan},
		{"nothing", nil, nil, nan, nan},
		{"NaN in the candidate", row{1, nan, 2}, row{1, 2, 3}, nan, nan},
		{"NaN in the reference", row{1, 2, 3}, row{1, nan, 2}, nan, nan},
		{"infinity in the candidate", row{1, inf, 2}, row{1, 2, 3}, nan, nan},
		{"infinity in the reference", row{1, 2, 3}, row{1, -inf, 2}, nan, nan},
		{"infinity on both sides", row{inf, 2, 3}, row{inf, 1, 2}, nan, nan},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := metric.CentredL2(tt.got, tt.want); !within(got, tt.l2, 1e-15) {
				t.Errorf("CentredL2: got %v, want %v", got, tt.l2)
			}
			if got := metric.Slope(tt.got, tt.want); !within(got, tt.slope, 1e-14) {
				t.Errorf("Slope: got %v, want %v", got, tt.slope)
			}
		})
	}
}

// 1 2 4 8 against 2 1 5 7: sums of squares 28.75 and 22.75, of products 23.75,
// so r = 0.92865412 (numpy.corrcoef). Rows that hardly differ keep their digits.
func TestCentre(t *testing.T) {
	c := metric.Centre(row{1, 2, 4, 8}, row{2, 1, 5, 7})
	for name, pair := range map[string][2]float64{
		"got mean": {c.GotMean, 3.75}, "want mean": {c.WantMean, 3.75},
		"got std": {c.GotStd, math.Sqrt(28.75 / 4)}, "want std": {c.WantStd, math.Sqrt(22.75 / 4)},
		"rms": {c.RMSZDiff, math.Sqrt(2 * (1 - 23.75/math.Sqrt(28.75*22.75)))},
	} {
		if !within(pair[0], pair[1], 1e-14) {
			t.Errorf("%s: got %v, want %v", name, pair[0], pair[1])
		}
	}
	// d = (h, -h, 0, 0)-like noise on z-scores of size 1: 1-r is below float64's
	// step at 1.
	h := math.Ldexp(1, -30)
	c = metric.Centre(row{1 + h, 1 - h, -1, -1}, row{1, 1, -1, -1})
	if want := h / math.Sqrt2; !within(c.RMSZDiff, want, 1e-6) {
		t.Errorf("hardly different: got %v, want %v", c.RMSZDiff, want)
	}
	for name, c := range map[string]metric.Centred{
		"NaN": metric.Centre(row{1, nan}, row{1, 2}), "infinity": metric.Centre(row{1, 2}, row{inf, 2}), "nothing": metric.Centre(nil, nil),
	} {
		for i, x := range []float64{c.GotMean, c.GotStd, c.WantMean, c.WantStd, c.L2, c.Slope, c.RMSZDiff} {
			if !math.IsNaN(x) {
				t.Errorf("%s: figure %d is %v, want NaN", name, i, x)
			}
		}
	}
	if c := metric.Centre(row{0.1, 0.1, 0.1}, row{1, 2, 3}); !math.IsNaN(c.RMSZDiff) || c.GotStd != 0 || !within(c.L2, 1, 1e-15) {
		t.Errorf("constant row: got %+v", c)
	}
}

// CentredL2 and Slope against the functions that they're built like.
func TestCentredIdentities(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 23))
	for trial := range 200 {
		n := 2 + rng.IntN(40)
		got, want := make(row, n), make(row, n)
		for i := range got {
			want[i] = rng.NormFloat64()
			got[i] = 3*want[i] + rng.NormFloat64() - 40
		}
		cg, cw := make(row, n), make(row, n)
		mg, mw := metric.Mean(got), metric.Mean(want)
		for i := range got {
			cg[i], cw[i] = got[i]-mg, want[i]-mw
		}
		if a, b := metric.CentredL2(got, want), metric.RelativeL2(cg, cw); !within(a, b, 1e-12) {
			t.Errorf("trial %d: CentredL2 %v, RelativeL2 of the centred rows %v", trial, a, b)
		}
		// slope = r * std(got)/std(want).
		if a, b := metric.Slope(got, want), metric.PearsonZ(got, want)*metric.NormRatio(cg, cw); math.Abs(a-b) > 1e-11 {
			t.Errorf("trial %d: Slope %v, correlation times the ratio of spreads %v", trial, a, b)
		}
		c := metric.Centre(got, want)
		zg, zw := metric.ZScores(got), metric.ZScores(want)
		var rms float64
		for i := range zg {
			rms += (zg[i] - zw[i]) * (zg[i] - zw[i]) / float64(n)
		}
		for name, pair := range map[string][2]float64{
			"L2":       {c.L2, metric.CentredL2(got, want)},
			"Slope":    {c.Slope, metric.Slope(got, want)},
			"RMSZDiff": {c.RMSZDiff, math.Sqrt(rms)},
			"z got":    {(got[1] - c.GotMean) / c.GotStd, zg[1]},
			"z want":   {(want[1] - c.WantMean) / c.WantStd, zw[1]},
		} {
			if !(math.Abs(pair[0]-pair[1]) <= 1e-12*(1+math.Abs(pair[1]))) {
				t.Errorf("trial %d: Centre's %s is %v, want %v", trial, name, pair[0], pair[1])
			}
		}
	}
}

func TestLogitLengthsThatDifferPanic(t *testing.T) {
	for name, fn := range map[string]func(cand, ref []float64) float64{
		"KL":        func(c, r []float64) float64 { return metric.KL(r, c) },
		"CentredL2": metric.CentredL2, "Slope": metric.Slope,
		"KLAtScales": func(c, r []float64) float64 { return metric.KLAtScales(r, c, 1)[0] },
		"Centre":     func(c, r []float64) float64 { return metric.Centre(c, r).L2 },
	} {
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
