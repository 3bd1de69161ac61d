package kernel_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

const q, k, v, sdpa = 0, 1, 2, 3

// rows are the rows of gemma4-30 with figures far below every bound, as from a
// CSV.
func rows(inv *kernel.Inventory) []kernel.Row {
	out := make([]kernel.Row, inv.Len())
	for i := range out {
		out[i] = kernel.Row{Key: inv.Key(i), Figures: kernel.Figures{MaxAbs: 1e-5, MeanAbs: 1e-6, MSE: 1e-12, NRMSE: 1e-5, RelErrPct: 5e-4, RefMeanAbs: 0.5, CandMeanAbs: 0.5}}
	}
	return out
}

// at is the index of a row by layer, decode step and op.
func at(inv *kernel.Inventory, layer, step, op int) int {
	for p, x := range inv.Positions {
		if x.Step == step {
			return inv.Index(kernel.Key{Layer: layer, Position: p, Op: op})
		}
	}
	panic("no such step")
}

func judge(t *testing.T, inv *kernel.Inventory, th kernel.Thresholds, rows []kernel.Row) (*kernel.Script, *kernel.Verdict) {
	t.Helper()
	j := kernel.NewJudge(inv, th)
	for _, r := range rows {
		require.NoError(t, j.Add(r))
	}
	return j.Verdicts()
}

func lose(r *kernel.Row, p kernel.Problem, note string) {
	*r = kernel.Row{Key: r.Key, Problem: p, Note: note}
}

// TestClassification has every boundary of the classes and of the drill-down rule,
// and both verdicts on each trap.
func TestClassification(t *testing.T) {
	up := func(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
	down := func(x float64) float64 { return math.Nextafter(x, 0) }
	inv := kernel.Gemma4()
	type set func(r []kernel.Row)
	maxAbs := func(layer, step, op int, x float64) set {
		return func(r []kernel.Row) { r[at(inv, layer, step, op)].MaxAbs = x }
	}
	nrmse := func(layer, step int, x float64) set {
		return func(r []kernel.Row) { r[at(inv, layer, step, sdpa)].NRMSE = x }
	}
	missing := func(layer, step, op int) set {
		return func(r []kernel.Row) { lose(&r[at(inv, layer, step, op)], kernel.Missing, "MISSING:x") }
	}
	both := func(sets ...set) set {
		return func(r []kernel.Row) {
			for _, s := range sets {
				s(r)
			}
		}
	}
	const floor, bug, ambiguous = kernel.FloorCandidate, kernel.BugCandidate, kernel.Ambiguous
	for _, tc := range []struct {
		name   string
		change set
		// The script's.
		script    kernel.Class
		holds     bool
		drilldown bool
		reason    string
		// Plumbline's.
		own        kernel.Class
		conclusion kernel.Conclusion
		ownHolds   bool
		differs    bool
	}{
		{"clean", both(), floor, true, false, "no breach, nrmse well within bounds", floor, kernel.Conforms, true, false},

		{"a difference at the threshold", maxAbs(3, 5, k, 1e-3), floor, true, false, "no breach, nrmse well within bounds", floor, kernel.Conforms, true, false},
		{"a difference above it", maxAbs(3, 5, k, up(1e-3)), bug, true, false, "Single-op clean breach at layer=3 pos=5 op=k_normed", bug, kernel.Fails, true, false},
		{"a breach in the last early layer", maxAbs(15, 30, sdpa, 0.5), bug, true, false, "Single-op clean breach at layer=15 pos=30 op=sdpa_out", bug, kernel.Fails, true, false},
		{"a breach in the first late layer", maxAbs(16, 1, sdpa, 0.5), bug, true, true, "Multiple ops breach (1) or late breach (layer=16)", bug, kernel.Fails, true, false},
		{"two ops breach, early", both(maxAbs(2, 5, q, 0.1), maxAbs(9, 5, v, 0.1)), bug, true, true, "Multiple ops breach (2) or late breach (layer=2)", bug, kernel.Fails, true, false},
		{"one op breaches twice", both(maxAbs(2, 5, q, 0.1), maxAbs(20, 5, q, 0.1)), bug, true, false, "Single-op clean breach at layer=2 pos=5 op=q_normed", bug, kernel.Fails, true, false},

		{"nRMSE below the bound", nrmse(8, 10, down(0.15)), floor, true, false, "no breach, nrmse well within bounds", floor, kernel.Conforms, true, false},
		{"nRMSE at the bound", nrmse(8, 10, 0.15), ambiguous, false, false, "no breach, nrmse well within bounds", ambiguous, kernel.Fails, false, false},
		{"nRMSE above it at the last step", nrmse(8, 30, 0.2), ambiguous, false, true, "sdpa_out nrmse at pos30 reaches 0.2000 > 0.1", ambiguous, kernel.Fails, false, false},
		{"nRMSE at the drill-down threshold", nrmse(8, 30, 0.10), floor, true, false, "no breach, nrmse well within bounds", floor, kernel.Conforms, true, false},
		{"nRMSE above that", nrmse(8, 30, up(0.10)), floor, true, true, "sdpa_out nrmse at pos30 reaches 0.1000 > 0.1", floor, kernel.Conforms, true, false},
		{"nRMSE above that, not at the last step", nrmse(8, 25, 0.12), floor, true, false, "no breach, nrmse well within bounds", floor, kernel.Conforms, true, false},
		{"a large nRMSE of another op", func(r []kernel.Row) { r[at(inv, 8, 30, v)].NRMSE = 0.5 }, floor, true, false, "no breach, nrmse well within bounds", floor, kernel.Conforms, true, false},
		{"a breach and the bound violated", both(maxAbs(8, 30, sdpa, 0.5), nrmse(8, 30, 0.5)), bug, false, false, "Single-op clean breach at layer=8 pos=30 op=sdpa_out", bug, kernel.Fails, false, false},

		// The traps.
		{"a tensor missing", missing(4, 10, k), floor, true, false, "no breach, nrmse well within bounds", ambiguous, kernel.Fails, true, true},
		{"the bound op missing once", missing(4, 10, sdpa), floor, true, false, "no breach, nrmse well within bounds", ambiguous, kernel.Fails, false, true},
		{"the bound op missing in a layer", both(missing(4, 1, sdpa), missing(4, 5, sdpa), missing(4, 10, sdpa), missing(4, 15, sdpa), missing(4, 20, sdpa), missing(4, 25, sdpa), missing(4, 30, sdpa)),
			ambiguous, false, false, "no breach, nrmse well within bounds", ambiguous, kernel.Fails, false, true},
		{"the row missing that would ask for a drill-down", missing(8, 30, sdpa), floor, true, false, "no breach, nrmse well within bounds", ambiguous, kernel.Fails, false, true},
		{"NaN at a later position", both(maxAbs(4, 10, sdpa, math.NaN()), nrmse(4, 10, math.NaN())), floor, true, false, "no breach, nrmse well within bounds", bug, kernel.Fails, false, true},
		{"NaN at the first position", both(maxAbs(4, 1, sdpa, math.NaN()), nrmse(4, 1, math.NaN())), ambiguous, false, false, "no breach, nrmse well within bounds", bug, kernel.Fails, false, true},
		{"NaN in the reference", both(maxAbs(4, 10, q, math.NaN())), floor, true, false, "no breach, nrmse well within bounds", bug, kernel.Fails, true, true},
		{"an infinite difference", maxAbs(4, 10, q, math.Inf(1)), bug, true, false, "Single-op clean breach at layer=4 pos=10 op=q_normed", bug, kernel.Fails, true, true},
		{"an all-zero reference", func(r []kernel.Row) {
			x := &r[at(inv, 4, 10, sdpa)]
			x.RefMeanAbs, x.NRMSE = 0, 0
		}, floor, true, false, "no breach, nrmse well within bounds", ambiguous, kernel.Fails, false, true},
		{"an all-zero reference of another op", func(r []kernel.Row) { r[at(inv, 4, 10, q)].RefMeanAbs = 0 },
			floor, true, false, "no breach, nrmse well within bounds", ambiguous, kernel.Fails, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rows(inv)
			tc.change(r)
			s, own := judge(t, inv, kernel.DefaultThresholds(), r)
			assert.Equal(t, tc.script, s.Class)
			assert.Equal(t, tc.holds, s.BoundHolds)
			assert.Equal(t, tc.drilldown, s.DrilldownNeeded)
			assert.Equal(t, tc.reason, s.DrilldownReason)
			assert.Equal(t, tc.own, own.Class)
			assert.Equal(t, tc.conclusion, own.Conclusion)
			assert.Equal(t, tc.ownHolds, own.BoundHolds)
			assert.Equal(t, tc.differs, len(own.Differs) > 0, "%v", own.Differs)
			assert.Equal(t, 840, own.Expected)
			assert.Equal(t, own.Compared, s.Rows-s.Skipped)
			assert.Equal(t, own.Conclusion == kernel.Conforms, len(own.Findings) == 0, "%v", own.Findings)
		})
	}
}

// TestClassificationOfNothing: an empty set is no floor, and no success.
func TestClassificationOfNothing(t *testing.T) {
	inv := kernel.Gemma4()
	r := rows(inv)
	for i := range r {
		lose(&r[i], kernel.Missing, "MISSING:x")
	}
	s, own := judge(t, inv, kernel.DefaultThresholds(), r)
	assert.Equal(t, kernel.NothingJudged, own.Conclusion)
	assert.Empty(t, own.Class)
	assert.Equal(t, 840, own.Missing)
	assert.True(t, s.Crashes())
	assert.Contains(t, own.Differs[0], "traceback")
	assert.Len(t, own.Findings, 20, "the findings of a kind are bounded, the count is not")

	// Rows that never came are missing too.
	s, own = judge(t, inv, kernel.DefaultThresholds(), nil)
	assert.Equal(t, kernel.NothingJudged, own.Conclusion)
	assert.Equal(t, 840, own.Missing)
	_, own = judge(t, inv, kernel.DefaultThresholds(), rows(inv)[:839])
	assert.Equal(t, kernel.Fails, own.Conclusion)
	assert.Equal(t, 1, own.Missing)
	_ = s
}

// TestFirstBreach: by layer, then position, then op, per op and over all.
func TestFirstBreach(t *testing.T) {
	inv := kernel.Gemma4()
	type place struct{ layer, step, op int }
	for _, tc := range []struct {
		name    string
		places  []place
		overall place
		perOp   map[int]place
	}{
		{"layer before position", []place{{3, 1, sdpa}, {2, 30, q}}, place{2, 30, q}, map[int]place{q: {2, 30, q}, sdpa: {3, 1, sdpa}}},
		{"position before op", []place{{2, 10, q}, {2, 5, sdpa}}, place{2, 5, sdpa}, map[int]place{q: {2, 10, q}, sdpa: {2, 5, sdpa}}},
		{"steps as numbers, not as text", []place{{2, 10, q}, {2, 5, q}}, place{2, 5, q}, map[int]place{q: {2, 5, q}}},
		{"a tie goes to the op order", []place{{2, 5, sdpa}, {2, 5, v}, {2, 5, k}}, place{2, 5, k}, map[int]place{k: {2, 5, k}, v: {2, 5, v}, sdpa: {2, 5, sdpa}}},
		{"the first of one op", []place{{9, 1, v}, {9, 5, v}, {10, 1, v}}, place{9, 1, v}, map[int]place{v: {9, 1, v}}},
	} {
		r := rows(inv)
		for i, p := range tc.places {
			r[at(inv, p.layer, p.step, p.op)].MaxAbs = 0.01 * float64(i+1)
		}
		s, own := judge(t, inv, kernel.DefaultThresholds(), r)
		want := func(p place) kernel.Key { return inv.Key(at(inv, p.layer, p.step, p.op)) }
		for who, got := range map[string]struct {
			overall *kernel.Breach
			perOp   []*kernel.Breach
		}{"script": {s.Overall, s.FirstBreach}, "own": {own.Overall, own.FirstBreach}} {
			require.NotNil(t, got.overall, "%s: %s", tc.name, who)
			assert.Equal(t, want(tc.overall), got.overall.Key, "%s: %s", tc.name, who)
			for op, b := range got.perOp {
				p, breached := tc.perOp[op]
				if !assert.Equal(t, breached, b != nil, "%s: %s: %s", tc.name, who, inv.Ops[op].Name) || !breached {
					continue
				}
				assert.Equal(t, want(p), b.Key, "%s: %s: %s", tc.name, who, inv.Ops[op].Name)
			}
		}
	}
}

// The two verdicts part on a NaN: it is no breach to the script, and the first one
// to Plumbline.
func TestFirstBreachNaN(t *testing.T) {
	inv := kernel.Gemma4()
	r := rows(inv)
	r[at(inv, 1, 5, v)].MaxAbs = math.NaN()
	r[at(inv, 4, 5, v)].MaxAbs = 0.5
	s, own := judge(t, inv, kernel.DefaultThresholds(), r)
	assert.Equal(t, 4, s.Overall.Layer)
	assert.Equal(t, 1, own.Overall.Layer)
	assert.Equal(t, kernel.KindNonFinite, own.Findings[0].Kind)
}

func TestKernelBoundByLayer(t *testing.T) {
	inv := kernel.Gemma4()
	r := rows(inv)
	r[at(inv, 6, 15, sdpa)].NRMSE = 0.3
	r[at(inv, 6, 20, sdpa)].NRMSE = 0.2
	lose(&r[at(inv, 7, 20, sdpa)], kernel.WrongSize, "SIZE_MISMATCH:x:expected=1,got=2")
	s, own := judge(t, inv, kernel.DefaultThresholds(), r)
	assert.Equal(t, kernel.LayerBound{Max: 0.3, At: 3, Compared: 7}, own.Layers[6])
	assert.Equal(t, kernel.LayerBound{Max: 1e-5, At: 0, Compared: 6}, own.Layers[7], "six of seven positions hold nothing")
	assert.True(t, own.Layers[8].Holds)
	assert.Equal(t, 0.3, *s.Bound[6])
	assert.Equal(t, 1, own.WrongSize)
}

// The kernel test's ceiling on single values decides too, which the script leaves
// at knowing it.
func TestKernelBoundMaxAbs(t *testing.T) {
	inv := kernel.Gemma4()
	th := kernel.DefaultThresholds()
	th.Breach = kernel.Override(10, "a test")
	for x, holds := range map[float64]bool{math.Nextafter(1, 0): true, 1: false, 2: false, math.NaN(): false} {
		r := rows(inv)
		r[at(inv, 6, 15, sdpa)].MaxAbs = x
		r[at(inv, 6, 15, q)].MaxAbs = 9 // not the bound op
		s, own := judge(t, inv, th, r)
		assert.Equal(t, kernel.FloorCandidate, s.Class, "%v", x)
		assert.Equal(t, holds, own.MaxAbsHolds, "%v", x)
		assert.Equal(t, holds, own.Conclusion == kernel.Conforms, "%v", x)
		assert.Equal(t, holds, len(own.Differs) == 0, "%v: %v", x, own.Differs)
	}
}

func TestThresholdsHaveSources(t *testing.T) {
	th := kernel.DefaultThresholds()
	for name, b := range map[string]struct{ got, want float64 }{
		"breach": {th.Breach.Value, 1e-3}, "max abs": {th.MaxAbs.Value, 1}, "nrmse": {th.NRMSE.Value, 0.15}, "drilldown": {th.Drilldown.Value, 0.1},
	} {
		assert.Equal(t, b.want, b.got, name)
	}
	for _, b := range []string{th.Breach.Source, th.MaxAbs.Source, th.NRMSE.Source, th.Drilldown.Source, th.Breach.Expires} {
		assert.NotEmpty(t, b)
	}
	require.NoError(t, th.Validate())
	for _, x := range []float64{-1, math.NaN(), math.Inf(1)} {
		bad := th
		bad.NRMSE = kernel.Override(x, "a test")
		assert.Error(t, bad.Validate(), "%v", x)
	}
}

func TestJudgeWantsTheOrder(t *testing.T) {
	inv := kernel.Gemma4()
	j := kernel.NewJudge(inv, kernel.DefaultThresholds())
	r := rows(inv)
	assert.ErrorContains(t, j.Add(r[1]), "want the inventory's order")
	require.NoError(t, j.Add(r[0]))
	assert.Error(t, j.Add(r[0]))
}

// What the figures can't show is said.
func TestPower(t *testing.T) {
	inv := kernel.Gemma4()
	r := rows(inv)
	for i := range r {
		r[i].MaxAbs, r[i].NRMSE, r[i].RelErrPct = 0, 0, 0
	}
	_, own := judge(t, inv, kernel.DefaultThresholds(), r)
	assert.Contains(t, own.Power[0], "no tensor differs at all")
	r = rows(inv)
	for i := range r {
		r[i].NRMSE, r[i].RelErrPct = 0.12, 12
	}
	_, own = judge(t, inv, kernel.DefaultThresholds(), r)
	assert.Contains(t, own.Power[0], "another formula")
	r[at(inv, 3, 1, sdpa)].NRMSE = 0.13
	_, own = judge(t, inv, kernel.DefaultThresholds(), r)
	assert.NotContains(t, own.Power[0], "another formula")
}

// The script says it of each op, at as many places as there are.
func TestDiffersCountsAsTheScript(t *testing.T) {
	inv := kernel.Gemma4()
	r := rows(inv)
	lose(&r[3], kernel.Missing, "MISSING:x")
	_, own := judge(t, inv, kernel.DefaultThresholds(), r)
	assert.Equal(t, "1 of 840 tensors were not compared: the script leaves them out, and says of each op that it is within threshold at all 210 measurements", own.Differs[0])
}

// Values whose float32 mean overflows have no figures, from tensors as from their
// own CSV.
func TestOverflowFailsFromTensorsAndFromTheirCSV(t *testing.T) {
	inv := small(t, rawFile, "")
	bad := kernel.Key{Layer: 1, Position: 1, Op: q}
	source := func(shift float32) kernel.Source {
		return kernel.Func(func(at kernel.Key) []float32 {
			out := values(inv, at, shift)
			if at == bad {
				for i := range out {
					out[i] = 3e38
				}
			}
			return out
		}).Of(inv)
	}
	fromTensors := compare(t, inv, source(0), source(1.0/65536), 1)
	var b bytes.Buffer
	w, err := kernel.NewCSVWriter(&b, inv)
	require.NoError(t, err)
	for _, row := range fromTensors {
		require.NoError(t, w.Write(row))
	}
	fromCSV, err := read(t, inv, b.String())
	require.NoError(t, err)
	for name, rows := range map[string][]kernel.Row{"tensors": fromTensors, "csv": fromCSV} {
		_, own := judge(t, inv, kernel.DefaultThresholds(), rows)
		assert.Equal(t, kernel.Fails, own.Conclusion, name)
		assert.Equal(t, kernel.Ambiguous, own.Class, name)
		if assert.Equal(t, 1, own.NonFinite, name) {
			assert.Equal(t, bad, own.Findings[0].Key, name)
			assert.Contains(t, own.Findings[0].Says, "figures that are no numbers", name)
		}
	}
}
