package conformance

// Status is the outcome of one check on one case.
type Status string

// The five outcomes. Only Pass and Fail count as judged.
const (
	// Pass: the rule held.
	Pass Status = "pass"
	// Fail: a wrong answer.
	Fail Status = "fail"
	// Error: no answer, or one that can't be read.
	Error Status = "error"
	// Unsupported: not offered.
	Unsupported Status = "unsupported"
	// Skip: the case has no power for the check; the reason is given.
	Skip Status = "skip"
)

// Judged reports whether the check came to a verdict.
func (s Status) Judged() bool { return s == Pass || s == Fail }

// Conclusion is the verdict over all checks and cases.
type Conclusion string

// The four conclusions.
const (
	// Conforms: every Core check judged somewhere, and passed wherever judged.
	Conforms Conclusion = "conforms"
	// Partial: nothing failed, and a Core check was judged nowhere or left out on request,
	// or the run was restricted to some checks.
	Partial Conclusion = "partial"
	// Fails: a check failed, or an answer was missing or broken.
	Fails Conclusion = "fails"
	// NothingJudged: no check of the candidate came to a verdict.
	NothingJudged Conclusion = "nothing judged"
)

// Level says what a failing check means for the conclusion.
type Level string

// Core checks must hold and must be judged. Extended checks must hold where
// they apply. Provisional checks are reported only.
const (
	Core        Level = "core"
	Extended    Level = "extended"
	Provisional Level = "provisional"
)

// Side is whose capture a check judges.
type Side string

// Checks of SideReference and SideSuite test Plumbline itself and never enter a
// candidate's conclusion.
const (
	SideCandidate Side = "candidate"
	SideReference Side = "reference"
	SideSuite     Side = "suite"
)

// Kind classifies a failure.
type Kind string

// The kinds of failure a report can name. An empty kind is null in JSON.
const (
	KindLayer      Kind = "layer"      // one layer introduces the error
	KindAllLayers  Kind = "all layers" // every layer introduces error
	KindInput      Kind = "input"      // row 0: token or embedding
	KindDump       Kind = "dump"       // a bad row in the dump; the engine went on healthy
	KindHead       Kind = "head"       // final norm or output projection
	KindFormat     Kind = "format"     // a file that can't be read
	KindProvenance Kind = "provenance" // well-formed, but another prompt or model
)
