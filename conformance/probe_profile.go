package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// ProbeProfile is a candidate's error layer by layer, each layer on the
// candidate's own rows of all positions: no layer inherits from another, so that
// each one that is out of budget is a source of error by itself.
type ProbeProfile struct {
	// Positions is how many positions were judged, Prompt how many the prompt has.
	Positions, Prompt int
	// Embed is the error of each position's embedding, nil when it isn't offered.
	Embed []Measure
	// FinalNorm is the error of each position's final_norm from the candidate's own
	// last row, nil when either isn't offered.
	FinalNorm []Measure
	// Layers has one entry per decoder layer.
	Layers []LayerProbes
	// SchemeUnknown and Factors are as in Profile.
	SchemeUnknown string
	Factors       Factors
	floatFactors  Factors // for places before anything is quantised
	float         bool    // held to float32
	weightsKnown  bool    // the candidate's weights are the reference's own values
}

// LayerProbes are the errors of one layer.
type LayerProbes struct {
	// Local is the whole layer: |c_(n+1) - f_n(c_n)| over |f_n(c_n) - c_n|, with
	// keys and values from the candidate's own rows.
	Local PositionMeasure
	// Parts are the places inside the layer that are offered, and resid_post. The
	// MLP half is judged on the candidate's own resid_mid where that is offered,
	// everything else on its input rows.
	Parts map[engine.Part]PositionMeasure
	// Split is true when resid_mid is offered, so that the halves are told apart.
	Split bool
	// Gains are what the residual says of the layer's own updates: resid_mid of
	// attention's, resid_post of the MLP's.
	Gains map[engine.Part]Gain
	// Heads are the places that are right but for the order of their heads: which
	// head's values each head holds.
	Heads map[engine.Part][]int
	// Over is the error over this layer and the next, which passes over the row
	// between; measured only where both are suspicious.
	Over Measure
}

// PositionMeasure is an error over positions.
type PositionMeasure struct {
	// All is the error over all positions but 0, or over 0 alone where there is no
	// other: the update of position 0, the attention sink, would hide the rest.
	All Measure
	// At has one entry per position.
	At []Measure
}

// worst is the position with the largest ratio, -1 when none was measured.
func (m PositionMeasure) worst() (position int, ratio float64) {
	position, ratio = -1, unmeasured
	for t, at := range m.At {
		if r := at.Ratio(); r > ratio {
			position, ratio = t, r
		}
	}
	return position, ratio
}

// first is the first position whose ratio is over the bound, -1 when none is.
func (m PositionMeasure) first(bound float64) int {
	return slices.IndexFunc(m.At, func(at Measure) bool { return over(at.Ratio(), bound) })
}

// measured reports whether there was anything to measure.
func (m PositionMeasure) measured() bool { return len(m.At) > 0 && !m.All.Missing }

// layerTruth is what a layer should give on the candidate's rows, and what the
// yardstick gives there.
type layerTruth struct {
	// run gives both on the rows of a layer. mid is as in Reference.LayerAll.
	run func(ctx context.Context, n int, in, mid [][]float64) (want, yard engine.LayerRun, err error)
	// embed gives both for the tokens of the positions.
	embed func(ctx context.Context, ids []int) (want, yard [][]float64, err error)
	// norm is the final norm of one row.
	norm func(ctx context.Context, row []float64) ([]float64, error)
	// floor is the smallest relative error of a row that the yardstick can be
	// trusted to show.
	floor float64
	// headDim is the width of a layer's heads, headMargin how much better another order of
	// heads must fit.
	headDim    func(layer int) int
	headMargin float64
}

// probeProfileOf measures the places of one case. ids are the tokens of the
// positions.
func probeProfileOf(ctx context.Context, t layerTruth, p *Places, a engine.Arch, ids []int) (*ProbeProfile, error) {
	out := &ProbeProfile{Positions: p.Positions, Layers: make([]LayerProbes, a.Layers)}
	stream := p.stream(a.Layers)
	if rows := stream[0]; rows != nil {
		want, yard, err := t.embed(ctx, ids[:p.Positions])
		if err != nil {
			return nil, err
		}
		out.Embed = t.measure(rows, want, yard, nil, want, len(rows)).At
	}
	if last, rows := stream[a.Layers], p.Rows[engine.ProbeFinalNorm]; last != nil && rows != nil {
		until := min(usablePositions(engine.RowProbe(a.Layers), last), usablePositions(engine.ProbeFinalNorm, rows))
		for i := range until {
			want, err := t.norm(ctx, last[i])
			if err != nil {
				return nil, err
			}
			out.FinalNorm = append(out.FinalNorm, Measure{Got: metric.RelativeL2(rows[i], want), Yard: t.floor})
		}
	}
	for n := range out.Layers {
		l, err := t.layer(ctx, n, stream[n], p)
		if err != nil {
			return nil, err
		}
		out.Layers[n] = l
	}
	for n := range a.Layers - 1 {
		if err := t.overTwo(ctx, out, stream, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// layer measures layer n on its input rows.
func (t layerTruth) layer(ctx context.Context, n int, in [][]float64, p *Places) (LayerProbes, error) {
	l := LayerProbes{Local: PositionMeasure{All: Measure{Missing: true}}, Over: Measure{Missing: true},
		Parts: map[engine.Part]PositionMeasure{}, Gains: map[engine.Part]Gain{}, Heads: map[engine.Part][]int{}}
	offered := map[engine.Part][][]float64{}
	for probe, rows := range p.Rows {
		if layer, part, ok := probe.Block(); ok && layer == n {
			offered[part] = rows
		}
	}
	if in == nil || len(offered) == 0 {
		return l, nil
	}
	// What stands behind a position that can't be measured has it in its cache.
	until := usablePositions(engine.RowProbe(n), in)
	for part, rows := range offered {
		until = min(until, usablePositions(engine.Block(n, part), rows))
	}
	if until == 0 {
		return l, nil
	}
	in = in[:until]
	var mid [][]float64
	if rows := offered[engine.PartResidMid]; rows != nil {
		mid, l.Split = rows[:until], true
	}
	want, yard, err := t.run(ctx, n, in, nil)
	if err != nil {
		return l, fmt.Errorf("conformance: layer %d on the candidate's rows: %w", n, err)
	}
	if post := offered[engine.PartResidPost]; post != nil {
		l.Local = t.measure(post, want[engine.PartResidPost], yard[engine.PartResidPost], in, want[engine.PartResidPost], until)
	}
	halves, halvesYard := want, yard
	if mid != nil && (offered[engine.PartResidPost] != nil || offered[engine.PartMLPOut] != nil) {
		if halves, halvesYard, err = t.run(ctx, n, in, mid); err != nil {
			return l, fmt.Errorf("conformance: layer %d on the candidate's rows: %w", n, err)
		}
	}
	for part, rows := range offered {
		w, y, from := want[part], yard[part], [][]float64(nil)
		switch part {
		case engine.PartResidMid:
			from = in
		case engine.PartMLPOut:
			w, y = halves[part], halvesYard[part]
		case engine.PartResidPost:
			w, y = halves[part], halvesYard[part]
			if from = mid; from == nil {
				from = in
			}
		}
		if w == nil {
			continue // a router's place: the reference has none
		}
		l.Parts[part] = t.measure(rows, w, y, from, w, until)
		if hasHeads(part) && over(l.Parts[part].All.Ratio(), suspicious) {
			if order := headsMoved(rows, w, t.headDim(n), until, t.headMargin); order != nil {
				l.Heads[part] = order
			}
		}
	}
	l.fit(offered, in, mid, want, yard, halves, halvesYard, until)
	return l, nil
}

func usablePositions(p engine.Probe, rows [][]float64) int {
	if at, _, _ := unusable(p, rows); at >= 0 {
		return at
	}
	return len(rows)
}

// measure compares rows of n positions. Errors are shares of the update want-from,
// or of want where from is nil. whole are the rows that the floor is a share of.
func (t layerTruth) measure(rows, want, yard, from, whole [][]float64, n int) PositionMeasure {
	m := PositionMeasure{At: make([]Measure, n)}
	var got2, yard2, size2 float64
	for i := range n {
		size := metric.L2(want[i])
		if from != nil {
			size = distance(want[i], from[i])
		}
		got, y := distance(rows[i], want[i]), max(distance(yard[i], want[i]), t.floor*metric.L2(whole[i]))
		m.At[i] = Measure{Got: got / size, Yard: y / size}
		if size == 0 { // nothing to take a share of: the ratio still stands
			m.At[i] = Measure{Got: got, Yard: y}
		}
		if i == 0 && n > 1 {
			continue
		}
		got2, yard2, size2 = got2+got*got, yard2+y*y, size2+size*size
	}
	if size2 == 0 {
		size2 = 1
	}
	m.All = Measure{Got: math.Sqrt(got2 / size2), Yard: math.Sqrt(yard2 / size2)}
	return m
}

// overTwo measures layers n and n+1 together where each by itself is suspicious.
func (t layerTruth) overTwo(ctx context.Context, p *ProbeProfile, stream [][][]float64, n int) error {
	a, b := p.Layers[n].Local, p.Layers[n+1].Local
	if !a.measured() || !b.measured() || !over(a.All.Ratio(), suspicious) || !over(b.All.Ratio(), suspicious) {
		return nil
	}
	until := min(len(a.At), len(b.At))
	in, out := stream[n][:until], stream[n+2]
	want, yard, err := t.run(ctx, n, in, nil)
	if err != nil {
		return err
	}
	want2, _, err := t.run(ctx, n+1, want[engine.PartResidPost], nil)
	if err != nil {
		return err
	}
	_, yard2, err := t.run(ctx, n+1, yard[engine.PartResidPost], nil)
	if err != nil {
		return err
	}
	w := want2[engine.PartResidPost]
	p.Layers[n].Over = t.measure(out, w, yard2[engine.PartResidPost], in, w, until).All
	return nil
}

// column are the pooled ratios of a place over the layers.
func (p *ProbeProfile) column(of func(LayerProbes) (PositionMeasure, bool)) []float64 {
	out := make([]float64, len(p.Layers))
	for n, l := range p.Layers {
		out[n] = unmeasured
		if m, ok := of(l); ok {
			out[n] = m.All.Ratio()
		}
	}
	return out
}

func wholeLayer(l LayerProbes) (PositionMeasure, bool) { return l.Local, l.Local.measured() }

func partOf(part engine.Part) func(LayerProbes) (PositionMeasure, bool) {
	return func(l LayerProbes) (PositionMeasure, bool) { m, ok := l.Parts[part]; return m, ok && m.measured() }
}
