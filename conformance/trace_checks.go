package conformance

// traceShape wants all of a trace before any figure of it counts.
func traceShape() *Check {
	return &Check{
		ID: "TraceShape",
		Rule: "a trace has the plan's conditions, edges and both scopes, a stage for the embedding, each layer and the final norm, " +
			"and every gate, each with as many tokens, columns, experts and decisions as it must have",
		Catches: []string{"a gate that was never hooked", "a layer that is traced twice", "an edge whose ends are exchanged", "rows of the padding"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTrace,
		Basis:   "exact: what is there",
		Controls: []Control{
			{Mutant: "trace-gate-missing", Side: SideCandidate, Layer: -1, Kind: KindFormat, Metric: "gates"},
			{Mutant: "trace-stage-missing", Side: SideCandidate, Layer: -1, Kind: KindFormat, Metric: "stages"},
		},
		Across: func(run *RunEvidence) *Outcome {
			return ofTrace(run, KindFormat, func(ev *TraceEvidence) TraceFindings { return ev.Shape })
		},
	}
}

// contentIdentity holds the tokens that conditions are compared on to each other.
func contentIdentity() *Check {
	return &Check{
		ID: "ContentIdentity",
		Rule: "the content tokens of a source have the same ids under every condition, every input starts with its condition's own token, " +
			"and the trace counts exactly these tokens and those that cross the edge of the text, which are left out",
		Catches: []string{"a token that merges with what stands before the text", "a content mask that is off by one", "tokens of another source"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTrace,
		Basis:   "exact: ids and positions",
		Controls: []Control{
			{Mutant: "trace-content-id-changed", Side: SideCandidate, Layer: -1, Kind: KindProvenance},
			{Mutant: "trace-content-shifted", Side: SideCandidate, Layer: -1, Kind: KindProvenance},
			{Mutant: "trace-crossing-counted", Side: SideCandidate, Layer: -1, Kind: KindProvenance},
		},
		Across: func(run *RunEvidence) *Outcome {
			return ofTrace(run, KindProvenance, func(ev *TraceEvidence) TraceFindings { return ev.Content })
		},
	}
}

// routeStatistics computes the figures of a trace again.
func routeStatistics() *Check {
	return &Check{
		ID: "RouteStatistics",
		Rule: "loads, weighted loads, their variation, entropy and largest share, Jaccard and total variation distances, and the statistics of hidden rows " +
			"are those of the recorded routes and rows, and the summary is that of the sources",
		Catches: []string{"loads that count the padding", "a weighted mean where the plain one belongs", "a summary of other sources", "an entropy with another logarithm"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTrace,
		Basis:   "numbers are computed again from the trace and must be the document's",
		Controls: []Control{
			{Mutant: "trace-load-moved", Side: SideCandidate, Layer: -1, Metric: "loads"},
			{Mutant: "trace-weighted-load-moved", Side: SideCandidate, Layer: -1, Metric: "weighted load of expert 2"},
			{Mutant: "trace-summary-of-another", Side: SideCandidate, Layer: -1, Metric: "source_mean_aggregate_load_tv"},
		},
		Across: func(run *RunEvidence) *Outcome {
			return ofTrace(run, "", func(ev *TraceEvidence) TraceFindings { return ev.Statistics })
		},
	}
}

// traceHashes holds the hashes of a trace to the recorded tensors.
func traceHashes() *Check {
	return &Check{
		ID:      "TraceHashes",
		Rule:    "the hashes of hidden rows, ordered routes and weights are those of the recorded tensors, bit for bit",
		Catches: []string{"a tensor that was converted before it was hashed", "another order of bytes, or of experts", "a trace edited by hand"},
		Level:   Extended,
		Sides:   []Side{SideCandidate},
		Needs:   NeedTrace,
		Basis:   "exact: SHA-256",
		Controls: []Control{
			{Mutant: "trace-bit-flipped", Side: SideCandidate, Layer: -1, Kind: KindProvenance, Metric: "tensor_sha256"},
			{Mutant: "trace-routes-reordered", Side: SideCandidate, Layer: -1, Kind: KindProvenance, Metric: "ordered_route_sha256"},
		},
		Across: func(run *RunEvidence) *Outcome {
			return ofTrace(run, KindProvenance, func(ev *TraceEvidence) TraceFindings { return ev.Hashes })
		},
	}
}

// ofTrace is the outcome of what was found. Nothing looked at is no pass.
func ofTrace(run *RunEvidence, kind Kind, of func(*TraceEvidence) TraceFindings) *Outcome {
	if run.Trace == nil {
		return nil
	}
	f := of(run.Trace)
	var o Outcome
	switch {
	case len(f.Problems) > 0:
		var out []Finding
		for _, p := range f.Problems {
			out = append(out, Finding{Metric: p.What, Exact: true, Got: 1, Limit: Limit{0, "problems of the trace"}, At: Nowhere, Detail: p.String()})
		}
		o = fail(kind, out...)
	case f.Looked == 0 && f.Not == "":
		o = skip("the trace has nothing to look at")
	case f.Looked == 0:
		o = skip(f.Not)
	default:
		o = pass()
	}
	return &o
}
