package trace

import (
	"fmt"
	"slices"
)

// Accumulator makes the trace of one source at a time out of what an engine gives,
// in one pass: place by place and condition by condition, in any order. It holds the
// content rows of a place only until every edge that needs them is done, so feeding
// it all conditions of a place before the next place costs the least memory. What it
// holds doesn't grow with the number of sources. It isn't safe for concurrent use.
type Accumulator struct {
	plan     Plan
	shape    Shape
	hidden   DType
	source   Source
	variants []Variant
	open     bool
	trace    *SourceTrace
	stages   []places[Hidden]
	gates    []places[Routes]
	needed   []int // edges that each condition is in
}

// places holds the content of one place under each condition, as long as an edge
// needs it.
type places[T any] struct {
	given []bool
	value []T
	left  []int // edges that still need the condition
}

// NewAccumulator returns one for a plan on a shape; hidden is the type of the rows.
func NewAccumulator(p Plan, s Shape, hidden DType) (*Accumulator, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := hidden.check(); err != nil {
		return nil, err
	}
	a := &Accumulator{plan: p, shape: s, hidden: hidden, needed: make([]int, len(p.Conditions))}
	for _, e := range p.Edges {
		l, r := p.ends(e)
		a.needed[l]++
		a.needed[r]++
	}
	return a, nil
}

// Start begins a source. Its variants are in the order of the plan's conditions;
// boundary are the tokenizer's ids of the tokens at the start, nil where the source
// came tokenised. Content tokens that differ between conditions, or that there are
// none of, are a [*TokenError].
func (a *Accumulator) Start(source Source, variants []Variant, boundary map[string]int) error {
	a.open = false
	if problems, _ := a.plan.CheckContent(source.ID, variants, boundary); len(problems) > 0 {
		first := problems[0]
		return &TokenError{Source: first.At, What: first.What, Got: first.Got, Want: first.Want}
	}
	n := len(a.plan.Conditions)
	t := &SourceTrace{
		ID: source.ID, Domain: source.Domain, ContentSHA256: source.ContentSHA256(), ContentIDsSHA256: IDsHash(variants[0].content()),
		ContentTokens: len(variants[0].ContentPositions), PromptTokens: make([]int, n), BoundaryCrossing: make([]int, n),
		Stages: make([]StageTrace, a.shape.Stages()), Gates: make([]GateTrace, len(a.shape.Gates)),
	}
	for i, v := range variants {
		t.PromptTokens[i], t.BoundaryCrossing[i] = len(v.TokenIDs), v.BoundaryCrossing
		t.BatchTokens = max(t.BatchTokens, len(v.TokenIDs))
	}
	edges := len(a.plan.Edges)
	a.stages, a.gates = make([]places[Hidden], len(t.Stages)), make([]places[Routes], len(t.Gates))
	for i := range t.Stages {
		t.Stages[i] = StageTrace{table[HiddenStats](n, scopes), make([]HiddenComparison, edges)}
		a.stages[i] = newPlaces[Hidden](a.needed)
	}
	for i, layer := range a.shape.Gates {
		t.Gates[i] = GateTrace{layer, table[RouteDistribution](n, scopes), make([]RouteComparison, edges)}
		a.gates[i] = newPlaces[Routes](a.needed)
	}
	a.source, a.variants, a.trace, a.open = source, variants, t, true
	return nil
}

func newPlaces[T any](needed []int) places[T] {
	return places[T]{make([]bool, len(needed)), make([]T, len(needed)), slices.Clone(needed)}
}

// Hidden takes the rows of a stage under a condition: one per token of the
// variant, padding left out. It keeps no reference to them.
func (a *Accumulator) Hidden(stage, condition int, rows [][]float32) error {
	at, v, err := a.begin("Hidden", stage, a.shape.Stages(), condition, a.shape.StageName)
	if err != nil {
		return err
	}
	p := &a.stages[stage]
	if p.given[condition] {
		return &InputError{at, "rows", "a second time", "each stage and condition once"}
	}
	if len(rows) != len(v.TokenIDs) {
		return &InputError{at, "rows", fmt.Sprint(len(rows)), fmt.Sprintf("one per token, %d", len(v.TokenIDs))}
	}
	full := Hidden{a.hidden, rows}
	if w := full.width(); w != a.shape.Hidden {
		return &InputError{at, "width", fmt.Sprint(w), fmt.Sprint(a.shape.Hidden)}
	}
	content := full.At(v.ContentPositions)
	if err := full.check(at); err != nil {
		return err
	}
	st := &a.trace.Stages[stage]
	st.Conditions[condition][scopeFull], st.Conditions[condition][scopeContent] = describeHidden(full), describeHidden(content)
	if a.needed[condition] > 0 {
		content.Rows = copyRows(content.Rows)
		p.value[condition] = content
	}
	p.given[condition] = true
	return a.edges(condition, p.given, p.left, func(e, l, r int) (err error) {
		st.Edges[e], err = compareHidden(a.at(a.shape.StageName(stage), a.plan.Edges[e].Name), p.value[l], p.value[r])
		return err
	}, func(c int) { p.value[c] = Hidden{} })
}

// Routes takes the routes of a layer's gate under a condition: one per token of the
// variant, padding left out. It keeps no reference to them.
func (a *Accumulator) Routes(layer, condition int, r Routes) error {
	gate := a.shape.gate(layer)
	at, v, err := a.begin("Routes", gate, len(a.shape.Gates), condition, func(int) string { return LayerName(layer) })
	if err != nil {
		return err
	}
	p := &a.gates[gate]
	if p.given[condition] {
		return &InputError{at, "routes", "a second time", "each gate and condition once"}
	}
	if len(r.IDs) != len(v.TokenIDs) {
		return &InputError{at, "routes", fmt.Sprint(len(r.IDs)), fmt.Sprintf("one per token, %d", len(v.TokenIDs))}
	}
	if k := len(r.IDs[0]); k != a.shape.TopK {
		return &InputError{at, "experts per token", fmt.Sprint(k), fmt.Sprintf("%d, the top_k of the config", a.shape.TopK)}
	}
	if err := r.check(at, a.shape.Experts); err != nil {
		return err
	}
	g := &a.trace.Gates[gate]
	if g.Conditions[condition][scopeFull], err = describeRoutes(at, r, a.shape.Experts); err != nil {
		return err
	}
	content := r.At(v.ContentPositions)
	if g.Conditions[condition][scopeContent], err = describeRoutes(at, content, a.shape.Experts); err != nil {
		return err
	}
	if a.needed[condition] > 0 {
		content.IDs, content.Weights = copyRows(content.IDs), copyRows(content.Weights)
		p.value[condition] = content
	}
	p.given[condition] = true
	return a.edges(condition, p.given, p.left, func(e, l, r int) (err error) {
		g.Edges[e], err = compareRoutes(a.at(LayerName(layer), a.plan.Edges[e].Name), p.value[l], p.value[r], a.shape.Experts)
		return err
	}, func(c int) { p.value[c] = Routes{} })
}

// begin checks the coordinates of what was given.
func (a *Accumulator) begin(op string, i, n, condition int, name func(int) string) (at string, v Variant, err error) {
	if !a.open {
		return "", Variant{}, &UsageError{op, "source", "none", "one that Start began"}
	}
	if i < 0 || i >= n || condition < 0 || condition >= len(a.variants) {
		return "", Variant{}, &UsageError{op, "place and condition", fmt.Sprintf("%d of %d and %d of %d", i, n, condition, len(a.variants)), "ones that there are"}
	}
	return a.at(name(i), a.plan.Conditions[condition].Name), a.variants[condition], nil
}

func (a *Accumulator) at(where, which string) string {
	return a.source.ID + ": " + where + ", " + which
}

// edges computes the edges of a condition whose other end is there, and drops what
// no edge needs any more.
func (a *Accumulator) edges(condition int, given []bool, left []int, compare func(e, l, r int) error, drop func(c int)) error {
	for e, edge := range a.plan.Edges {
		l, r := a.plan.ends(edge)
		if l != condition && r != condition || !given[l] || !given[r] {
			continue
		}
		if err := compare(e, l, r); err != nil {
			return err
		}
		for _, c := range []int{l, r} {
			if left[c]--; left[c] == 0 {
				drop(c)
			}
		}
	}
	return nil
}

func copyRows[T any](rows [][]T) [][]T {
	if len(rows) == 0 {
		return nil
	}
	width := len(rows[0])
	flat := make([]T, 0, len(rows)*width)
	out := make([][]T, len(rows))
	for i, row := range rows {
		flat = append(flat, row...)
		out[i] = flat[i*width : (i+1)*width : (i+1)*width]
	}
	return out
}

// Finish ends the source. A stage or a gate that didn't come under every condition
// is an [*InputError]. seconds is how long the engine took; peak its largest device
// memory in bytes, nil without a device.
func (a *Accumulator) Finish(seconds float64, peak *int64) (*SourceTrace, error) {
	if !a.open {
		return nil, &UsageError{"Finish", "source", "none", "one that Start began"}
	}
	a.open = false
	for i, p := range a.stages {
		if c := slices.Index(p.given, false); c >= 0 {
			return nil, &InputError{a.at(a.shape.StageName(i), a.plan.Conditions[c].Name), "hidden rows", "none", "those of every stage and condition"}
		}
	}
	for i, p := range a.gates {
		if c := slices.Index(p.given, false); c >= 0 {
			return nil, &InputError{a.at(LayerName(a.shape.Gates[i]), a.plan.Conditions[c].Name), "routes", "none", "those of every gate and condition"}
		}
	}
	if err := finite(a.source.ID, figure{"forward_seconds", seconds}); err != nil {
		return nil, err
	}
	t := a.trace
	t.ForwardSeconds, t.Peak = seconds, peak
	a.trace, a.stages, a.gates = nil, nil, nil
	return t, nil
}
