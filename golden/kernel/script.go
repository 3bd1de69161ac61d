package kernel

import (
	"fmt"
	"strconv"
)

// Class is what a comparison amounts to.
type Class string

// The classes of tq_c0_diff.py.
const (
	// BugCandidate: a tensor breaches the threshold.
	BugCandidate Class = "bug-candidate"
	// FloorCandidate: none does, and the kernel bound holds in each layer: what is
	// left is the floor of the quantisation.
	FloorCandidate Class = "floor-candidate"
	// Ambiguous: neither.
	Ambiguous Class = "ambiguous"
)

// Breach is a tensor and its max |ref - cand|.
type Breach struct {
	Key
	MaxAbs float64
}

// Progress is a tensor's entry in the per-layer table.
type Progress struct {
	MaxAbs, NRMSE float64
}

// Script is what tq_c0_diff.py says of the rows, with its own rules for what is
// absent or no number: rows without figures are left out, a comparison with NaN
// is false, and the largest of values is Python's max, which keeps a NaN only where it
// comes first. Its constants (30 layers, 7 positions, steps 5 and 30, 15 layers) are
// the inventory's here.
type Script struct {
	// Rows is how many rows there were, Skipped how many of them had a note.
	Rows, Skipped int
	// FirstBreach is the first breach of each op, Overall that of all of them;
	// nil where there is none.
	FirstBreach []*Breach
	Overall     *Breach
	// Progression is the per-layer table: [layer][op], nil without a row.
	Progression [][]*Progress
	// Bound is the bound op's largest nRMSE in each layer, nil without a row.
	Bound      []*float64
	BoundHolds bool

	// Unreadable is the first tensor that the script would end with a traceback
	// reading: it then says nothing at all, and Class is empty.
	Unreadable *Key

	Class           Class
	DrilldownNeeded bool
	DrilldownReason string
	// Largest is the tensor with the largest difference; the script prints it
	// without a breach, and ends with a traceback where there is none.
	Largest *Breach

	lastStep *float64 // the largest nRMSE of the bound op at the last step
}

func newScript(inv *Inventory) *Script {
	s := &Script{FirstBreach: make([]*Breach, len(inv.Ops)), Bound: make([]*float64, len(inv.Layers)), Progression: make([][]*Progress, len(inv.Layers))}
	for i := range s.Progression {
		s.Progression[i] = make([]*Progress, len(inv.Ops))
	}
	return s
}

// pythonMax is max(old, x) with x later in the sequence.
func pythonMax(old *float64, x float64) *float64 {
	if old == nil || x > *old {
		return &x
	}
	return old
}

// add takes the next row, in the inventory's order.
func (s *Script) add(inv *Inventory, t Thresholds, r *Row) {
	if r.Absent {
		return
	}
	s.Rows++
	if !r.Compared() {
		s.Skipped++
		if s.Unreadable == nil && r.killsScript() {
			k := r.Key
			s.Unreadable = &k
		}
		return
	}
	b := Breach{r.Key, r.MaxAbs}
	if first := &s.FirstBreach[r.Op]; *first == nil && r.MaxAbs > t.Breach.Value {
		*first = &b
	}
	if s.Largest == nil || r.MaxAbs > s.Largest.MaxAbs {
		s.Largest = &b
	}
	if r.Position == inv.Progression {
		s.Progression[r.Layer][r.Op] = &Progress{r.MaxAbs, r.NRMSE}
	}
	if r.Op == inv.BoundOp {
		s.Bound[r.Layer] = pythonMax(s.Bound[r.Layer], r.NRMSE)
	}
}

// finish comes to the verdict. last is the bound op's nRMSE at the last step, by
// layer, nil without a row.
func (s *Script) finish(inv *Inventory, t Thresholds, last []*float64) {
	breaching := 0
	for _, b := range s.FirstBreach {
		if b == nil {
			continue
		}
		breaching++
		if s.Overall == nil || b.Layer < s.Overall.Layer || b.Layer == s.Overall.Layer && b.Position < s.Overall.Position {
			s.Overall = b
		}
	}
	s.BoundHolds = true
	for _, v := range s.Bound {
		s.BoundHolds = s.BoundHolds && v != nil && *v < t.NRMSE.Value
	}
	if k := s.Unreadable; k != nil {
		s.BoundHolds = false
		s.DrilldownReason = "the script ends with a traceback, reading " + inv.Coordinates(*k)
		return
	}
	if b := s.Overall; b != nil {
		s.Class = BugCandidate
		if s.DrilldownNeeded = breaching > 1 || b.Layer > inv.LateLayer; s.DrilldownNeeded {
			s.DrilldownReason = fmt.Sprintf("Multiple ops breach (%d) or late breach (layer=%d)", breaching, b.Layer)
		} else {
			s.DrilldownReason = fmt.Sprintf("Single-op clean breach at layer=%d pos=%d op=%s", b.Layer, inv.Positions[b.Position].Step, inv.Ops[b.Op].Name)
		}
		return
	}
	s.Class = Ambiguous
	if s.BoundHolds {
		s.Class = FloorCandidate
	}
	for _, v := range last {
		x := 0.0 // a missing row counts as 0
		if v != nil {
			x = *v
		}
		s.lastStep = pythonMax(s.lastStep, x)
	}
	s.DrilldownReason = "no breach, nrmse well within bounds"
	if s.lastStep != nil && *s.lastStep > t.Drilldown.Value {
		s.DrilldownNeeded = true
		s.DrilldownReason = fmt.Sprintf("%s nrmse at pos%d reaches %s > %s", inv.Ops[inv.BoundOp].Name, inv.Positions[len(inv.Positions)-1].Step,
			strconv.FormatFloat(*s.lastStep, 'f', 4, 64), PythonFloat(t.Drilldown.Value))
	}
}

// Crashes reports whether the script ends with a traceback: it reads a file that
// can't be read, or looks for the largest of no differences.
func (s *Script) Crashes() bool {
	return s.Unreadable != nil || s.Overall == nil && s.Largest == nil
}
