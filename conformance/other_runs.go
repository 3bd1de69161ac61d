package conformance

import "github.com/plumbline-go/plumbline/engine"

// prefillEqualsDecode holds the reference to give the same logits however the
// prompt is cut.
func prefillEqualsDecode() *Check {
	return &Check{
		ID: "PrefillEqualsDecode",
		Rule: "one prefill, chunked prefills of two sizes, token by token, and one prefill over prompt and output " +
			"give the same logits within float32 rounding",
		Catches: []string{"a chunk that starts at the wrong position", "a chunk that doesn't see the cache of the ones before", "decode steps with another arithmetic than prefill"},
		Level:   Extended,
		Sides:   []Side{SideReference},
		Needs:   NeedChunks,
		Bounds:  []string{"BatchedVersusIncremental", "Float32Noise"},
		Controls: []Control{
			{Mutant: "chunk-position-shift", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "decode-position-shift", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "stale-cache-row", Side: SideReference, Layer: 3, Floor: 10},
		},
		Judge: func(ev *Evidence, _ Side) Outcome { return judgeOtherRuns(ev, ev.Chunks, "the prompt has one token") },
	}
}

// batchInvariance holds a sequence's logits not to depend on its company.
func batchInvariance() *Check {
	return &Check{
		ID: "BatchInvariance",
		Rule: "a sequence gives the same logits alone, in a left-padded batch of unequal lengths in any order, " +
			"and after another request, within float32 rounding",
		Catches: []string{"padding that is attended to", "rows past the first of a batch wrong in decode", "a cache that keeps keys of the request before"},
		Level:   Extended,
		Sides:   []Side{SideReference},
		Needs:   NeedBatches,
		Bounds:  []string{"BatchedVersusIncremental", "Float32Noise"},
		Controls: []Control{
			{Mutant: "padding-unmasked", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "batch-row-stale", Side: SideReference, Layer: -1, Floor: 10},
			{Mutant: "cache-kept", Side: SideReference, Layer: -1, Floor: 10},
		},
		Judge: func(ev *Evidence, _ Side) Outcome {
			return judgeOtherRuns(ev, ev.Batches, "the case was not in a batch")
		},
	}
}

func judgeOtherRuns(ev *Evidence, runs []OtherRun, without string) Outcome {
	if len(runs) == 0 || ev.Decode == nil {
		return skip(without)
	}
	b := ev.Budgets.BatchedVersusIncremental // of the golden's error, or the engine's own
	var fs []Finding
	for _, o := range runs {
		for i, m := range logitDistances(ev, o) {
			fs = append(fs, Finding{Probe: engine.ProbeLogits, Metric: "relative L2 of the row without its mean", Got: Number(m.Got),
				Limit: Limit{Number(b.Value * m.Yard), b.Describe()}, At: AtStep(o.First+i, ""), Detail: o.How})
		}
	}
	return bounded(fs)
}
