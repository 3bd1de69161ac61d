package suite

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine/mutant"
)

// Fault is a planted fault in words.
type Fault struct {
	// Bug is what goes wrong in a real engine, file or tool.
	Bug string
	// Source is a public report of a bug of this kind, or empty.
	Source string
	// OfRow is true where the control's Layer is a row of the capture.
	OfRow bool
}

// FaultOf describes the fault that a control names: one of this package's own, or
// one of engine/mutant.
func FaultOf(k conformance.Control) (Fault, error) {
	if bug, ok := ownFaults[k.Mutant]; ok {
		return Fault{Bug: bug}, nil
	}
	m, err := mutant.Lookup(k.Mutant)
	if err != nil {
		return Fault{}, fmt.Errorf("suite: %s: got a fault that nothing describes: %w", k.Mutant, err)
	}
	return Fault{Bug: m.Bug, Source: m.Source, OfRow: m.Place == mutant.Row}, nil
}

// ownFaults are those that this package plants itself: in files, in documents, in a
// tokenizer, in a writer.
var ownFaults = map[string]string{
	// tokens.go
	"pre-tokeniser-rule":  "the pattern that cuts text into words takes one rule from another model family",
	"template-whitespace": "the chat template ends with one newline too many",

	// goldens.go
	"golden-bit-flipped":     "one bit of a golden changed since it was recorded",
	"golden-missing":         "a golden of the manifest is gone",
	"golden-orphan":          "a file that the manifest doesn't know lies among the goldens",
	"checkpoint-bit-flipped": "the checkpoint is not the one that the goldens were recorded from: one bit differs",
	"prompts-bit-flipped":    "the prompts are not those that the goldens were recorded from: one bit differs",
	"case-without-golden":    "a case that nobody recorded is judged as if it had a golden",

	// teacher.go
	"recorded-target-bit-flipped": "one bit of a recorded target changed since",
	"recorded-plan-bit-flipped":   "one bit of the plan behind a recorded target changed since",
	"plan-no-json":                "the plan ends in the middle of its JSON",

	// attention.go
	"window-off-by-one":            "a sliding-window layer sees one position too few",
	"tensor-gone":                  "one tensor of the inventory was never written",
	"tensor-of-another-layer-type": "a tensor has the size that layers of the other type have",
	"tensor-nan":                   "a NaN in one tensor at a later position, which a comparison by maximum can drop",
	"tensor-reference-zero":        "a tensor of the reference is all zeros, so that a relative error divides by nothing",

	// teacher_faults.go
	"plan-token-changed":                "one token of an example changed, and the hash of the whole was made anew",
	"plan-nested-keys-reordered":        "the keys of a nested object come in another order, which changes what is hashed",
	"plan-hash-of-another":              "the plan carries the hash of another one's prediction plan",
	"plan-prefix-off-by-one":            "a prefix is hashed with one token too few",
	"plan-ids-swapped":                  "two prediction points have each other's example",
	"plan-prefixes-shrink":              "the prediction points of an example come in another order than that of their prefixes",
	"kind-extra-key":                    "the kind of a point has a key that its tag doesn't have",
	"kind-unknown-tag":                  "the kind of a point has a tag that nobody defined",
	"kind-another-target":               "a point names another target token than the one that follows its prefix",
	"target-truncated":                  "the last byte of a target is missing",
	"target-byte-added":                 "one byte stands behind the last row of a target",
	"target-ordinal-repeated":           "two rows of a target have the same ordinal",
	"target-rows-swapped":               "two rows of a target stand in each other's place",
	"target-nan":                        "a NaN in a row of a target",
	"target-infinite":                   "an infinity in a row of a target",
	"trajectory-token-changed":          "one greedy token of the evidence changed, without its hash",
	"trajectory-short":                  "a trajectory has one token too few",
	"trajectory-of-another-first-token": "a trajectory starts with a token that the target's own row doesn't choose",
	"trajectory-forged":                 "one greedy token changed and every hash made anew: only a run of the model can tell",
	"evidence-of-another-target":        "the evidence names the hash of another target",
	"evidence-byte-changed":             "one byte of the evidence changed since it was hashed",

	// target_writers.go
	"target-overwritten": "a writer renames its file over an existing target",
	"target-emptied":     "a writer empties an existing target before it looks whether there is one",
	"target-in-place":    "a writer writes under the final name, where a half file can be taken for a whole one",
	"target-leftovers":   "a writer that is ended leaves its temporary file",
	"target-readable":    "a writer lets everybody read the target",

	// route_faults.go
	"recorded-routes-bit-flipped":  "one bit of the recorded routes changed since",
	"latent-row-stale":             "a row of the latent KV cache keeps an earlier token's values",
	"trace-padding-unmasked":       "the padding on the left of a batch is attended to",
	"fault-beside-a-flip":          "a layer's MLP is off behind a router that flips: without forced routes the flip hides it",
	"near-ties-reversed":           "every router takes the next expert wherever the last two are near: each alone may be a tie",
	"near-ties-reversed-one-layer": "one router does so, which is rare over all layers",

	// trace_faults.go
	"trace-gate-missing":        "a router is missing in the trace of a source",
	"trace-stage-missing":       "a stage is missing in the trace of a source",
	"trace-content-id-changed":  "one content token of a source has another id under one condition",
	"trace-content-shifted":     "the content positions of one condition are those one to the left",
	"trace-crossing-counted":    "the tokens that cross the content's boundary are counted wrong",
	"trace-load-moved":          "one token is counted for the expert beside its own",
	"trace-weighted-load-moved": "the weighted load of one expert is off by an eighth",
	"trace-summary-of-another":  "a figure of the summary isn't that of the sources",
	"trace-bit-flipped":         "one bit of one hidden row differs from what was hashed",
	"trace-routes-reordered":    "the experts of one token are listed in another order than they were hashed in",
}
