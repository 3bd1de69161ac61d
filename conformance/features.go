package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// The features that a candidate may claim.
const (
	FeatureLayers    Feature = "layers"    // rows of the residual stream
	FeatureLogits    Feature = "logits"    // rows of logits
	FeatureProbes    Feature = "probes"    // places at every position
	FeatureTokens    Feature = "tokens"    // the prompt ids that it ran
	FeatureDecode    Feature = "decode"    // the tokens that it chose, to their end
	FeatureAttention Feature = "attention" // attention tensors
	FeatureRoutes    Feature = "routes"    // choices of experts
	FeatureTeacher   Feature = "teacher"   // targets of a teacher
	FeatureTrace     Feature = "trace"     // a routing trace
)

// Features lists the features there are.
func Features() []Feature {
	return []Feature{FeatureLayers, FeatureLogits, FeatureProbes, FeatureTokens, FeatureDecode,
		FeatureAttention, FeatureRoutes, FeatureTeacher, FeatureTrace}
}

// featureOfCheck says which feature a check of the candidate is about.
var featureOfCheck = map[string]Feature{
	"ResidualShape": FeatureLayers, "LastTokenEmbed": FeatureLayers, "ResidualCandidate": FeatureLayers, "LocalError": FeatureLayers,
	"LogitRowContract": FeatureLogits, "LogitCandidate": FeatureLogits, "ResidualToLogits": FeatureLogits,
	"ProbeCandidate": FeatureProbes, "PromptTokens": FeatureTokens, "StopRule": FeatureDecode,
	"TensorInventory": FeatureAttention, "KernelBoundNRMSE": FeatureAttention, "RouteCandidate": FeatureRoutes,
	"PlanReceipts": FeatureTeacher, "PrefixHash": FeatureTeacher, "PointKinds": FeatureTeacher,
	"TargetFraming": FeatureTeacher, "TargetFinite": FeatureTeacher, "GreedyTrajectory": FeatureTeacher,
	"TraceShape": FeatureTrace, "ContentIdentity": FeatureTrace, "RouteStatistics": FeatureTrace, "TraceHashes": FeatureTrace,
}

// ParseFeatures reads names of features. The error lists the names there are.
func ParseFeatures(names []string) ([]Feature, error) {
	var out []Feature
	for i, n := range names {
		f := Feature(n)
		if !slices.Contains(Features(), f) {
			return nil, fmt.Errorf("conformance: features[%d]: got %q, want one of %s", i, n, listed(Features()))
		}
		if slices.Contains(out, f) {
			return nil, fmt.Errorf("conformance: features[%d]: got %q twice, want each once", i, n)
		}
		out = append(out, f)
	}
	return out, nil
}

func listed[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

// claims is what the candidate says it offers: Config.Features, else what it declares
// itself. None is no claim, and then every check applies. A name that the candidate
// made up is its fault, a *engine.MalformedError.
func (c *Config) claims(declared engine.Info) ([]Feature, error) {
	if len(c.Features) > 0 {
		names := make([]string, len(c.Features))
		for i, f := range c.Features {
			names[i] = string(f)
		}
		fs, err := ParseFeatures(names)
		if err != nil {
			return nil, fmt.Errorf("%w (Config.Features)", err)
		}
		return fs, nil
	}
	fs, err := ParseFeatures(declared.Features)
	if err != nil {
		return nil, &engine.MalformedError{Err: err}
	}
	return fs, nil
}

// featuresID is the ID of the result on the candidate's claims. It is no check of the
// registry: it looks at the results of the others.
const featuresID = "Features"

func aboutFeatures() CheckInfo {
	return CheckInfo{ID: featuresID, Level: Core, Sides: []Side{SideCandidate}, Controls: []string{},
		Rule:    "what a candidate claims to offer is judged on at least one case",
		Catches: []string{"a feature that a build lost and its description still has", "a dump that is written to another place than the one that is read"}}
}

// holdToClaims fails a candidate that claims what it doesn't show, and takes the
// weight from Extended checks of what it doesn't claim. Core checks keep theirs.
func (r *Report) holdToClaims(checks []*Check) {
	if len(r.Features) == 0 {
		return
	}
	features := map[string]Feature{}
	for _, c := range checks {
		features[c.ID] = c.Feature
	}
	for i := range r.Checks {
		c := &r.Checks[i]
		f := features[c.ID]
		if c.Side != SideCandidate || c.Level != Extended || f == "" || slices.Contains(r.Features, f) {
			continue
		}
		c.Level = Provisional
		c.Reason = strings.TrimPrefix(fmt.Sprintf("%s; the candidate doesn't claim the feature %s: reported only", c.Reason, f), "; ")
	}
	r.About = append(r.About, aboutFeatures())
	r.Checks = append(r.Checks, r.claimsShown(features))
}

// claimsShown looks for each claim among the results. A claim isn't shown where the
// candidate offered nothing in any case; where the run has nothing to ask it by, no case
// with power or no inputs, nothing is said against it. In a shard another shard may
// show it: merging decides.
func (r *Report) claimsShown(features map[string]Feature) Result {
	out := Result{ID: featuresID, Case: "*", Side: SideCandidate, Level: Core, Status: Pass}
	var open []Feature
	for _, f := range r.Features {
		shown, refused := 0, ""
		for _, c := range r.Checks {
			if c.Side != SideCandidate || features[c.ID] != f {
				continue
			}
			switch {
			case c.Status.Judged() || c.Status == Error:
				shown++
			case c.Status == Unsupported && !strings.HasPrefix(c.Reason, nothingToHold):
				refused = c.Reason
			}
		}
		switch {
		case shown > 0:
		case refused == "" || r.Shard != nil:
			open = append(open, f)
		default:
			out.Status, out.Rule = Fail, aboutFeatures().Rule
			out.Findings = append(out.Findings, Finding{Metric: fmt.Sprintf("verdicts on the feature %s", f), Got: 0, At: Nowhere,
				Limit: Limit{1, "the candidate's own claim"}, Detail: "claimed and not shown: " + refused})
		}
	}
	if len(open) > 0 {
		r.Notes = append(r.Notes, "claimed, and nothing in this run asks for it: "+listed(open))
		if len(open) == len(r.Features) && out.Status == Pass {
			out = Result{ID: featuresID, Case: "*", Side: SideCandidate, Level: Core, Status: Skip, Reason: "nothing in this run asks for what is claimed"}
		}
	}
	return out
}
