package page

import (
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// A check may hold ratios to less than the bounds of DepthBounds: to what the other
// layers leave. Which limit it applied is known where something was over it.

// mediansMetric ends the metric of a finding whose figure is a median ratio.
const mediansMetric = "over the yardstick's, median over the cases"

// appliedToMedians is the lowest limit that a check held medians to; nil where no finding
// says it.
func appliedToMedians(r *conformance.Report, check string) *conformance.Limit {
	var out *conformance.Limit
	for _, res := range r.Checks {
		if res.ID != check || res.Side != conformance.SideCandidate || res.Case != "*" {
			continue
		}
		for _, f := range res.Findings {
			if strings.HasSuffix(f.Metric, mediansMetric) && (out == nil || f.Limit.Value < out.Value) {
				out = &f.Limit
			}
		}
	}
	return out
}

// appliedToCases is the lowest limit, as a ratio, that a check held each case to, for the
// cases where a finding says it. A finding's limit is in its own unit: the share got
// has the ratio that the row says.
func appliedToCases(r *conformance.Report, check string, share func(conformance.DepthRow) (got, ratio float64, ok bool)) map[string]float64 {
	out := map[string]float64{}
	for _, res := range r.Checks {
		if res.ID != check || res.Side != conformance.SideCandidate || res.Case == "*" {
			continue
		}
		rows := r.Cases[res.Case].Depth
		for _, f := range res.Findings {
			if f.At.Row < 0 || f.At.Row >= len(rows) {
				continue
			}
			got, ratio, ok := share(rows[f.At.Row])
			if !ok || got != float64(f.Got) || !(got > 0) {
				continue // of another figure
			}
			limit := float64(f.Limit.Value) / got * ratio
			if before, said := out[res.Case]; limit > 0 && (!said || limit < before) {
				out[res.Case] = limit
			}
		}
	}
	return out
}

func localShare(d conformance.DepthRow) (got, ratio float64, ok bool) {
	if d.Local == nil || d.LocalRatio == nil {
		return 0, 0, false
	}
	return float64(*d.Local), float64(*d.LocalRatio), true
}

func accumulatedShare(d conformance.DepthRow) (got, ratio float64, ok bool) {
	return float64(d.Accumulated), float64(d.AccumulatedRatio), true
}
