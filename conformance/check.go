package conformance

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// Need says what evidence a check looks at, so that nothing is computed that no
// check asks for.
type Need uint

// The kinds of evidence.
const (
	// NeedRows: the residual capture of the side that is judged.
	NeedRows Need = 1 << iota
	// NeedWholeStep: the reference's second composition.
	NeedWholeStep
	// NeedBatched: the reference's batched prefill and its float64 rows.
	NeedBatched
	// NeedLastHidden: the reference's own post-norm last hidden state.
	NeedLastHidden
	// NeedGolden: the recorded rows of the case.
	NeedGolden
	// NeedProfile: the candidate's accumulated and local errors beside the
	// yardstick's.
	NeedProfile
	// NeedLogits: the candidate's logits beside the reference's.
	NeedLogits
	// NeedDecode: the reference's decode along the golden's tokens.
	NeedDecode
	// NeedStops: the reference's decode with stop ids planted.
	NeedStops
	// NeedChunks: the reference's logits with the prompt cut in other ways.
	NeedChunks
	// NeedBatches: the reference's logits in batches and after other requests.
	NeedBatches
	// NeedText: the ids of the prompt's text.
	NeedText
	// NeedProbes: the candidate's places at every position.
	NeedProbes
	// NeedAttention: the attention tensors of two sides.
	NeedAttention
	// NeedTeacher: a teacher's plan, target and evidence.
	NeedTeacher
	// NeedTargetRows: the reference's rows beside a target's.
	NeedTargetRows
	// NeedTargetWriter: what the writer of targets does.
	NeedTargetWriter
	// NeedRoutes: what the routers of a model, and gates alone, choose.
	NeedRoutes
	// NeedForcedRoutes: a model's places with the recorded experts forced on it.
	NeedForcedRoutes
	// NeedRouteCandidate: a candidate's experts beside the reference's.
	NeedRouteCandidate
	// NeedTrace: a trace and what it was made of.
	NeedTrace
)

// ofTheRun is evidence that no case has a part in.
const ofTheRun = NeedAttention | NeedTeacher | NeedTargetRows | NeedTargetWriter | NeedRoutes | NeedForcedRoutes | NeedRouteCandidate | NeedTrace

// Control is a planted fault that a check must fail on.
type Control struct {
	// Mutant is the fault's name in engine/mutant.
	Mutant string
	// Side is whose capture the fault is planted in.
	Side Side
	// Layer is the decoder layer (or, for a dump fault, the row) it is planted
	// at; -1 when it has no place.
	Layer int
	// Part, if set, is the place inside layer Layer that the check must name.
	Part engine.Part
	// Kind, if set, is what the check must call the fault: an exact check must
	// fail for the right reason, at the row that the fault was planted in.
	Kind Kind
	// Metric, if set, is what a finding must be about: an exact check has several
	// ways to fail.
	Metric string
	// Floor is the factor by which the control must miss the check's bound. It
	// is declared here, before anything is measured: 10 for float32 controls,
	// at least 2 on quantised data. 0 marks an exact check (bits, shapes,
	// order), which simply has to fail.
	Floor float64
}

// Outcome is what a check says about one case.
type Outcome struct {
	Status Status
	// Reason explains a skip, an error or an unsupported.
	Reason string
	// Kind classifies a failure that the check itself can classify.
	Kind Kind
	// Findings are sorted worst first.
	Findings []Finding
}

func pass() Outcome                     { return Outcome{Status: Pass} }
func skip(reason string) Outcome        { return Outcome{Status: Skip, Reason: reason} }
func unsupported(why string) Outcome    { return Outcome{Status: Unsupported, Reason: why} }
func fail(k Kind, f ...Finding) Outcome { return Outcome{Status: Fail, Kind: k, Findings: f} }

// bounded is the outcome of findings that must each be within their limit: the
// ones that are not, or all of them.
func bounded(fs []Finding) Outcome {
	var failed []Finding
	for _, f := range fs {
		if over(float64(f.Got), float64(f.Limit.Value)) {
			failed = append(failed, f)
		}
	}
	if len(failed) > 0 {
		return fail("", failed...)
	}
	return Outcome{Status: Pass, Findings: fs}
}

// Check is one invariant.
type Check struct {
	// ID is the name of the check and of its top-level test.
	ID string
	// Rule is one sentence, printed with each failure.
	Rule string
	// Catches names the bugs that the check exists for.
	Catches []string
	Level   Level
	// Feature is what a candidate must offer to be judged by the check; empty for a
	// check that no claim of a candidate is about.
	Feature Feature
	// Sides says whose capture the check judges; a check may judge both.
	Sides []Side
	Needs Need
	// Bounds are the names of the Budgets that its limits come from, Basis says where
	// those come from that are no budget; one of the two is there.
	Bounds []string
	Basis  string
	// Controls are the planted faults that the check must fail on.
	Controls []Control
	// Judge judges one case. It is pure: it reads ev and nothing else.
	Judge func(ev *Evidence, side Side) Outcome
	// Across, if set, judges the candidate, the suite itself where that is a side, or
	// the reference where that is the only one, over all cases. A nil outcome means
	// that it has nothing to add.
	Across func(run *RunEvidence) *Outcome
}

func (c *Check) judges(s Side) bool { return slices.Contains(c.Sides, s) }

// validate refuses a check that could not fail or could not be understood.
func (c *Check) validate() error {
	switch {
	case c.ID == "" || c.Rule == "":
		return fmt.Errorf("conformance: check %q: ID and Rule are required", c.ID)
	case len(c.Controls) == 0:
		return fmt.Errorf("conformance: check %s: no control: a check that cannot fail is not a check", c.ID)
	case c.Judge == nil && c.Across == nil:
		return fmt.Errorf("conformance: check %s: judges nothing", c.ID)
	case len(c.Sides) == 0:
		return fmt.Errorf("conformance: check %s: no side", c.ID)
	}
	for _, s := range c.Sides {
		if !slices.ContainsFunc(c.Controls, func(k Control) bool { return k.Side == s }) {
			return fmt.Errorf("conformance: check %s: no control on its %s side", c.ID, s)
		}
	}
	return nil
}

// Registry is a set of checks with unique IDs, in the order they are judged:
// provenance and shape first, then values.
type Registry struct {
	checks []*Check
}

// Register adds a check. It refuses a check without a control for each side,
// and an ID that is taken. What judges the results of other checks is not registered, see
// [ResultChecks].
func (r *Registry) Register(c *Check) error {
	if err := c.validate(); err != nil {
		return err
	}
	if r.Lookup(c.ID) != nil {
		return fmt.Errorf("conformance: check %s: registered twice", c.ID)
	}
	r.checks = append(r.checks, c)
	return nil
}

// Checks returns the checks in order.
func (r *Registry) Checks() []*Check { return slices.Clone(r.checks) }

// Lookup returns the check with the ID, or nil.
func (r *Registry) Lookup(id string) *Check {
	for _, c := range r.checks {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Builtin returns a registry with every check of this package.
func Builtin() *Registry {
	var r Registry
	for _, c := range []*Check{
		residualShape(),
		promptTokens(),
		lastTokenEmbed(),
		tieOverwriteBypass(),
		interiorRowOracle(),
		incrementalVersusBatched(),
		residualGolden(),
		logitRowContract(),
		greedyGolden(),
		logitGolden(),
		stopRule(),
		prefillEqualsDecode(),
		batchInvariance(),
		provenance(),
		residualCandidate(),
		localError(),
		probeCandidate(),
		tensorInventory(),
		kernelBoundNRMSE(),
		planReceipts(),
		prefixHash(),
		pointKinds(),
		targetFraming(),
		targetFinite(),
		greedyTrajectory(),
		targetOnce(),
		targetGolden(),
		routeGolden(),
		forcedRoutes(),
		routeCandidate(),
		traceShape(),
		contentIdentity(),
		routeStatistics(),
		traceHashes(),
		residualToLogits(),
		logitCandidate(),
		noVacuousPass(),
	} {
		c.Feature = featureOfCheck[c.ID]
		if err := r.Register(c); err != nil {
			panic(err) // a programmer error in this package, caught by any test
		}
	}
	return &r
}

// CoreChecks are the IDs of the Core checks that a candidate must have been judged by.
func CoreChecks() []string {
	out := make([]string, len(coreOfCandidate))
	for i, c := range coreOfCandidate {
		out[i] = c.ID
	}
	return out
}

type coreCheck struct{ ID, WouldRun string }

// coreOfCandidate lists the Core checks that a candidate must have been judged
// by, whether or not they are built: a verdict must not claim what nothing
// looked at.
var coreOfCandidate = []coreCheck{
	{"PromptTokens", "needs the ids that the candidate ran; for a dump folder's own prompts also a tokenizer.json beside the model"},
	{"ResidualShape", "needs a layer dump, NAME.layers.bin, in at least one case"},
	{"ResidualCandidate", "needs a layer dump, NAME.layers.bin, or probes of embed and every resid_post, in at least one case"},
	{"LocalError", "needs a layer dump, NAME.layers.bin, or probes of embed and every resid_post, in at least one case"},
	{"LogitRowContract", "needs a logit dump, NAME.logits.bin, and its output_ids in at least one case"},
	{"LogitCandidate", "needs a logit dump, NAME.logits.bin, in at least one case"},
}
