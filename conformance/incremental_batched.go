package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// incrementalVersusBatched holds the capture to be a token-by-token run with a
// healthy KV cache: near the batched run, and not identical to it.
func incrementalVersusBatched() *Check {
	return &Check{
		ID: "IncrementalVersusBatched",
		Rule: "the token-by-token capture differs in bits from a batched prefill of the same prompt, " +
			"and by no more than float32 rounding",
		Catches: []string{"a batched capture declared incremental", "a stale KV cache row", "positions off by one in decode"},
		Level:   Extended,
		Sides:   []Side{SideReference},
		Needs:   NeedRows | NeedBatched,
		Bounds:  []string{"BatchedVersusIncremental"},
		Basis:   "exact: the two runs differ in bits",
		Controls: []Control{
			{Mutant: "batched-as-incremental", Side: SideReference, Layer: -1, Kind: KindDump},
			{Mutant: "stale-cache-row", Side: SideReference, Layer: 3, Floor: 10},
			{Mutant: "q-position-off-by-one", Side: SideReference, Layer: 3, Floor: 10},
			{Mutant: "decode-position-shift", Side: SideReference, Layer: -1, Floor: 10},
		},
		Judge: judgeIncrementalVersusBatched,
	}
}

// minTokensForBatch is the shortest prompt whose batched sums are sure to run in
// another order than single rows': up to 5 tokens were seen to give the same
// bits on a small model, from 6 on they differ.
const minTokensForBatch = 8

func judgeIncrementalVersusBatched(ev *Evidence, side Side) Outcome {
	c := ev.capture(side)
	if c == nil || ev.Batched == nil || ev.Rows64 == nil {
		return skip("the batched prefill was not run")
	}
	if n := len(ev.Case.TokenIDs); n < minTokensForBatch {
		return skip(fmt.Sprintf("%d token(s): a batch of fewer than %d rows has no power", n, minTokensForBatch))
	}
	if len(c.Rows) != len(ev.Batched) {
		return fail(KindFormat, Finding{Metric: "rows", Got: Number(len(c.Rows)),
			Limit: Limit{Number(len(ev.Batched)), "the batched prefill"}, At: Nowhere})
	}
	b := ev.Budgets.BatchedVersusIncremental
	differ := false
	worst := -1
	var rows []Finding
	for i := range c.Rows {
		if _, same := sameBits(c.Rows[i], ev.Batched[i]); !same {
			differ = true
		}
		// The error of a run that is not faulty: the larger of the two, since a
		// fault in the incremental run must not raise its own bound.
		e := max(metric.RelativeL2(ev.Batched[i], ev.Rows64[i]), ev.Rounding)
		f := Finding{Probe: engine.RowProbe(i), Metric: "relative L2", At: AtRow(i),
			Got:   Number(metric.RelativeL2(c.Rows[i], ev.Batched[i])),
			Limit: Limit{Number(b.Value * e), b.Describe()}}
		rows = append(rows, f)
		if worst < 0 || over(excess(f), excess(rows[worst])) {
			worst = i
		}
	}
	if over(excess(rows[worst]), 1) {
		f := rows[worst]
		f.Detail = "the incremental run is not the batched run within rounding: a stale cache row or a wrong position"
		return fail(KindLayer, f)
	}
	if !differ {
		return fail(KindDump, Finding{Metric: "differing rows", Got: 0,
			Limit: Limit{1, "two different orders of summation"}, At: Nowhere,
			Detail: "the capture is bit-identical to a batched prefill, so it was not taken token by token"})
	}
	return Outcome{Status: Pass, Findings: rows}
}

// excess is how far a finding is over its limit: 1 is at the limit. A NaN is
// over every limit.
func excess(f Finding) float64 {
	return float64(f.Got) / float64(f.Limit.Value)
}
