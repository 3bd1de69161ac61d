package routes

import (
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// Row is one token at one gate.
type Row struct {
	// Condition is its index in the plan.
	Condition int
	// Reference are the selection scores that choices are held to, Judged those of
	// the run that chose; nil where there is one run alone.
	Reference, Judged []float64
	// Route are the experts that were chosen.
	Route []int
}

// Report is what was gathered. Make one with [New].
type Report struct {
	// Map has the verdicts by gate and condition.
	Map *trace.FlipMap
	// All are the rows of all cells, Others those of them with other experts.
	All, Others trace.RouteTally
	// Noise has a figure for each gate.
	Noise []Noise
	// Sole says that one run was looked at: there are margins, and no choice to
	// compare.
	Sole bool

	shape   trace.Shape
	scoring trace.DType
	rates   []rate // by gate
}

// Noise is how far scores are off in the judged run at one gate, as the band that
// follows.
type Noise struct {
	// Rows is how many rows told.
	Rows int
	// Largest is the widest band, of all the times that the gate got rows, Smallest
	// the narrowest.
	Smallest, Largest float64
}

// New is an empty report for a plan on a shape. Routes are scored in scoring; sole
// says that rows come without a second run's scores.
func New(p trace.Plan, s trace.Shape, scoring trace.DType, sole bool) *Report {
	return &Report{Map: trace.NewFlipMap(p, s), Noise: make([]Noise, len(s.Gates)), Sole: sole, shape: s, scoring: scoring, rates: make([]rate, len(s.Gates))}
}

// multiple is that of the 99th percentile.
const multiple = 2

// Gate takes the rows of one gate, by index: all conditions of one source.
func (r *Report) Gate(gate int, rows []Row) error {
	if gate < 0 || gate >= len(r.shape.Gates) {
		return fmt.Errorf("routes: gate: got %d, want 0 to %d", gate, len(r.shape.Gates)-1)
	}
	var noise []float64
	for i, row := range rows {
		if row.Condition < 0 || row.Condition >= len(r.Map.Conditions) || len(row.Reference) != r.shape.Experts ||
			len(row.Route) != r.shape.TopK || (row.Judged == nil) != r.Sole || !r.Sole && len(row.Judged) != r.shape.Experts {
			return fmt.Errorf("routes: layer %d, row %d: got condition %d, %d and %d scores, %d experts, want those of the shape",
				r.shape.Gates[gate], i, row.Condition, len(row.Reference), len(row.Judged), len(row.Route))
		}
		if n := r.scoreError(row); !math.IsNaN(n) {
			noise = append(noise, n)
		}
	}
	band := trace.TieBand{Routing: r.scoring, Measured: golden.Budget{
		Source: "errors of the scores at the edge of the choice in the judged run, 99th percentile of the gate's rows", Multiple: multiple,
		Why: "two scores, each off by as much, change places",
	}}
	if len(noise) > 0 {
		band.Measured.Value = multiple * metric.P99(noise)
		r.Noise[gate].add(len(noise), band.Measured.Value)
	}
	for _, row := range rows {
		v := trace.JudgeRoute(row.Reference, metric.TopN(row.Reference, r.shape.TopK), row.Route, band)
		r.Map.Cells[gate][row.Condition].Add(v)
		r.All.Add(v)
		r.rates[gate].add(row, v, band)
		if v.Class == trace.RouteTie || v.Class == trace.RouteFlip {
			r.Others.Add(v)
		}
	}
	return nil
}

// scoreError is what the judged run has the two scores at the edge of the choice off
// by, the larger of both; NaN where that is no number. Their difference would say less:
// of two experts that are nearly one, it is small where every other is large.
func (r *Report) scoreError(row Row) float64 {
	k := r.shape.TopK
	top := metric.TopN(row.Reference, k+1)
	if r.Sole || len(top) <= k {
		return math.NaN()
	}
	worst := 0.
	for _, id := range top[k-1:] {
		worst = math.Max(worst, math.Abs(row.Judged[id]-row.Reference[id])) // NaN stays
	}
	if math.IsInf(worst, 0) { // in a group that the other run didn't choose
		return math.NaN()
	}
	return worst
}

func (n *Noise) add(rows int, band float64) {
	if n.Rows == 0 {
		n.Smallest, n.Largest = band, band
	}
	n.Rows += rows
	n.Smallest, n.Largest = min(n.Smallest, band), max(n.Largest, band)
}

// Gates are the layers that have a router.
func (r *Report) Gates() []int { return slices.Clone(r.shape.Gates) }
