package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// stopRule holds an output to end where it should.
func stopRule() *Check {
	return &Check{
		ID:      "StopRule",
		Rule:    "decoding stops on the first stop id and keeps it; it ends without one only when the token budget is used up",
		Catches: []string{"the stop id dropped from the output", "decoding that goes on past a stop id", "an output that just breaks off"},
		Level:   Extended,
		Sides:   []Side{SideReference, SideCandidate},
		Needs:   NeedStops | NeedLogits,
		Basis:   "exact: the tokens and the stop reason",
		Controls: []Control{
			{Mutant: "stop-dropped", Side: SideReference, Layer: -1, Kind: KindDump},
			{Mutant: "runs-past-stop", Side: SideReference, Layer: -1, Kind: KindDump},
			{Mutant: "stop-dropped", Side: SideCandidate, Layer: -1, Kind: KindDump},
			{Mutant: "runs-past-stop", Side: SideCandidate, Layer: -1, Kind: KindDump},
		},
		Judge: judgeStopRule,
	}
}

func judgeStopRule(ev *Evidence, side Side) Outcome {
	if side == SideReference {
		return judgeReferenceStops(ev)
	}
	out, stop := ev.OutputIDs, ev.Case.Stop
	switch {
	case ev.CandidateErr != nil:
		return answerError(ev.CandidateErr)
	case len(out) == 0:
		return unsupported("output_ids were not told")
	case len(stop) == 0:
		return skip("the case has no stop ids")
	}
	file := ""
	if ev.LogitForm != nil {
		file = ev.LogitForm.File
	}
	first := slices.IndexFunc(out, func(id int) bool { return slices.Contains(stop, id) })
	if first >= 0 && first < len(out)-1 {
		return fail(KindDump, Finding{Exact: true, Metric: "output tokens", Got: Number(len(out)), Limit: Limit{Number(first + 1), "the first stop id"},
			At: AtStep(first, file), Detail: fmt.Sprintf("token %d is a stop id, and decoding went on", out[first])})
	}
	if first >= 0 {
		return pass()
	}
	if len(out) < ev.decodeBudget && ev.listsOwnCases {
		return skip("the output ends before the longest one of the run, and not on a stop id: what its budget was is not told")
	}
	if len(out) < ev.decodeBudget {
		return fail(KindDump, Finding{Exact: true, Metric: "output tokens", Got: Number(len(out)),
			Limit: Limit{Number(ev.decodeBudget), "the budget, since no stop id ended the output"}, At: AtStep(len(out)-1, file),
			Detail: "the output ends before its budget, and not on a stop id: dropped, or broken off"})
	}
	return skip("no stop id was chosen within the budget: the case has no power here")
}

// stopRun is a decode of the reference with stop ids that must end it.
type stopRun struct {
	Stop, Want []int
	Reason     engine.StopReason
	Got        engine.Decoded
}

func judgeReferenceStops(ev *Evidence) Outcome {
	if len(ev.Stops) == 0 {
		return skip("the reference was not decoded on this case")
	}
	for _, s := range ev.Stops {
		at := AtStep(max(0, len(s.Want)-1), "")
		if !slices.Equal(s.Got.OutputIDs, s.Want) {
			return fail(KindDump, Finding{Exact: true, Metric: "output tokens", Got: Number(len(s.Got.OutputIDs)),
				Limit: Limit{Number(len(s.Want)), "the tokens up to the first stop id, which is kept"}, At: at,
				Detail: fmt.Sprintf("stop %v: got %v, want %v", s.Stop, s.Got.OutputIDs, s.Want)})
		}
		if len(s.Got.Logits) != len(s.Want) {
			return fail(KindDump, Finding{Exact: true, Metric: "logit rows", Got: Number(len(s.Got.Logits)),
				Limit: Limit{Number(len(s.Want)), "one row for each token"}, At: at})
		}
		if s.Got.StopReason != s.Reason {
			return fail(KindDump, Finding{Exact: true, Metric: "stop reason", Got: Number(s.Got.StopReason),
				Limit: Limit{Number(s.Reason), "1 when a stop id ended the output, else 0"}, At: at})
		}
	}
	return pass()
}
