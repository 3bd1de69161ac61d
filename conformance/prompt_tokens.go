package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// promptTokens holds the ids that a candidate ran to those of the prompt.
func promptTokens() *Check {
	return &Check{
		ID: "PromptTokens",
		Rule: "the candidate ran the prompt's own token ids: those of the case, " +
			"and those that the model's tokenizer makes of the text",
		Catches: []string{
			"BOS added twice, or not at all", "a pre-tokeniser with another rule for digits or spaces",
			"a chat template with a space or line break too many", "special tokens in the text split into pieces",
		},
		Level: Core,
		Sides: []Side{SideCandidate},
		Needs: NeedText,
		Basis: "exact: the ids themselves",
		Controls: []Control{
			{Mutant: "bos-doubled", Side: SideCandidate, Layer: -1, Kind: KindInput},
			{Mutant: "pre-tokeniser-rule", Side: SideCandidate, Layer: -1, Kind: KindInput},
			{Mutant: "template-whitespace", Side: SideCandidate, Layer: -1, Kind: KindInput},
		},
		Judge: judgePromptTokens,
	}
}

func judgePromptTokens(ev *Evidence, _ Side) Outcome {
	if ev.CandidateErr != nil {
		return answerError(ev.CandidateErr)
	}
	want, source := ev.Case.TokenIDs, "the case's ids"
	got := ev.PromptIDs
	switch {
	case got == nil:
		return unsupported("the candidate was not handed ids, and did not tell those that it ran")
	case ev.listsOwnCases && ev.NoText != "":
		return unsupported(nothingToHold + ev.NoText)
	case ev.listsOwnCases:
		want, source = ev.TextIDs, "the model's tokenizer, on the case's text"
	}
	if slices.Equal(got, want) {
		return pass()
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	f := Finding{Probe: engine.ProbeEmbed, Exact: true, Metric: "prompt tokens", Got: Number(len(got)),
		Limit: Limit{Number(len(want)), source}, At: Nowhere}
	if i < len(got) && i < len(want) {
		f.Metric, f.Got, f.Limit.Value = fmt.Sprintf("token_ids[%d]", i), Number(got[i]), Number(want[i])
	}
	f.Detail = fmt.Sprintf("%d ids, want %d; the first difference is at position %d%s", len(got), len(want), i, doubledHint(got, want, i))
	return fail(KindInput, f)
}

// nothingToHold begins the reason where a candidate told its ids and no tokenizer can
// say which they should be.
const nothingToHold = "nothing to hold the candidate's own ids to: "

// doubledHint names the classic.
func doubledHint(got, want []int, i int) string {
	if len(got) == len(want)+1 && i > 0 && got[i] == got[i-1] && slices.Equal(got[i:], want[i-1:]) {
		return fmt.Sprintf(": token %d stands there twice", got[i])
	}
	return ""
}
