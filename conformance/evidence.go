package conformance

import (
	"github.com/plumbline-go/plumbline/engine"
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
	// LastEmbedding and FirstEmbedding are rows of the embedding table;
	// TableMax is the largest absolute value in the table.
	LastEmbedding, FirstEmbedding []float64
	TableMax                      float64
	// Declared is what the candidate says of itself.
	Declared engine.Info
	// Candidate is C's capture; nil when C offers none, or when it is broken
	// (CandidateErr) or not to be loaded (its header is wrong).
	Candidate    *Capture
	CandidateErr error
	errReported  bool
	// Offered is true when C gave a layer capture, whatever its state.
	Offered bool
	// CandidateHeader and CandidateFile describe the offered capture.
	CandidateHeader engine.CaptureHeader
	CandidateFile   string
	// Profile is nil when the rows could not be judged by value, with the
	// reason in NoProfile.
	Profile   *Profile
	NoProfile string
	// trace is the run that Profile was measured from.
	trace engine.Trace
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

// Measure is one error beside the yardstick's error of the same kind.
type Measure struct {
	// Got and Yard are relative L2 errors.
	Got, Yard float64
}

// Ratio is Got/Yard. A yardstick of zero allows zero.
func (m Measure) Ratio() float64 {
	if m.Yard == 0 && m.Got == 0 {
		return 0
	}
	return m.Got / m.Yard
}

// Profile is a candidate's error along the depth of the model, for one case.
// c are the candidate's rows, r the reference's, f_n its layers with its own KV
// cache.
type Profile struct {
	// Accumulated has one entry per row: |c_i - r_i| / |r_i|.
	Accumulated []Measure
	// Local has one entry per layer: |c_(n+1) - f_n(c_n)| / |f_n(c_n) - c_n|.
	Local []Measure
	// Two has one entry per pair of layers n, n+1: the same over both, which
	// passes over row n+1: |c_(n+2) - f_(n+1)(f_n(c_n))| over the pair's update.
	Two []Measure
	// NormRatio has one entry per row: |c_i| / |r_i|.
	NormRatio []float64
	// PostNormLast is true when the last row is much nearer to the final norm
	// of the reference's last row than to that row.
	PostNormLast bool
	// SchemeUnknown is true when the yardstick doesn't emulate the candidate's
	// declared arithmetic: then only the shape of Local means something.
	SchemeUnknown string
	// Factors are the bounds for this candidate's arithmetic.
	Factors Factors
}

func ratios(ms []Measure) []float64 {
	out := make([]float64, len(ms))
	for i, m := range ms {
		out[i] = m.Ratio()
	}
	return out
}
