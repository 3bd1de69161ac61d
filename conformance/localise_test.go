package conformance

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/engine"
)

// flat is a clean curve of a 12-layer model: every ratio at v.
func flat(v float64) curve {
	fill := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = v
		}
		return out
	}
	c := curve{accumulated: fill(13), local: fill(12), lastCopyOf: -1}
	for k := range c.over {
		c.over[k] = fill(12)
	}
	return c
}

// oneLayer plants a fault of layer n: its local error towers, the layers behind
// it stay raised by the wrong KV cache, and over more layers it fades but does
// not heal.
func oneLayer(n int, peak, behind float64) curve {
	c := flat(1.3)
	c.local[n] = peak
	for i := n + 1; i < len(c.local); i++ {
		c.local[i] = behind
	}
	for i := n; i < len(c.accumulated)-1; i++ {
		c.accumulated[i+1] = peak / 3
	}
	for k := range c.over {
		for i := range c.over[k] {
			if i <= n && n < i+k+2 {
				c.over[k][i] = peak / math.Sqrt(float64(k+2))
			} else if i > n {
				c.over[k][i] = behind
			}
		}
	}
	return c
}

// badDumpRow makes row r wrong in the dump only.
func badDumpRow(c curve, r int, peak float64) curve {
	return badDumpRows(c, r, r, peak)
}

// badDumpRows makes the rows r to s wrong in the dump only: whatever starts or
// ends at one of them is bad, whatever passes over them is not.
func badDumpRows(c curve, r, s int, peak float64) curve {
	wrong := func(row int) bool { return row >= r && row <= s }
	for i := r; i <= s; i++ {
		c.accumulated[i] = peak / 4
	}
	for n := range c.local {
		if wrong(n) || wrong(n+1) {
			c.local[n] = peak
		}
		for k := range c.over {
			if wrong(n) || wrong(n+k+2) {
				c.over[k][n] = peak
			}
		}
	}
	return c
}

func TestLocateNamesTheFault(t *testing.T) {
	nan := oneLayer(6, math.NaN(), 1.3)
	input := flat(1.3)
	for i := range input.accumulated {
		input.accumulated[i] = 9
	}
	inputHeals := flat(1.3)
	inputHeals.accumulated[0], inputHeals.local[0] = 9, 9
	inputSmall := flat(1.3)
	inputSmall.accumulated[0] = 2.5 // row 1's wider budget hides what row 0 shows
	adds := flat(1.9)
	adds.accumulated[8], adds.accumulated[12] = 2.2, 2.5
	swap := oneLayer(4, 20, 3)
	swap.local[5] = 19.5
	postNorm := oneLayer(11, 40, 1.3)
	postNorm.postNormLast = true
	two := oneLayer(2, 20, 4)
	two.local[8] = 15
	masked := oneLayer(2, 20, 4)
	masked.local[8] = 5
	all := oneLayer(0, 15, 10)
	unknownClean := flat(1.3)
	unknownClean.unknown = true
	for i := range unknownClean.local {
		unknownClean.local[i] *= 7 // another scheme is worse everywhere
	}
	unknownFault := unknownClean
	unknownFault.local = append([]float64(nil), unknownClean.local...)
	unknownFault.local[5] *= 6
	unknownSpread := unknownClean
	unknownSpread.local = append([]float64(nil), unknownClean.local...)
	unknownSpread.local[5] *= 3
	weakSingle := flat(1)
	weakSingle.local[7] = 1.7
	weakMedian := weakSingle
	weakMedian.medians = true
	behindDump := badDumpRow(flat(1.3), 4, 30)
	for i := 8; i < 12; i++ {
		behindDump.local[i] = 2.5
	}
	behindDump.local[7] = 25
	behindDump.over[0][7], behindDump.over[0][6] = 25, 25
	repeated := oneLayer(11, 40, 1.3)
	repeated.lastCopyOf = 3
	skippedLast := oneLayer(11, 40, 1.3)
	skippedLast.lastCopyOf = 11 // what a skipped last layer gives as well
	doubledLast := oneLayer(11, 40, 1.3)
	doubledLast.lastRescaled = 1.5
	gap := flat(1.3)
	gap.local[4], gap.local[5], gap.accumulated[5] = unmeasured, unmeasured, unmeasured
	overflow := flat(1.3)
	overflow.local[3], overflow.local[4] = worstRatio, worstRatio
	for k := range overflow.over {
		overflow.over[k][4] = worstRatio
	}

	resid := func(ns ...int) []engine.Probe {
		var out []engine.Probe
		for _, n := range ns {
			out = append(out, engine.ResidPost(n))
		}
		return out
	}
	for _, tc := range []struct {
		name    string
		curve   curve
		row     int
		kind    Kind
		sources []engine.Probe
	}{
		{"clean", flat(1.3), -1, "", nil},
		{"at the bound", flat(2), -1, "", nil},
		{"first layer", oneLayer(0, 20, 3), 1, KindLayer, resid(0)},
		{"interior layer", oneLayer(7, 16.6, 3.2), 8, KindLayer, resid(7)},
		{"last layer", oneLayer(11, 16, 1.3), 12, KindLayer, resid(11)},
		{"weak, below the accumulated budget", oneLayer(5, 3, 1.6), 6, KindLayer, resid(5)},
		{"NaN is over every bound", nan, 7, KindLayer, resid(6)},
		{"all layers", all, 1, KindAllLayers, resid(0)},
		{"an early layer that spoils the others", oneLayer(0, 15, 7), 1, KindLayer, resid(0)},
		{"swapped layers don't heal", swap, 5, KindLayer, resid(4)},
		{"duplicated or doubled row heals", badDumpRow(flat(1.3), 7, 24), 7, KindDump, nil},
		{"wrong input", input, 0, KindInput, []engine.Probe{engine.ProbeEmbed}},
		{"row 0 wrong in the dump only", inputHeals, 0, KindDump, nil},
		{"an input that is a little wrong does not heal", inputSmall, 0, KindInput, []engine.Probe{engine.ProbeEmbed}},
		{"two neighbouring rows exchanged", badDumpRows(flat(1.3), 5, 6, 20), 5, KindDump, nil},
		{"three rows stale", badDumpRows(flat(1.3), 5, 7, 20), 5, KindDump, nil},
		{"four rows stale can't be told from layers", badDumpRows(flat(1.3), 4, 7, 20), 4, KindLayer, resid(3)},
		{"a weak layer does not heal by fading", oneLayer(5, 2.4, 2.1), 6, KindLayer, resid(5)},
		{"last row repeats an earlier one", repeated, 12, KindDump, nil},
		{"last row repeats the one before", skippedLast, 12, KindLayer, resid(11)},
		{"last row rescaled", doubledLast, 12, KindDump, nil},
		{"rows that can't be measured are no fault of values", gap, -1, "", nil},
		{"an overflow is a number", overflow, 4, KindDump, nil},
		{"small errors of one sign", adds, 8, KindAllLayers, resid(7)},
		{"post-norm last row", postNorm, 12, KindDump, nil},
		{"second, larger fault", two, 3, KindLayer, resid(2, 8)},
		{"second, masked fault", masked, 3, KindLayer, resid(2)},
		{"a fault behind a bad dump row", behindDump, 4, KindDump, resid(7)},
		{"medians: a layer that stands out below the factor", weakMedian, 8, KindLayer, resid(7)},
		{"one case: the same layer is within the factor", weakSingle, -1, "", nil},
		{"another scheme, clean", unknownClean, -1, "", nil},
		{"another scheme, as much as sound ones differ", unknownSpread, -1, "", nil},
		{"another scheme, one layer", unknownFault, 6, KindLayer, resid(5)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := locate(tc.curve, 2, DefaultBudgets())
			assert.Equal(t, tc.row, got.Row, "row; notes %v", got.Notes)
			assert.Equal(t, tc.kind, got.Kind, "kind; notes %v", got.Notes)
			assert.Equal(t, tc.sources, got.Sources, "sources")
		})
	}
}

// profileWith builds a profile whose ratios are those of the curve.
func profileWith(c curve) *Profile {
	measures := func(xs []float64) []Measure {
		out := make([]Measure, len(xs))
		for i, x := range xs {
			out[i] = Measure{Got: x * 0.01, Yard: 0.01}
		}
		return out
	}
	p := &Profile{Accumulated: measures(c.accumulated), Local: measures(c.local),
		NormRatio: make([]float64, len(c.accumulated)), Factors: DefaultBudgets().Int8}
	for k := range c.over {
		p.Over[k] = measures(c.over[k])
	}
	return p
}

func evidenceWith(curves ...curve) []*Evidence {
	var out []*Evidence
	for i, c := range curves {
		out = append(out, &Evidence{Case: engine.Case{Name: string(rune('a' + i))}, Profile: profileWith(c)})
	}
	return out
}

func TestLocateAllOverCases(t *testing.T) {
	clean, weak, strong := flat(1.3), oneLayer(5, 2.6, 1.4), oneLayer(5, 12, 1.4)
	other := oneLayer(9, 12, 1.4)
	for _, tc := range []struct {
		name   string
		curves []curve
		row    int
	}{
		{"five weak cases: the medians see them", []curve{weak, weak, weak, weak, weak}, 6},
		{"four weak cases: the single bound does not", []curve{weak, weak, weak, weak}, -1},
		{"one strong case of one", []curve{strong}, 6},
		{"one strong case among five is not lost", []curve{clean, clean, strong, clean, clean}, 6},
		{"the row that most cases share", []curve{other, strong, strong}, 6},
		{"a tie goes to the smaller row", []curve{other, strong}, 6},
		{"all clean", []curve{clean, clean, clean, clean, clean}, -1},
		{"no case", nil, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := locateAll(evidenceWith(tc.curves...), DefaultBudgets())
			assert.Equal(t, tc.row, got.Row, "notes %v", got.Notes)
		})
	}
}
