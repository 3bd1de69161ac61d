package trace

import (
	"fmt"
)

// Recorded gives the tensors that a source's trace was made of, as far as they were
// kept; ok is false where they weren't. Indices are those of the document.
type Recorded interface {
	Hidden(stage, condition, scope int) (h Hidden, ok bool)
	Routes(gate, condition, scope int) (r Routes, ok bool)
}

// CheckHashes is the check TraceHashes: the hashes of recorded tensors are those of
// the trace, bit for bit. compared is how many there were.
func CheckHashes(d *Document, source int, rec Recorded) (problems []Problem, compared int) {
	c := &checker{}
	d.recorded(source, rec, func(at string, got HiddenStats, h Hidden) {
		c.text(at, "tensor_sha256", got.SHA256, TensorHash(h.DType, h.Rows))
	}, func(at string, got RouteDistribution, r Routes) {
		c.text(at, "ordered_route_sha256", got.OrderedSHA256, RoutesHash(r.IDs))
		c.text(at, "route_weight_sha256", got.WeightSHA256, TensorHash(r.DType, r.Weights))
	})
	return c.problems, c.looked
}

// CheckRecorded is the half of the check RouteStatistics that needs tensors: every
// figure of the trace is recomputed from them, and every edge whose two ends are
// there. compared is how many figures there were.
func CheckRecorded(d *Document, source int, rec Recorded, r Rounding) (problems []Problem, compared int) {
	c := &checker{}
	d.recorded(source, rec, func(at string, got HiddenStats, h Hidden) {
		want, err := DescribeHidden(at, h)
		if err != nil {
			c.want(at, "hidden rows", err, "sound ones", false)
			return
		}
		c.want(at, "shape", got.Shape, want.Shape, fmt.Sprint(got.Shape) == fmt.Sprint(want.Shape))
		c.text(at, "dtype", got.DType, want.DType)
		c.near(at, "mean", got.Mean, want.Mean, r.Single)
		c.near(at, "std", got.Std, want.Std, r.Single)
		c.near(at, "rms", got.RMS, want.RMS, r.Single)
		c.near(at, "max_abs", got.MaxAbs, want.MaxAbs, 0)
	}, func(at string, got RouteDistribution, routes Routes) {
		want, err := DescribeRoutes(at, routes, d.Trace.Experts)
		if err != nil {
			c.want(at, "routes", err, "sound ones", false)
			return
		}
		c.distribution(at, got, want, r)
	})
	p := d.Plan()
	t := &d.Traced[source]
	s := d.Shape()
	for e, edge := range p.Edges {
		l, right := p.ends(edge)
		for k := range t.Stages {
			a, okA := rec.Hidden(k, l, scopeContent)
			b, okB := rec.Hidden(k, right, scopeContent)
			if !okA || !okB {
				continue
			}
			at := fmt.Sprintf("sources[%s].hidden_stages.%s.target_comparisons.%s", t.ID, s.StageName(k), edge.Name)
			want, err := CompareHidden(at, a, b)
			if err != nil {
				c.want(at, "hidden rows", err, "sound ones", false)
				continue
			}
			got := t.Stages[k].Edges[e]
			c.equal(at, "tokens", int64(got.Tokens), int64(want.Tokens))
			c.equal(at, "exact_hidden_rows", int64(got.ExactRows), int64(want.ExactRows))
			c.near(at, "mean_cosine_similarity", got.MeanCosine, want.MeanCosine, r.Single)
			c.near(at, "min_cosine_similarity", got.MinCosine, want.MinCosine, r.Single)
			c.near(at, "mean_relative_l2", got.MeanRelativeL2, want.MeanRelativeL2, r.Single)
			c.near(at, "max_abs_delta", got.MaxAbsDelta, want.MaxAbsDelta, 0)
		}
		for k := range t.Gates {
			a, okA := rec.Routes(k, l, scopeContent)
			b, okB := rec.Routes(k, right, scopeContent)
			if !okA || !okB {
				continue
			}
			at := fmt.Sprintf("sources[%s].router_layers.%s.target_comparisons.%s", t.ID, LayerName(t.Gates[k].Layer), edge.Name)
			want, err := CompareRoutes(at, a, b, d.Trace.Experts)
			if err != nil {
				c.want(at, "routes", err, "sound ones", false)
				continue
			}
			got := t.Gates[k].Edges[e]
			c.equal(at, "tokens", int64(got.Tokens), int64(want.Tokens))
			c.equal(at, "ordered_topk_exact_tokens", int64(got.OrderedExact), int64(want.OrderedExact))
			c.equal(at, "set_exact_tokens", int64(got.SetExact), int64(want.SetExact))
			c.near(at, "mean_set_jaccard", got.MeanJaccard, want.MeanJaccard, r.Double)
			c.near(at, "mean_token_weighted_tv", got.MeanWeightedTV, want.MeanWeightedTV, r.Double)
			c.near(at, "aggregate_load_tv", got.LoadTV, want.LoadTV, r.Double)
		}
	}
	return c.problems, c.looked
}

// recorded walks over what was kept of a source.
func (d *Document) recorded(source int, rec Recorded, hidden func(at string, got HiddenStats, h Hidden), routes func(at string, got RouteDistribution, r Routes)) {
	t := &d.Traced[source]
	s := d.Shape()
	for i, condition := range d.Trace.Conditions {
		for scope, name := range Scopes() {
			for k := range t.Stages {
				if h, ok := rec.Hidden(k, i, scope); ok {
					hidden(fmt.Sprintf("sources[%s].hidden_stages.%s.conditions.%s.%s", t.ID, s.StageName(k), condition, name), t.Stages[k].Conditions[i][scope], h)
				}
			}
			for k := range t.Gates {
				if r, ok := rec.Routes(k, i, scope); ok {
					routes(fmt.Sprintf("sources[%s].router_layers.%s.conditions.%s.%s", t.ID, LayerName(t.Gates[k].Layer), condition, name), t.Gates[k].Conditions[i][scope], r)
				}
			}
		}
	}
}
