package trace

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// checker collects problems, the first few of each kind, and counts what it looked
// at.
type checker struct {
	problems []Problem
	kinds    map[string]int
	looked   int
}

// perKind bounds the problems of one kind.
const perKind = 5

func (c *checker) want(at, what string, got, want any, ok bool) {
	c.looked++
	if ok {
		return
	}
	if c.kinds == nil {
		c.kinds = map[string]int{}
	}
	if c.kinds[what]++; c.kinds[what] <= perKind {
		c.problems = append(c.problems, Problem{at, what, fmt.Sprint(got), fmt.Sprint(want)})
	}
}

func (c *checker) equal(at, what string, got, want int64) { c.want(at, what, got, want, got == want) }

func (c *checker) text(at, what, got, want string) { c.want(at, what, got, want, got == want) }

// near compares a figure with the one computed here.
func (c *checker) near(at, what string, got, want, rounding float64) {
	limit := rounding * math.Max(1, math.Abs(want))
	c.want(at, what, got, fmt.Sprintf("%v within %.2g", want, limit), math.Abs(got-want) <= limit)
}

// all walks over the places of a document.
func (d *Document) all(stage func(at string, i int, t *SourceTrace, s *StageTrace), gate func(at string, i int, t *SourceTrace, g *GateTrace)) {
	s := Shape{Layers: d.Trace.Layers}
	for i := range d.Traced {
		t := &d.Traced[i]
		for k := range t.Stages {
			if stage != nil {
				stage(fmt.Sprintf("sources[%s].hidden_stages.%s", t.ID, s.StageName(k)), k, t, &t.Stages[k])
			}
		}
		for k := range t.Gates {
			if gate != nil {
				gate(fmt.Sprintf("sources[%s].router_layers.%s", t.ID, LayerName(t.Gates[k].Layer)), k, t, &t.Gates[k])
			}
		}
	}
}

// CheckShape is the check TraceShape: the document has the plan's conditions, edges
// and scopes, a stage for each layer, the embedding and the final norm, and every
// gate of the shape, all of them with as many tokens, columns, experts and decisions
// as they must have.
func CheckShape(d *Document, p Plan, s Shape) (problems []Problem, looked int) {
	c := &checker{}
	c.want("trace_contract.conditions", "conditions", d.Trace.Conditions, p.Names(), slices.Equal(d.Trace.Conditions, p.Names()))
	c.want("tokenizer_contract.conditions", "conditions", d.Tokenizer.Conditions, p.Conditions, slices.Equal(d.Tokenizer.Conditions, p.Conditions))
	c.want("trace_contract.edge_pairs", "edges", d.Trace.Edges, p.Edges, slices.Equal(d.Trace.Edges, p.Edges))
	c.want("trace_contract.scopes", "scopes", d.Trace.Scopes, Scopes(), slices.Equal(d.Trace.Scopes, Scopes()))
	c.equal("trace_contract.decoder_layers", "layers", int64(d.Trace.Layers), int64(s.Layers))
	c.want("trace_contract.moe_gate_layers", "gates", d.Trace.Gates, s.Gates, slices.Equal(d.Trace.Gates, s.Gates))
	c.equal("trace_contract.experts", "experts", int64(d.Trace.Experts), int64(s.Experts))
	c.equal("trace_contract.top_k", "top_k", int64(d.Trace.TopK), int64(s.TopK))
	c.want("sources", "sources", len(d.Traced), "at least one", len(d.Traced) > 0)
	c.equal("source_contract.sources", "sources", int64(d.Sources.Sources), int64(len(d.Traced)))
	ids := map[string]bool{}
	for i := range d.Traced {
		t := &d.Traced[i]
		at := fmt.Sprintf("sources[%s]", t.ID)
		c.want(at, "id", "a second time", "each source once", !ids[t.ID])
		ids[t.ID] = true
		c.equal(at+".hidden_stages", "stages", int64(len(t.Stages)), int64(s.Stages()))
		c.equal(at+".router_layers", "gates", int64(len(t.Gates)), int64(len(s.Gates)))
		c.equal(at+".prompt_tokens_by_condition", "conditions", int64(len(t.PromptTokens)), int64(len(p.Conditions)))
		if len(t.PromptTokens) > 0 {
			c.equal(at+".batch_prompt_tokens", "tokens of the batch", int64(t.BatchTokens), int64(slices.Max(t.PromptTokens)))
		}
		c.want(at+".content_tokens", "content tokens", t.ContentTokens, "at least one, and no more than a prompt has",
			t.ContentTokens > 0 && len(t.PromptTokens) > 0 && t.ContentTokens <= slices.Min(t.PromptTokens))
		for k, g := range t.Gates {
			if k < len(s.Gates) {
				c.equal(fmt.Sprintf("%s.router_layers[%d]", at, k), "layer", int64(g.Layer), int64(s.Gates[k]))
			}
		}
	}
	// The loops below rely on what was looked at above.
	if len(c.problems) > 0 {
		return c.problems, c.looked
	}
	if err := d.lengths(); err != nil {
		return []Problem{{What: "lists", Got: err.Error(), Want: "those of the contract"}}, c.looked
	}
	dtype := ""
	d.all(func(at string, _ int, t *SourceTrace, st *StageTrace) {
		for i, row := range st.Conditions {
			for k, h := range row {
				at := at + ".conditions." + p.Conditions[i].Name + "." + Scopes()[k]
				c.want(at, "shape", h.Shape, []int{tokensOf(t, i, k), s.Hidden}, slices.Equal(h.Shape, []int{tokensOf(t, i, k), s.Hidden}))
				if dtype == "" {
					dtype = h.DType
				}
				c.text(at, "dtype", h.DType, dtype)
			}
		}
		for e, h := range st.Edges {
			c.equal(at+".target_comparisons."+p.Edges[e].Name, "tokens", int64(h.Tokens), int64(t.ContentTokens))
		}
	}, func(at string, _ int, t *SourceTrace, g *GateTrace) {
		for i, row := range g.Conditions {
			for k, r := range row {
				at := at + ".conditions." + p.Conditions[i].Name + "." + Scopes()[k]
				c.equal(at, "tokens", int64(r.Tokens), int64(tokensOf(t, i, k)))
				c.equal(at, "top_k", int64(r.TopK), int64(s.TopK))
				c.equal(at, "decisions", r.Decisions, int64(r.Tokens)*int64(r.TopK))
			}
		}
		for e, r := range g.Edges {
			c.equal(at+".target_comparisons."+p.Edges[e].Name, "tokens", int64(r.Tokens), int64(t.ContentTokens))
		}
	})
	return c.problems, c.looked
}

// tokensOf is how many tokens a scope has under a condition.
func tokensOf(t *SourceTrace, condition, scope int) int {
	if scope == scopeContent {
		return t.ContentTokens
	}
	return t.PromptTokens[condition]
}

// Rounding is how far a figure may be from the one computed here, as a multiple of
// max(1, |figure|).
type Rounding struct {
	// Single is for what the script reduces in float32, Double for float64.
	Single, Double float64
}

// ScriptRounding is for documents that v2_lite_trace.py wrote: PyTorch adds float32
// values in an order of its own, in which a few roundings of 2^-24 remain, and float64
// ones likewise.
var ScriptRounding = Rounding{Single: 3e-7, Double: 0x1p-40}

// CheckStatistics is the half of the check RouteStatistics that needs a document
// only: what follows from the loads, the summary and the ranges of all figures are
// recomputed. It expects a document that [CheckShape] found sound.
func CheckStatistics(d *Document, r Rounding) (problems []Problem, looked int) {
	c := &checker{}
	p, s := d.Plan(), d.Shape()
	d.all(func(at string, _ int, t *SourceTrace, st *StageTrace) {
		for i, row := range st.Conditions {
			for k, h := range row {
				c.hidden(at+".conditions."+d.Trace.Conditions[i]+"."+Scopes()[k], h, r)
			}
		}
		for e, h := range st.Edges {
			at := at + ".target_comparisons." + d.Trace.Edges[e].Name
			c.want(at, "exact_hidden_rows", h.ExactRows, fmt.Sprintf("at most %d", h.Tokens), h.ExactRows <= h.Tokens)
			c.want(at, "cosines", fmt.Sprint(h.MinCosine, h.MeanCosine), "-1 <= min <= mean <= 1",
				-1 <= h.MinCosine && h.MinCosine <= h.MeanCosine+r.Single && h.MeanCosine <= 1+r.Single)
			c.want(at, "mean_relative_l2 and max_abs_delta", fmt.Sprint(h.MeanRelativeL2, h.MaxAbsDelta), "0 for equal rows, above otherwise",
				h.MeanRelativeL2 >= 0 && h.MaxAbsDelta >= 0 && (h.ExactRows < h.Tokens) == (h.MaxAbsDelta > 0))
		}
	}, func(at string, _ int, t *SourceTrace, g *GateTrace) {
		for i, row := range g.Conditions {
			for k := range row {
				c.loads(at+".conditions."+d.Trace.Conditions[i]+"."+Scopes()[k], row[k], r)
			}
			content, full := row[scopeContent], row[scopeFull]
			for e := range content.Loads {
				c.want(at+".conditions."+d.Trace.Conditions[i], fmt.Sprintf("content load of expert %d", e), content.Loads[e],
					fmt.Sprintf("at most %d, that of the full input", full.Loads[e]), content.Loads[e] <= full.Loads[e])
			}
		}
		for e, edge := range p.Edges {
			l, right := p.ends(edge)
			got := g.Edges[e]
			at := at + ".target_comparisons." + edge.Name
			c.near(at, "aggregate_load_tv", got.LoadTV, metric.LoadTV(g.Conditions[l][scopeContent].Loads, g.Conditions[right][scopeContent].Loads), r.Double)
			c.want(at, "exact tokens", fmt.Sprint(got.OrderedExact, got.SetExact), fmt.Sprintf("ordered <= sets <= %d", got.Tokens),
				got.OrderedExact <= got.SetExact && got.SetExact <= got.Tokens)
			// Equal sets have 1, others at most (k-1)/(k+1).
			most := float64(got.SetExact) + float64(got.Tokens-got.SetExact)*float64(s.TopK-1)/float64(s.TopK+1)
			least := float64(got.SetExact)
			j := got.MeanJaccard * float64(got.Tokens)
			slack := math.Max(r.Double, 0x1p-48) * float64(got.Tokens)
			c.want(at, "mean_set_jaccard", got.MeanJaccard, "what so many equal sets allow", least-slack <= j && j <= most+slack)
			c.want(at, "mean_token_weighted_tv", got.MeanWeightedTV, "0 or more", got.MeanWeightedTV >= 0)
		}
	})
	c.summary(d, p, s, r)
	return c.problems, c.looked
}

// hidden checks that the figures of rows go together.
func (c *checker) hidden(at string, h HiddenStats, r Rounding) {
	c.want(at, "max_abs", h.MaxAbs, "at least rms", h.MaxAbs >= h.RMS-r.Single*math.Max(1, h.RMS))
	c.near(at, "rms", h.RMS, math.Hypot(h.Mean, h.Std), 4*math.Max(r.Single, 0x1p-24))
}

// loads recomputes what follows from the loads.
func (c *checker) loads(at string, got RouteDistribution, r Rounding) {
	want := got
	want.ofLoads()
	c.distribution(at, got, want, r)
	c.equal(at, "decisions", got.Decisions, int64(got.Tokens)*int64(got.TopK))
	for e, n := range got.Loads {
		c.want(at, fmt.Sprintf("load of expert %d", e), n, fmt.Sprintf("0 to %d, one decision per token", got.Tokens), 0 <= n && n <= int64(got.Tokens))
		c.want(at, fmt.Sprintf("weighted load of expert %d", e), got.WeightedLoads[e], "0 without a decision", n > 0 || got.WeightedLoads[e] == 0)
	}
}

// distribution compares all figures but the hashes.
func (c *checker) distribution(at string, got, want RouteDistribution, r Rounding) {
	c.equal(at, "tokens", int64(got.Tokens), int64(want.Tokens))
	c.equal(at, "top_k", int64(got.TopK), int64(want.TopK))
	c.equal(at, "decisions", got.Decisions, want.Decisions)
	c.want(at, "loads", got.Loads, want.Loads, slices.Equal(got.Loads, want.Loads))
	for e, w := range want.WeightedLoads {
		if e < len(got.WeightedLoads) {
			c.near(at, fmt.Sprintf("weighted load of expert %d", e), got.WeightedLoads[e], w, r.Double)
		}
	}
	c.equal(at, "unique_experts", int64(got.UniqueExperts), int64(want.UniqueExperts))
	c.near(at, "load_cv", got.LoadCV, want.LoadCV, r.Double)
	c.near(at, "normalized_load_entropy", got.Entropy, want.Entropy, r.Double)
	c.near(at, "max_load_share", got.MaxShare, want.MaxShare, r.Double)
}

// summary recomputes the summary from the sources.
func (c *checker) summary(d *Document, p Plan, s Shape, r Rounding) {
	z := NewSummariser(p, s)
	for i := range d.Traced {
		z.Add(&d.Traced[i])
	}
	want, err := z.Summary()
	if err != nil {
		c.want("summary", "sources", "none", "at least one", false)
		return
	}
	got := d.Summary
	for _, n := range []struct {
		what      string
		got, want int64
	}{
		{"sources", int64(got.Sources), int64(want.Sources)}, {"conditions_per_source", int64(got.Conditions), int64(want.Conditions)},
		{"decoder_layers_executed", int64(got.Layers), int64(want.Layers)}, {"moe_gates_executed", int64(got.Gates), int64(want.Gates)},
		{"hidden_stages", int64(got.Stages), int64(want.Stages)}, {"target_content_tokens_per_condition", got.ContentTokens, want.ContentTokens},
		{"target_route_decisions", got.RouteDecisions, want.RouteDecisions},
	} {
		c.equal("summary", n.what, n.got, n.want)
	}
	for i, row := range want.Hidden {
		for e, w := range row {
			g, at := got.Hidden[i][e], fmt.Sprintf("summary.hidden.%s.%s", s.StageName(i), p.Edges[e].Name)
			c.want(at, "counts", fmt.Sprint(g.Sources, g.Tokens, g.ExactRows), fmt.Sprint(w.Sources, w.Tokens, w.ExactRows),
				g.Sources == w.Sources && g.Tokens == w.Tokens && g.ExactRows == w.ExactRows)
			c.near(at, "token_weighted_mean_cosine_similarity", g.MeanCosine, w.MeanCosine, r.Double)
			c.near(at, "source_mean_relative_l2", g.MeanRelativeL2, w.MeanRelativeL2, r.Double)
			c.near(at, "max_abs_delta", g.MaxAbsDelta, w.MaxAbsDelta, 0)
		}
	}
	for i, row := range want.Routes {
		for e, w := range row {
			g, at := got.Routes[i][e], fmt.Sprintf("summary.routes.%s.%s", LayerName(s.Gates[i]), p.Edges[e].Name)
			c.want(at, "counts", fmt.Sprint(g.Sources, g.Tokens, g.OrderedExact, g.SetExact), fmt.Sprint(w.Sources, w.Tokens, w.OrderedExact, w.SetExact),
				g.Sources == w.Sources && g.Tokens == w.Tokens && g.OrderedExact == w.OrderedExact && g.SetExact == w.SetExact)
			c.near(at, "token_weighted_mean_set_jaccard", g.MeanJaccard, w.MeanJaccard, r.Double)
			c.near(at, "source_mean_token_weighted_tv", g.MeanWeightedTV, w.MeanWeightedTV, r.Double)
			c.near(at, "source_mean_aggregate_load_tv", g.LoadTV, w.LoadTV, r.Double)
		}
	}
}
