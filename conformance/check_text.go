package conformance

import (
	"fmt"
	"reflect"

	"github.com/plumbline-go/plumbline/golden"
)

// NamedBudget is one of the Budgets with its name: that of the field, and for
// Factors that of its part, as "Int8.Median".
type NamedBudget struct {
	Name string
	golden.Budget
}

// Named returns the budgets of a field of Budgets: one, or the two of Factors.
func (b Budgets) Named(field string) ([]NamedBudget, error) {
	v := reflect.ValueOf(b).FieldByName(field)
	if !v.IsValid() {
		return nil, fmt.Errorf("conformance: budget %q: got an unknown name", field)
	}
	switch x := v.Interface().(type) {
	case golden.Budget:
		return []NamedBudget{{field, x}}, nil
	case Factors:
		return []NamedBudget{{field + ".Median", x.Median}, {field + ".Single", x.Single}}, nil
	}
	return nil, fmt.Errorf("conformance: budget %q: got a %s", field, v.Type())
}

// needTexts say what has to be there for each kind of evidence. Where the evidence is
// the reference's own, nothing has to be given.
var needTexts = []struct {
	need Need
	text string
}{
	{NeedRows, "the residual stream, one row for each layer: of a candidate NAME.layers.bin, or probes of embed and every resid_post"},
	{NeedWholeStep, "the reference once more, composed as one whole-step graph"},
	{NeedBatched, "the reference once more, as a batched prefill, and in float64"},
	{NeedLastHidden, "the reference's own last hidden state, after the final norm"},
	{NeedGolden, "recorded rows of the case (Config.Golden, gate --golden)"},
	{NeedProfile, "the yardstick of the candidate's arithmetic (Config.Yardstick)"},
	{NeedLogits, "the candidate's logits, NAME.logits.bin"},
	{NeedDecode, "the reference's decode; of goldens their logits"},
	{NeedStops, "the reference's decode with stop ids planted"},
	{NeedChunks, "the reference's logits with the prompt cut in other ways"},
	{NeedBatches, "the reference's logits in batches and after other requests"},
	{NeedText, "the ids that the prompt's text should have become: a tokenizer.json beside the model (Config.Encode)"},
	{NeedProbes, "places at every position, NAME.probes.safetensors"},
	{NeedAttention, "the attention tensors of two sides (Config.Attention)"},
	{NeedTeacher, "a teacher's plan, target and evidence (Config.Teacher)"},
	{NeedTargetRows, "a teacher's target and a model to run its plan on (Config.Teacher)"},
	{NeedTargetWriter, "a writer of targets (Config.Teacher)"},
	{NeedRoutes, "models with routed experts and their recorded routes (Config.Routes)"},
	{NeedForcedRoutes, "models with routed experts and their recorded routes and rows (Config.Routes)"},
	{NeedRouteCandidate, "a candidate's experts, route_ids (Config.Routes)"},
	{NeedTrace, "a trace document with its tokens and tensors (Config.Trace)"},
}

// Describe says what has to be there, one sentence for each kind of evidence.
func (n Need) Describe() []string {
	var out []string
	for _, t := range needTexts {
		if n&t.need != 0 {
			out = append(out, t.text)
		}
	}
	return out
}
