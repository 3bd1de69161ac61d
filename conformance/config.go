package conformance

import (
	"time"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden"
)

// Config says who is judged against whom. An empty Config judges nothing, and
// fails.
type Config struct {
	// Reference is the trusted float engine. Required.
	Reference engine.Reference
	// Yardstick is the second low-precision implementation that bounds a
	// quantised candidate. Required for one.
	Yardstick engine.Yardstick
	// Candidate is the engine under test. Without one only the reference is
	// judged, and the conclusion is NothingJudged.
	Candidate engine.Candidate
	// Cases are the prompts. When nil, a candidate that lists its own cases (a
	// dump folder) is judged on those.
	Cases []engine.Case
	// Golden is what the trusted reference recorded for the cases; the reference
	// engine is held to it. nil when there is none.
	Golden *golden.Set
	// GoldenInputs are what Golden was recorded from; if given, they and the
	// goldens are held to its manifest (the check Provenance).
	GoldenInputs golden.Inputs
	// ReferenceCases is on how many of the cases the reference is judged by the
	// checks that run it again in other ways: 0 means 1, negative means all. It is
	// held to Golden on every case that has one.
	ReferenceCases int
	// Only, if not empty, restricts the run to these check IDs. A restricted
	// run never concludes Conforms, whichever checks were left out.
	Only []string
	// Skip leaves checks of the candidate out on purpose, each with its reason.
	Skip []CheckSkip
	// Features are what the candidate claims to offer; nil takes what it declares
	// itself. A claim must be shown, and an Extended check of what isn't claimed is
	// reported only. No claim at all: every check applies.
	Features []Feature
	// Waivers accept failures of the candidate for a while. One that has expired or
	// that waives nothing makes the run fail.
	Waivers []Waiver
	// Baseline is an earlier report that this run must not be worse than, BaselineName
	// its name for people; nil for none. Repeat is the same build once more, whose
	// difference from Candidate is the noise of a figure: the value of Candidate itself
	// is asked again. nil leaves it unmeasured.
	Baseline     *Report
	BaselineName string
	Repeat       engine.Candidate
	// Now is today's date, which waivers and bounds set by hand expire by; nil for
	// time.Now.
	Now func() time.Time
	// AllowPartial lets Run pass when nothing failed but a Core check was judged
	// on no case.
	AllowPartial bool
	// Registry is the set of checks to run; nil for Builtin.
	Registry *Registry
	// Budgets replaces the default bounds; nil for DefaultBudgets.
	Budgets *Budgets
	// Timeout bounds the candidate's answer to one case; 0 means two minutes. The
	// reference has no such bound: its time follows from the model's size. A
	// candidate that is engine.SelfTimed has a bound of its own.
	Timeout time.Duration
	// Mutants plants a control's fault: it returns cfg with the side replaced.
	// Only Prove needs it.
	Mutants func(cfg Config, k Control) (Config, error)
	// Encode turns a prompt's text into the model's token ids, with the special
	// tokens that stand in it and none added. With it, ids that a candidate brings
	// or tells are held to the text. nil takes the reference's own, if its weights
	// are an engine.Encoder: a checkpoint with a tokenizer.json beside it is.
	Encode func(text string) ([]int, error)
	// DecodeSteps is how many tokens a candidate is asked to decode; 0 means as
	// many as the goldens have, or engine.DefaultMaxNew.
	DecodeSteps int
	// Probes are the places to ask the candidate for at every position, for the
	// check ProbeCandidate; none leaves it to the candidate. A dump folder has what
	// it has.
	Probes []engine.Probe
	// Attention is two sides whose attention tensors are compared, beside what
	// Candidate is judged by; nil for none. A comparison alone, without a Candidate, is
	// what package golden/kernel and `plumbline diff` are for.
	Attention *Attention
	// Teacher is a plan of a teacher with what was made for it, likewise beside what
	// Candidate is judged by; nil for none. Files alone are what `plumbline targets
	// verify` is for.
	Teacher *Teacher
	// Routes are models with routed experts and gates, with what was recorded of them
	// and a candidate's choices, and Trace a trace; likewise beside what Candidate is
	// judged by, and nil for none.
	Routes *Routes
	Trace  *Trace
	// Shard is which part of the cases is run; nil for all of them. See [Merge].
	Shard *Shard
	// Costs has seconds per case, and per part of the run that is no case's, as
	// [Report.Costs] gives them from an earlier report: shards are balanced by them, and
	// all of one run have to be given the same. A case that it lacks is taken for what
	// its tokens suggest.
	Costs map[string]float64
	// Power are further lines of the report's power: what the caller knows that the run
	// can't show.
	Power []string
	// Reproduce is the command that repeats the run, for the report.
	Reproduce string
	// ReportJSON is a file, by an absolute path, that Run writes the report to, and
	// overwrites; empty for none. See also ReportEnv.
	ReportJSON string
	// Progress, if set, is told after each case how many of total are done.
	Progress func(done, total int, what string)

	// paths remembers the yardstick's path through the layers over many runs of
	// one reference; nil remembers nothing.
	paths *memo[path]
}

func (c *Config) budgets() Budgets {
	if c.Budgets != nil {
		return *c.Budgets
	}
	return DefaultBudgets()
}

func (c *Config) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c *Config) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return 2 * time.Minute
}
