package trace

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// wants checks that there is a problem at a place, and what it says.
func wants(t *testing.T, problems []Problem, at, what string) {
	t.Helper()
	require.NotEmpty(t, problems)
	require.True(t, slices.ContainsFunc(problems, func(p Problem) bool { return p.At == at && p.What == what }), "%v", problems)
}

func TestRecordedDocumentIsSound(t *testing.T) {
	d, _ := small(t)
	problems, looked := CheckShape(d, Standard(), smallShape())
	require.Empty(t, problems)
	require.Greater(t, looked, 500)
	problems, looked = CheckStatistics(d, ScriptRounding)
	require.Empty(t, problems)
	require.Greater(t, looked, 1500)
	for i, s := range smallSources {
		problems, looked = CheckHashes(d, i, kept{source: s})
		require.Empty(t, problems)
		require.Equal(t, 8*2*(5+2*2), looked)
		problems, looked = CheckRecorded(d, i, kept{source: s}, ScriptRounding)
		require.Empty(t, problems)
		require.Greater(t, looked, 1300)
		_, half := CheckHashes(d, i, kept{source: s, onlyEven: true})
		require.Equal(t, 4*2*(5+2*2), half)
	}
}

// TestOwnDocumentRecomputesExactly: what is written here is recomputed to the bit.
func TestOwnDocumentRecomputesExactly(t *testing.T) {
	path := t.TempDir() + "/trace.json"
	writeSmall(t, path)
	d, err := Read(path)
	require.NoError(t, err)
	problems, _ := CheckStatistics(d, Rounding{})
	require.Empty(t, problems)
	for i, s := range smallSources {
		problems, _ = CheckRecorded(d, i, kept{source: s}, Rounding{})
		require.Empty(t, problems)
	}
}

func TestTraceShapeFindsWhatIsMissing(t *testing.T) {
	gate := "sources[plain/one].router_layers"
	for name, c := range map[string]struct {
		change   func(d *Document)
		at, what string
	}{
		"a gate":               {func(d *Document) { d.Traced[0].Gates = d.Traced[0].Gates[:1] }, gate, "gates"},
		"a gate, declared":     {func(d *Document) { d.Trace.Gates = d.Trace.Gates[:1] }, "trace_contract.moe_gate_layers", "gates"},
		"another gate":         {func(d *Document) { d.Traced[0].Gates[1].Layer = 0 }, gate + "[1]", "layer"},
		"a stage":              {func(d *Document) { d.Traced[1].Stages = d.Traced[1].Stages[1:] }, "sources[plain/two].hidden_stages", "stages"},
		"a layer":              {func(d *Document) { d.Trace.Layers-- }, "trace_contract.decoder_layers", "layers"},
		"a condition":          {func(d *Document) { d.Trace.Conditions = d.Trace.Conditions[:7] }, "trace_contract.conditions", "conditions"},
		"a condition's tokens": {func(d *Document) { d.Traced[0].PromptTokens = d.Traced[0].PromptTokens[:7] }, "sources[plain/one].prompt_tokens_by_condition", "conditions"},
		"a condition's rows": {func(d *Document) { d.Traced[0].Stages[2].Conditions = d.Traced[0].Stages[2].Conditions[:7] },
			"", "lists"},
		"an edge":             {func(d *Document) { d.Trace.Edges = d.Trace.Edges[1:] }, "trace_contract.edge_pairs", "edges"},
		"an edge turned":      {func(d *Document) { e := &d.Trace.Edges[0]; e.Left, e.Right = e.Right, e.Left }, "trace_contract.edge_pairs", "edges"},
		"an edge's figures":   {func(d *Document) { d.Traced[0].Gates[0].Edges = nil }, "", "lists"},
		"a scope":             {func(d *Document) { d.Trace.Scopes = d.Trace.Scopes[:1] }, "trace_contract.scopes", "scopes"},
		"a source":            {func(d *Document) { d.Traced = d.Traced[:1] }, "source_contract.sources", "sources"},
		"all sources":         {func(d *Document) { d.Traced = nil }, "sources", "sources"},
		"one of two sources":  {func(d *Document) { d.Traced[1].ID = d.Traced[0].ID }, "sources[plain/one]", "id"},
		"an expert":           {func(d *Document) { d.Trace.Experts-- }, "trace_contract.experts", "experts"},
		"an expert per token": {func(d *Document) { d.Trace.TopK-- }, "trace_contract.top_k", "top_k"},
		"a row":               {func(d *Document) { d.Traced[0].Stages[1].Conditions[0][0].Shape[0]-- }, "sources[plain/one].hidden_stages.layer_00.conditions.s0_eos.target_content", "shape"},
		"a column":            {func(d *Document) { d.Traced[0].Stages[1].Conditions[0][1].Shape[1]-- }, "sources[plain/one].hidden_stages.layer_00.conditions.s0_eos.full_input", "shape"},
		"a bfloat16":          {func(d *Document) { d.Traced[1].Stages[4].Conditions[7][1].DType = "torch.float32" }, "sources[plain/two].hidden_stages.final_norm.conditions.s1_period.full_input", "dtype"},
		"a routed token":      {func(d *Document) { d.Traced[0].Gates[0].Conditions[3][0].Tokens-- }, gate + ".layer_01.conditions.s0_period.target_content", "tokens"},
		"a decision":          {func(d *Document) { d.Traced[0].Gates[0].Conditions[3][0].Decisions-- }, gate + ".layer_01.conditions.s0_period.target_content", "decisions"},
		"a compared token":    {func(d *Document) { d.Traced[0].Gates[1].Edges[9].Tokens-- }, gate + ".layer_02.target_comparisons.period_at_s1", "tokens"},
		"content":             {func(d *Document) { d.Traced[0].ContentTokens = 0 }, "sources[plain/one].content_tokens", "content tokens"},
		"padding":             {func(d *Document) { d.Traced[0].BatchTokens++ }, "sources[plain/one].batch_prompt_tokens", "tokens of the batch"},
		"a boundary":          {func(d *Document) { d.Tokenizer.Conditions[0].Boundary = "bos" }, "tokenizer_contract.conditions", "conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := small(t)
			c.change(d)
			problems, _ := CheckShape(d, Standard(), smallShape())
			wants(t, problems, c.at, c.what)
		})
	}
}

func TestRouteStatisticsFindsWhatWasMoved(t *testing.T) {
	place := "sources[plain/one].router_layers.layer_01.conditions.s0_eos.target_content"
	edge := "sources[plain/one].router_layers.layer_01.target_comparisons.system_eos"
	stage := "sources[plain/two].hidden_stages.layer_02."
	at := func(d *Document) *RouteDistribution { return &d.Traced[0].Gates[0].Conditions[0][scopeContent] }
	for name, c := range map[string]struct {
		change   func(d *Document)
		at, what string
	}{
		"one expert's load": {func(d *Document) { at(d).Loads[0]++; at(d).Loads[1]-- }, edge, "aggregate_load_tv"},
		// Two experts' loads change places: only distances between loads see it.
		"two experts' loads swapped": {func(d *Document) {
			l := at(d).Loads
			i, j := slices.Index(l, slices.Max(l)), slices.Index(l, slices.Min(l))
			l[i], l[j] = l[j], l[i]
		}, edge, "aggregate_load_tv"},
		"a weight without decisions": {func(d *Document) {
			r := at(d)
			r.WeightedLoads[slices.Index(r.Loads, 0)] = 0.5
		}, place, "weighted load of expert 0"},
		// A token chooses an expert once: its load is at most the tokens.
		"more loads of an expert than tokens": {func(d *Document) { r := at(d); r.Loads[3] = int64(r.Tokens) + 1 }, place, "load of expert 3"},
		"a negative load":                     {func(d *Document) { at(d).Loads[3] = -1 }, place, "load of expert 3"},
		"content beyond the full input": {func(d *Document) {
			c := d.Traced[0].Gates[0].Conditions[0]
			c[scopeFull].Loads[2], c[scopeContent].Loads[2] = 0, 1
		}, "sources[plain/one].router_layers.layer_01.conditions.s0_eos", "content load of expert 2"},
		"load_cv":                 {func(d *Document) { at(d).LoadCV += 1e-9 }, place, "load_cv"},
		"normalized_load_entropy": {func(d *Document) { at(d).Entropy -= 1e-9 }, place, "normalized_load_entropy"},
		"max_load_share":          {func(d *Document) { at(d).MaxShare += 1e-9 }, place, "max_load_share"},
		"unique_experts":          {func(d *Document) { at(d).UniqueExperts++ }, place, "unique_experts"},
		"NaN":                     {func(d *Document) { at(d).Entropy = math.NaN() }, place, "normalized_load_entropy"},
		"aggregate_load_tv":       {func(d *Document) { d.Traced[0].Gates[0].Edges[0].LoadTV += 1e-9 }, edge, "aggregate_load_tv"},
		"set_exact_tokens":        {func(d *Document) { d.Traced[0].Gates[0].Edges[0].SetExact++ }, edge, "mean_set_jaccard"},
		"ordered_exact_tokens":    {func(d *Document) { d.Traced[0].Gates[0].Edges[0].OrderedExact = 9 }, edge, "exact tokens"},
		"exact_hidden_rows":       {func(d *Document) { d.Traced[1].Stages[3].Edges[2].ExactRows = 3 }, stage + "target_comparisons.system_x", "mean_relative_l2 and max_abs_delta"},
		"min cosine":              {func(d *Document) { d.Traced[1].Stages[3].Edges[2].MinCosine = 1 }, stage + "target_comparisons.system_x", "cosines"},
		"rms":                     {func(d *Document) { d.Traced[1].Stages[3].Conditions[2][1].RMS *= 1.00001 }, stage + "conditions.s0_x.full_input", "rms"},
		"max_abs":                 {func(d *Document) { d.Traced[1].Stages[3].Conditions[2][1].MaxAbs = 0 }, stage + "conditions.s0_x.full_input", "max_abs"},
		"a mean over sources":     {func(d *Document) { d.Summary.Routes[0][1].MeanWeightedTV += 1e-9 }, "summary.routes.layer_01.system_bos", "source_mean_token_weighted_tv"},
		"a mean over tokens":      {func(d *Document) { d.Summary.Hidden[4][0].MeanCosine += 1e-9 }, "summary.hidden.final_norm.system_eos", "token_weighted_mean_cosine_similarity"},
		"a summed count":          {func(d *Document) { d.Summary.Hidden[0][0].ExactRows-- }, "summary.hidden.embedding.system_eos", "counts"},
		"route decisions":         {func(d *Document) { d.Summary.RouteDecisions++ }, "summary", "target_route_decisions"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := small(t)
			c.change(d)
			problems, _ := CheckStatistics(d, ScriptRounding)
			wants(t, problems, c.at, c.what)
		})
	}
}

// A plain mean of the cosines over sources would not be the summary's, which counts
// each token once: four and three tokens differ.
func TestSummaryWeighsTokens(t *testing.T) {
	d, _ := small(t)
	a, b := d.Traced[0].Stages[2].Edges[1], d.Traced[1].Stages[2].Edges[1]
	got := d.Summary.Hidden[2][1]
	require.InEpsilon(t, (4*a.MeanCosine+3*b.MeanCosine)/7, got.MeanCosine, 1e-12)
	require.Greater(t, math.Abs((a.MeanCosine+b.MeanCosine)/2-got.MeanCosine), 1e-3)
	require.InEpsilon(t, (a.MeanRelativeL2+b.MeanRelativeL2)/2, got.MeanRelativeL2, 1e-12)
}

// TestTraceHashesFindsOneBit: in a hidden row, in a weight, in an id, and in the
// order of a route.
func TestTraceHashesFindsOneBit(t *testing.T) {
	d, _ := small(t)
	flip := func(x float32, bit int) float32 { return math.Float32frombits(math.Float32bits(x) ^ 1<<bit) }
	for name, c := range map[string]struct {
		rec      kept
		at, what string
	}{
		"hidden": {kept{hidden: func(stage, condition, scope int, h Hidden) Hidden {
			if stage == 2 && condition == 5 && scope == scopeFull {
				h.Rows[3][1] = flip(h.Rows[3][1], 16)
			}
			return h
		}}, "sources[plain/one].hidden_stages.layer_01.conditions.s1_bos.full_input", "tensor_sha256"},
		"weight": {kept{routes: func(gate, condition, scope int, r Routes) Routes {
			if gate == 1 && condition == 0 && scope == scopeContent {
				r.Weights[3][1] = flip(r.Weights[3][1], 0)
			}
			return r
		}}, "sources[plain/one].router_layers.layer_02.conditions.s0_eos.target_content", "route_weight_sha256"},
		"order": {kept{routes: func(gate, condition, scope int, r Routes) Routes {
			if gate == 0 && condition == 7 {
				slices.Reverse(r.IDs[0])
			}
			return r
		}}, "sources[plain/one].router_layers.layer_01.conditions.s1_period.target_content", "ordered_route_sha256"},
	} {
		t.Run(name, func(t *testing.T) {
			c.rec.source = smallSources[0]
			problems, _ := CheckHashes(d, 0, c.rec)
			wants(t, problems, c.at, c.what)
		})
	}
}

// TestRecordedRoutesThatDiffer: one id changed in the tensors that figures are
// recomputed from.
func TestRecordedRoutesThatDiffer(t *testing.T) {
	d, _ := small(t)
	rec := kept{source: smallSources[0], routes: func(gate, condition, scope int, r Routes) Routes {
		if gate == 0 && condition == 0 && scope == scopeContent {
			for e := range 6 {
				if !slices.Contains(r.IDs[1], e) {
					r.IDs[1][0] = e
					break
				}
			}
		}
		return r
	}}
	problems, _ := CheckRecorded(d, 0, rec, ScriptRounding)
	wants(t, problems, "sources[plain/one].router_layers.layer_01.conditions.s0_eos.target_content", "loads")
	wants(t, problems, "sources[plain/one].router_layers.layer_01.target_comparisons.system_eos", "set_exact_tokens")

	// One expert's load moved in the document.
	moved, _ := small(t)
	l := moved.Traced[0].Gates[1].Conditions[6][scopeFull].Loads
	l[slices.Index(l, slices.Max(l))]--
	l[slices.Index(l, slices.Min(l))]++
	problems, _ = CheckRecorded(moved, 0, kept{source: smallSources[0]}, ScriptRounding)
	wants(t, problems, "sources[plain/one].router_layers.layer_02.conditions.s1_x.full_input", "loads")

	rec = kept{source: smallSources[0], hidden: func(stage, condition, scope int, h Hidden) Hidden {
		if stage == 1 && condition == 0 && scope == scopeContent {
			h.Rows[0][0] += 0.5
		}
		return h
	}}
	problems, _ = CheckRecorded(d, 0, rec, ScriptRounding)
	wants(t, problems, "sources[plain/one].hidden_stages.layer_00.conditions.s0_eos.target_content", "mean")
	wants(t, problems, "sources[plain/one].hidden_stages.layer_00.target_comparisons.system_eos", "mean_relative_l2")
}

// TestEveryLoadUpToTheTokens: an expert that all tokens choose is sound.
func TestEveryLoadUpToTheTokens(t *testing.T) {
	r := RouteDistribution{Tokens: 3, TopK: 1, Decisions: 3, Loads: []int64{3, 0}, WeightedLoads: []float64{3, 0}}
	r.ofLoads()
	problemsOf := func() []Problem { c := &checker{}; c.loads("here", r, Rounding{}); return c.problems }
	require.Empty(t, problemsOf())
	r.Loads[0] = 4
	wants(t, problemsOf(), "here", "load of expert 0")
}

// TestRecordedFiguresAreHeldToTheirBounds: each figure moved by ten times what it may be
// off by is named, at its place. max_abs and max_abs_delta may not be off at all.
func TestRecordedFiguresAreHeldToTheirBounds(t *testing.T) {
	const single, double = 3e-7, 0x1p-40 // ScriptRounding's, which are the bounds' own
	require.Equal(t, Rounding{Single: single, Double: double}, ScriptRounding)
	source := "sources[plain/one]."
	stage, stageEdge := source+"hidden_stages.layer_01.conditions.s0_bos.full_input", source+"hidden_stages.layer_01.target_comparisons.system_bos"
	gate, gateEdge := source+"router_layers.layer_02.conditions.s0_bos.full_input", source+"router_layers.layer_02.target_comparisons.system_bos"
	hidden := func(d *Document) *HiddenStats { return &d.Traced[0].Stages[2].Conditions[1][scopeFull] }
	hiddenEdge := func(d *Document) *HiddenComparison { return &d.Traced[0].Stages[2].Edges[1] }
	routes := func(d *Document) *RouteDistribution { return &d.Traced[0].Gates[1].Conditions[1][scopeFull] }
	routeEdge := func(d *Document) *RouteComparison { return &d.Traced[0].Gates[1].Edges[1] }
	for _, c := range []struct {
		at, what string
		of       func(d *Document) *float64
		bound    float64
	}{
		{stage, "mean", func(d *Document) *float64 { return &hidden(d).Mean }, single},
		{stage, "std", func(d *Document) *float64 { return &hidden(d).Std }, single},
		{stage, "rms", func(d *Document) *float64 { return &hidden(d).RMS }, single},
		{stage, "max_abs", func(d *Document) *float64 { return &hidden(d).MaxAbs }, 0},
		{stageEdge, "mean_cosine_similarity", func(d *Document) *float64 { return &hiddenEdge(d).MeanCosine }, single},
		{stageEdge, "min_cosine_similarity", func(d *Document) *float64 { return &hiddenEdge(d).MinCosine }, single},
		{stageEdge, "mean_relative_l2", func(d *Document) *float64 { return &hiddenEdge(d).MeanRelativeL2 }, single},
		{stageEdge, "max_abs_delta", func(d *Document) *float64 { return &hiddenEdge(d).MaxAbsDelta }, 0},
		{gate, "weighted load of expert 0", func(d *Document) *float64 { return &routes(d).WeightedLoads[0] }, double},
		{gate, "load_cv", func(d *Document) *float64 { return &routes(d).LoadCV }, double},
		{gate, "normalized_load_entropy", func(d *Document) *float64 { return &routes(d).Entropy }, double},
		{gate, "max_load_share", func(d *Document) *float64 { return &routes(d).MaxShare }, double},
		{gateEdge, "mean_set_jaccard", func(d *Document) *float64 { return &routeEdge(d).MeanJaccard }, double},
		{gateEdge, "mean_token_weighted_tv", func(d *Document) *float64 { return &routeEdge(d).MeanWeightedTV }, double},
		{gateEdge, "aggregate_load_tv", func(d *Document) *float64 { return &routeEdge(d).LoadTV }, double},
	} {
		for _, sign := range []float64{1, -1} {
			t.Run(fmt.Sprintf("%s %+g", c.what, sign), func(t *testing.T) {
				d, _ := small(t)
				x := c.of(d)
				if c.bound == 0 {
					*x = math.Nextafter(*x, sign*math.Inf(1))
				} else {
					*x += sign * 10 * c.bound * math.Max(1, math.Abs(*x))
				}
				problems, _ := CheckRecorded(d, 0, kept{source: smallSources[0]}, ScriptRounding)
				require.Len(t, problems, 1)
				wants(t, problems, c.at, c.what)
			})
		}
	}
}

func TestContentIdentity(t *testing.T) {
	p := Standard()
	sound := smallSources[0].variants()
	problems, compared := p.CheckContent("plain/one", sound, smallBoundary)
	require.Empty(t, problems)
	require.Equal(t, 7*4, compared)
	problems, _ = p.CheckContent("plain/one", sound, nil)
	require.Empty(t, problems)

	for name, c := range map[string]struct {
		change          func(v []Variant) []Variant
		condition, what string
	}{
		"one id":                {func(v []Variant) []Variant { v[3].TokenIDs[3]++; return v }, "s0_period", "content token 1"},
		"one token fewer":       {func(v []Variant) []Variant { v[4].ContentPositions = v[4].ContentPositions[1:]; return v }, "s1_eos", "content tokens"},
		"no content":            {func(v []Variant) []Variant { v[0].ContentPositions = nil; return v }, "s0_eos", "content tokens"},
		"a place twice":         {func(v []Variant) []Variant { v[5].ContentPositions[1] = v[5].ContentPositions[0]; return v }, "s1_bos", "content position 1"},
		"a place beyond":        {func(v []Variant) []Variant { v[5].ContentPositions[3] = 99; return v }, "s1_bos", "content position 3"},
		"the start as content":  {func(v []Variant) []Variant { v[5].ContentPositions[0] = 0; return v }, "s1_bos", "content position 0"},
		"another start":         {func(v []Variant) []Variant { v[1].TokenIDs[0] = 91; return v }, "s0_bos", "token at the start"},
		"a negative id":         {func(v []Variant) []Variant { v[1].TokenIDs[2] = -1; return v }, "s0_bos", "token 2"},
		"no tokens":             {func(v []Variant) []Variant { v[2] = Variant{}; return v }, "s0_x", "tokens"},
		"more crossing than is": {func(v []Variant) []Variant { v[2].BoundaryCrossing = 40; return v }, "s0_x", "boundary crossing tokens"},
		"a negative count":      {func(v []Variant) []Variant { v[2].BoundaryCrossing = -1; return v }, "s0_x", "boundary crossing tokens"},
		"a condition gone":      {func(v []Variant) []Variant { return v[:7] }, "", "variants"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, boundary := range []map[string]int{smallBoundary, nil} {
				problems, compared := p.CheckContent("plain/one", c.change(smallSources[0].variants()), boundary)
				wants(t, problems, place("plain/one", c.condition), c.what)
				if c.what != "content token 1" && c.what != "content tokens" {
					require.Zero(t, compared)
				}
			}
		})
	}
	// Conditions that start alike are told apart without the tokenizer's ids too.
	v := smallSources[0].variants()
	for _, i := range []int{1, 5} {
		v[i].TokenIDs[0] = 91
	}
	problems, _ = p.CheckContent("plain/one", v, nil)
	wants(t, problems, "plain/one: s0_bos", "token at the start")
}

func TestBoundaryContract(t *testing.T) {
	p := Standard()
	require.NoError(t, p.CheckBoundaries(smallBoundary, nil))
	require.NoError(t, p.CheckBoundaries(smallBoundary, map[string]int{"eos": 91, "bos": 90}))
	var bad *TokenError
	require.ErrorAs(t, p.CheckBoundaries(smallBoundary, map[string]int{"eos": 100001}), &bad)
	require.EqualError(t, bad, "trace: tokenizer contract: eos: got 91, want 100001")
	require.ErrorAs(t, p.CheckBoundaries(map[string]int{"eos": 1, "bos": 2, "x": 3}, nil), &bad)
	require.EqualError(t, bad, "trace: tokenizer contract: period: got no id, want the id of one token")
	require.ErrorAs(t, p.CheckBoundaries(map[string]int{"eos": 1, "bos": 1, "x": 3, "period": 4}, nil), &bad)
	require.EqualError(t, bad, "trace: tokenizer contract: bos: got 1, as eos, want an id of its own")
}
