package conformance

import (
	"context"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
)

// Capture is a residual capture in memory.
type Capture struct {
	Header engine.CaptureHeader
	// Rows has layers+1 rows of the hidden size.
	Rows [][]float64
	// Steps has one quantisation step per row, 0 for a float row.
	Steps []float64
	// File is where it came from; empty when it was not a file.
	File string
}

// Evidence is everything that the checks may look at for one case. It is
// gathered before any check runs.
type Evidence struct {
	Case    engine.Case
	Arch    engine.Arch
	Budgets Budgets
	// referenceJudged is true when the reference's own checks run on this case.
	referenceJudged bool
	// Reference is R's own capture, in its own arithmetic.
	Reference *Capture
	// Rounding is one rounding of R's arithmetic: 2^-24 in float32.
	Rounding float64
	// Rows64 are R's rows in float64.
	Rows64 [][]float64
	// WholeStep and Batched are R's other two compositions.
	WholeStep, Batched [][]float64
	// LastHidden is R's own post-norm last hidden state, NormOfLast the final
	// norm applied to R's captured last row.
	LastHidden, NormOfLast []float64
	// Decode is R's decode along the golden's tokens, Stops with stop ids planted,
	// Chunks with the prompt cut in other ways, Batches in company.
	Decode          *DecodeEvidence
	Stops           []stopRun
	Chunks, Batches []OtherRun
	// LastEmbedding and FirstEmbedding are rows of the embedding table;
	// TableMax is the largest absolute value in the table.
	LastEmbedding, FirstEmbedding []float64
	TableMax                      float64
	// Golden are the recorded rows, nil when the case has none. GoldenFloor is the
	// golden's own error from float64, one figure per row; where it recorded none,
	// GoldenPlain is true and the figures are the float32 engine's own error.
	Golden      [][]float64
	GoldenFloor []float64
	GoldenPlain bool
	// Declared is what the candidate says of itself.
	Declared engine.Info
	// Candidate is C's capture; nil when C offers none, or when it is broken
	// (CandidateErr) or not to be loaded (its header is wrong).
	Candidate    *Capture
	CandidateErr error
	// Notes are what the candidate's answer had that is not judged.
	Notes []string
	// Offered is true when C gave a layer capture, whatever its state.
	Offered bool
	// wrongVocabulary is true when the logits are of another vocabulary.
	wrongVocabulary bool
	// CandidateHeader and CandidateFile describe the offered capture.
	CandidateHeader engine.CaptureHeader
	CandidateFile   string
	// PromptIDs are the ids that C ran, nil when it didn't tell.
	PromptIDs []int
	// TextIDs are what the tokenizer makes of the case's text, nil when there is
	// none, with the reason in NoText.
	TextIDs []int
	NoText  string
	// listsOwnCases is true when the case came from the candidate.
	listsOwnCases bool
	// decodeBudget is how many tokens an output has that nothing ends.
	decodeBudget int
	// OutputIDs are the tokens that C says it chose, nil when it didn't.
	OutputIDs []int
	// LogitForm is C's logit dump before any value is compared, nil when C offers
	// none. Logits are its values beside the reference's, nil when they could not
	// be compared, with the reason in NoLogits.
	LogitForm *LogitForm
	Logits    *LogitProfile
	NoLogits  string
	// Profile is nil when the rows could not be judged by value, with the
	// reason in NoProfile.
	Profile   *Profile
	NoProfile string
	// Places are C's probes at every position, nil when it offers none; placesIDs
	// are the tokens of the positions. ProbeProfile is nil when they could not be
	// measured, with the reason in NoProfile.
	Places       *Places
	placesIDs    []int
	ProbeProfile *ProbeProfile
	// layerRun runs one layer on given rows, as ProbeProfile was measured.
	layerRun func(ctx context.Context, n int, in, mid [][]float64) (want, yard engine.LayerRun, err error)
	// trace is the run that Profile was measured from, yard are the yardstick's rows.
	trace engine.Trace
	yard  [][]float64
	// found is set where the evidence was gathered in another process, and so has no
	// engine: what was seen there.
	found *foundElsewhere
}

// RunEvidence is what the checks over a whole run look at.
type RunEvidence struct {
	Cases []*Evidence
	// HasGolden is true when the run has recorded goldens, and what they were
	// recorded from, to hold to their manifest.
	HasGolden bool
	// GoldenProblems are the files that are not as the goldens' manifest says.
	GoldenProblems []golden.Problem
	// Attention is what a comparison of attention tensors gave, nil without one.
	Attention *AttentionEvidence
	// Teacher is what a teacher's plan, target and evidence are found to be, nil
	// without a plan.
	Teacher *TeacherEvidence
	// Routes is what runs of models with routed experts gave, nil without one.
	Routes *RouteEvidence
	// Trace is what a trace is found to be, nil without one.
	Trace *TraceEvidence
	// Budgets are the bounds of the run.
	Budgets Budgets
	// WithoutGolden are the cases that no golden was recorded for.
	WithoutGolden []string
}

// header returns the header of the side's capture and whether there is one.
func (ev *Evidence) header(side Side) (engine.CaptureHeader, bool) {
	if side == SideReference {
		if ev.Reference == nil {
			return engine.CaptureHeader{}, false
		}
		return ev.Reference.Header, true
	}
	return ev.CandidateHeader, ev.Offered
}

// wrongModel reports whether the offered capture has another model's shape.
func (ev *Evidence) wrongModel() bool {
	return ev.wrongVocabulary ||
		(ev.Offered && (ev.CandidateHeader.Rows != ev.Arch.Layers+1 || ev.CandidateHeader.Width != ev.Arch.Hidden))
}

// capture returns the side's capture, or nil.
func (ev *Evidence) capture(side Side) *Capture {
	if side == SideReference {
		return ev.Reference
	}
	return ev.Candidate
}

// layersFile returns the file of the side's capture for a finding.
func (ev *Evidence) layersFile(side Side) string {
	if side == SideCandidate {
		return ev.CandidateFile
	}
	return ""
}
