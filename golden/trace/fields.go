package trace

import (
	"fmt"
	"slices"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// The members of every object of a document, in its order. Slices have their
// lengths from the contract: a reader makes them, a writer was given them.

func (h *Head) before(o *object) {
	version := SchemaVersion
	o.count("schema_version", &version)
	o.str("captured_at", &h.CapturedAt)
	o.inner("model", h.Model.fields)
	o.inner("tokenizer_contract", h.Tokenizer.fields)
	o.inner("source_contract", h.Sources.fields)
	o.inner("trace_contract", h.Trace.fields)
	o.inner("execution", h.Execution.fields)
}

func (d *Document) fields(o *object) {
	d.before(o)
	if o.failed() {
		return
	}
	l := newLayout(d.Trace)
	o.list("sources", len(d.Traced), func(n int) { resize(&d.Traced, n) }, func(i int, o *object) { d.Traced[i].fields(o, l) })
	o.inner("summary", func(o *object) { d.Summary.fields(o, l) })
	o.strs("claim_boundary", &d.ClaimBoundary)
}

func (m *Model) fields(o *object) {
	o.str("repo", &m.Repo)
	o.str("revision", &m.Revision)
	o.str("checkpoint_identity", &m.CheckpointIdentity)
	o.str("architecture", &m.Architecture)
	o.str("dtype", &m.DType)
	o.free("download_revision_contract", &m.RevisionContract)
	o.inner("files", func(o *object) {
		if o.reading {
			m.Files = make([]FileIdentity, 0, o.in.Len())
			for _, f := range o.in.Members() {
				m.Files = append(m.Files, FileIdentity{Name: f.Key})
			}
		}
		for i := range m.Files {
			f := &m.Files[i]
			o.inner(f.Name, func(o *object) {
				o.count64("bytes", &f.Bytes)
				o.hash("sha256", &f.SHA256)
			})
		}
	})
}

func (t *TokenizerContract) fields(o *object) {
	o.count("length", &t.Length)
	o.count("vocab_size", &t.VocabSize)
	o.ints("all_special_ids", &t.SpecialIDs)
	var pad *int64
	if t.Pad != nil {
		p := int64(*t.Pad)
		pad = &p
	}
	o.optionalCount("pad_token_id", &pad)
	if t.Pad = nil; pad != nil {
		p := int(*pad)
		t.Pad = &p
	}
	o.inner("conditions", func(o *object) {
		if o.reading {
			t.Conditions = make([]Condition, 0, o.in.Len())
			for _, c := range o.in.Members() {
				t.Conditions = append(t.Conditions, Condition{Name: c.Key})
			}
		}
		for i := range t.Conditions {
			c := &t.Conditions[i]
			o.inner(c.Name, func(o *object) {
				o.boolean("system", &c.System)
				o.str("boundary_token", &c.Boundary)
			})
		}
	})
}

func (s *SourceContract) fields(o *object) {
	own := []string{"domains", "per_domain", "sources", "full_source_text_used", "target_scope"}
	if !o.reading {
		for _, m := range s.Reference {
			if !slices.Contains(own, m.Key) {
				o.out = append(o.out, m)
			}
		}
	} else {
		s.Reference = nil
		for _, m := range o.in.Members() {
			if !slices.Contains(own, m.Key) {
				s.Reference = append(s.Reference, m)
				o.seen = append(o.seen, m.Key)
			}
		}
	}
	o.strs("domains", &s.Domains)
	o.count("per_domain", &s.PerDomain)
	o.count("sources", &s.Sources)
	o.boolean("full_source_text_used", &s.FullText)
	o.str("target_scope", &s.TargetScope)
}

func (t *Contract) fields(o *object) {
	o.strs("conditions", &t.Conditions)
	o.strs("scopes", &t.Scopes)
	o.inner("edge_pairs", func(o *object) {
		if o.reading {
			t.Edges = make([]Edge, 0, o.in.Len())
			for _, e := range o.in.Members() {
				t.Edges = append(t.Edges, Edge{Name: e.Key})
			}
		}
		for i := range t.Edges {
			e := &t.Edges[i]
			pair := []string{e.Left, e.Right}
			o.strs(e.Name, &pair)
			if o.reading && len(pair) != 2 {
				o.bad(o.at(e.Name), fmt.Sprintf("%d conditions", len(pair)), "two")
				return
			}
			if o.reading {
				e.Left, e.Right = pair[0], pair[1]
			}
		}
	})
	o.count("decoder_layers", &t.Layers)
	o.ints("moe_gate_layers", &t.Gates)
	o.count("experts", &t.Experts)
	o.count("top_k", &t.TopK)
	o.boolean("use_cache", &t.UseCache)
	o.boolean("raw_hidden_tensors_saved", &t.RawHidden)
	o.boolean("raw_route_ids_saved", &t.RawRoutes)
	o.boolean("load_vectors_saved", &t.LoadVectors)
	o.boolean("hashes_cover_exact_bfloat16_hidden_and_route_values", &t.HashesExact)
	if o.reading && !o.failed() {
		t.check(o)
	}
}

// check refuses a contract that the rest of a document can't follow.
func (t *Contract) check(o *object) {
	if !slices.Equal(t.Scopes, Scopes()) {
		o.bad(o.at("scopes"), fmt.Sprint(t.Scopes), fmt.Sprint(Scopes()))
	}
	p := Plan{Edges: t.Edges}
	for _, c := range t.Conditions {
		p.Conditions = append(p.Conditions, Condition{Name: c, Boundary: "any"})
	}
	if err := p.Validate(); err != nil {
		o.bad(o.at("conditions and edge_pairs"), err.Error(), "a plan")
	}
	if err := (Shape{t.Layers, t.Gates, 1, t.Experts, t.TopK}).Validate(); err != nil {
		o.bad(o.path, err.Error(), "a shape")
	}
}

func (e *Execution) fields(o *object) {
	o.optional("python", &e.Python)
	o.optional("torch", &e.Torch)
	o.optional("transformers", &e.Transformers)
	o.optional("accelerate", &e.Accelerate)
	o.optional("safetensors", &e.Safetensors)
	o.str("platform", &e.Platform)
	o.optional("gpu", &e.GPU)
	o.optional("gpu_memory_limit", &e.GPUMemoryLimit)
	o.optional("cpu_memory_limit", &e.CPUMemoryLimit)
	o.optional("pytorch_cuda_alloc_conf", &e.CudaAllocConf)
	o.str("input_device", &e.InputDevice)
	o.free("device_map", &e.DeviceMap)
	o.number("load_seconds", &e.LoadSeconds)
	o.number("forward_seconds", &e.ForwardSeconds)
	o.optionalCount("load_peak_cuda_memory_allocated_bytes", &e.LoadPeak)
	o.optionalCount("peak_cuda_memory_allocated_bytes", &e.Peak)
	o.count64("process_max_rss_kib", &e.MaxRSSKiB)
}

// layout is the names that a document's objects are keyed by.
type layout struct {
	conditions, scopes, edges, stages, gates []string
	layers                                   []int
}

func newLayout(t Contract) layout {
	s := Shape{Layers: t.Layers, Gates: t.Gates}
	l := layout{conditions: t.Conditions, scopes: t.Scopes, stages: s.StageNames(), gates: s.GateNames(), layers: t.Gates}
	for _, e := range t.Edges {
		l.edges = append(l.edges, e.Name)
	}
	return l
}

func (s *SourceTrace) fields(o *object, l layout) {
	o.str("id", &s.ID)
	o.str("domain", &s.Domain)
	o.hash("content_sha256", &s.ContentSHA256)
	o.hash("content_token_ids_sha256", &s.ContentIDsSHA256)
	if o.reading {
		resize(&s.PromptTokens, len(l.conditions))
		resize(&s.BoundaryCrossing, len(l.conditions))
		resize(&s.Stages, len(l.stages))
		resize(&s.Gates, len(l.gates))
	}
	o.named("prompt_tokens_by_condition", l.conditions, func(i int, key string, o *object) { o.count(key, &s.PromptTokens[i]) })
	o.count("batch_prompt_tokens", &s.BatchTokens)
	o.count("content_tokens", &s.ContentTokens)
	o.named("boundary_crossing_tokens_by_condition", l.conditions, func(i int, key string, o *object) { o.count(key, &s.BoundaryCrossing[i]) })
	o.number("forward_seconds", &s.ForwardSeconds)
	o.optionalCount("peak_cuda_memory_allocated_bytes", &s.Peak)
	o.named("hidden_stages", l.stages, func(i int, key string, o *object) {
		st := &s.Stages[i]
		if o.reading {
			st.Conditions, st.Edges = grid[HiddenStats](l), make([]HiddenComparison, len(l.edges))
		}
		o.inner(key, func(o *object) {
			o.named("conditions", l.conditions, func(c int, key string, o *object) {
				o.named(key, l.scopes, func(k int, key string, o *object) { o.inner(key, st.Conditions[c][k].fields) })
			})
			o.named("target_comparisons", l.edges, func(e int, key string, o *object) { o.inner(key, st.Edges[e].fields) })
		})
	})
	o.named("router_layers", l.gates, func(i int, key string, o *object) {
		g := &s.Gates[i]
		if o.reading {
			g.Conditions, g.Edges = grid[RouteDistribution](l), make([]RouteComparison, len(l.edges))
		}
		o.inner(key, func(o *object) {
			o.count("layer", &g.Layer)
			if o.reading && !o.failed() && g.Layer != l.layers[i] {
				o.bad(o.at("layer"), fmt.Sprint(g.Layer), fmt.Sprint(l.layers[i]))
			}
			o.named("conditions", l.conditions, func(c int, key string, o *object) {
				o.named(key, l.scopes, func(k int, key string, o *object) { o.inner(key, g.Conditions[c][k].fields) })
			})
			o.named("target_comparisons", l.edges, func(e int, key string, o *object) { o.inner(key, g.Edges[e].fields) })
		})
	})
}

// grid is a row of scopes for each condition.
func grid[T any](l layout) [][]T {
	all := make([][]T, len(l.conditions))
	for i := range all {
		all[i] = make([]T, len(l.scopes))
	}
	return all
}

func (s *HiddenStats) fields(o *object) {
	o.ints("shape", &s.Shape)
	o.str("dtype", &s.DType)
	o.hash("tensor_sha256", &s.SHA256)
	o.number("mean", &s.Mean)
	o.number("std", &s.Std)
	o.number("rms", &s.RMS)
	o.number("max_abs", &s.MaxAbs)
}

func (c *HiddenComparison) fields(o *object) {
	o.count("tokens", &c.Tokens)
	o.count("exact_hidden_rows", &c.ExactRows)
	o.number("mean_cosine_similarity", &c.MeanCosine)
	o.number("min_cosine_similarity", &c.MinCosine)
	o.number("mean_relative_l2", &c.MeanRelativeL2)
	o.number("max_abs_delta", &c.MaxAbsDelta)
}

func (d *RouteDistribution) fields(o *object) {
	o.count("tokens", &d.Tokens)
	o.count("top_k", &d.TopK)
	o.count64("decisions", &d.Decisions)
	o.hash("ordered_route_sha256", &d.OrderedSHA256)
	o.hash("route_weight_sha256", &d.WeightSHA256)
	o.ints64("loads", &d.Loads)
	o.numbers("weighted_loads", &d.WeightedLoads)
	o.count("unique_experts", &d.UniqueExperts)
	o.number("load_cv", &d.LoadCV)
	o.number("normalized_load_entropy", &d.Entropy)
	o.number("max_load_share", &d.MaxShare)
}

func (c *RouteComparison) fields(o *object) {
	o.count("tokens", &c.Tokens)
	o.count("ordered_topk_exact_tokens", &c.OrderedExact)
	o.count("set_exact_tokens", &c.SetExact)
	o.number("mean_set_jaccard", &c.MeanJaccard)
	o.number("mean_token_weighted_tv", &c.MeanWeightedTV)
	o.number("aggregate_load_tv", &c.LoadTV)
}

func (s *Summary) fields(o *object, l layout) {
	o.count("sources", &s.Sources)
	o.count("conditions_per_source", &s.Conditions)
	o.count("decoder_layers_executed", &s.Layers)
	o.count("moe_gates_executed", &s.Gates)
	o.count("hidden_stages", &s.Stages)
	o.count64("target_content_tokens_per_condition", &s.ContentTokens)
	o.count64("target_route_decisions", &s.RouteDecisions)
	if o.reading {
		s.Hidden, s.Routes = make([][]HiddenSummary, len(l.stages)), make([][]RouteSummary, len(l.gates))
	}
	o.named("hidden", l.stages, func(i int, key string, o *object) {
		if o.reading {
			s.Hidden[i] = make([]HiddenSummary, len(l.edges))
		}
		o.named(key, l.edges, func(e int, key string, o *object) { o.inner(key, s.Hidden[i][e].fields) })
	})
	o.named("routes", l.gates, func(i int, key string, o *object) {
		if o.reading {
			s.Routes[i] = make([]RouteSummary, len(l.edges))
		}
		o.named(key, l.edges, func(e int, key string, o *object) { o.inner(key, s.Routes[i][e].fields) })
	})
}

func (s *HiddenSummary) fields(o *object) {
	o.count("sources", &s.Sources)
	o.count64("tokens", &s.Tokens)
	o.count64("exact_hidden_rows", &s.ExactRows)
	o.number("token_weighted_mean_cosine_similarity", &s.MeanCosine)
	o.number("source_mean_relative_l2", &s.MeanRelativeL2)
	o.number("max_abs_delta", &s.MaxAbsDelta)
}

func (s *RouteSummary) fields(o *object) {
	o.count("sources", &s.Sources)
	o.count64("tokens", &s.Tokens)
	o.count64("ordered_topk_exact_tokens", &s.OrderedExact)
	o.count64("set_exact_tokens", &s.SetExact)
	o.number("token_weighted_mean_set_jaccard", &s.MeanJaccard)
	o.number("source_mean_token_weighted_tv", &s.MeanWeightedTV)
	o.number("source_mean_aggregate_load_tv", &s.LoadTV)
}

// value is a document as JSON.
func (d *Document) value() canonical.Value { return encode(d.fields) }
