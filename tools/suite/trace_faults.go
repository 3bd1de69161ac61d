package suite

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// traceFaults are faults of a trace. Each gets one whose first source it may write, but
// for the tensors.
var traceFaults = map[string]func(of *conformance.Traced){
	"trace-gate-missing": func(of *conformance.Traced) {
		t := &of.Document.Traced[0]
		t.Gates = t.Gates[:len(t.Gates)-1]
	},
	"trace-stage-missing": func(of *conformance.Traced) {
		t := &of.Document.Traced[0]
		t.Stages = slices.Delete(t.Stages, 5, 6)
	},
	"trace-content-id-changed": func(of *conformance.Traced) {
		v := &of.Sources[0].Variants[3]
		v.TokenIDs[v.ContentPositions[1]]++
	},
	"trace-content-shifted": func(of *conformance.Traced) {
		v := &of.Sources[0].Variants[6]
		for i := range v.ContentPositions {
			v.ContentPositions[i]--
		}
	},
	"trace-crossing-counted": func(of *conformance.Traced) { of.Document.Traced[0].BoundaryCrossing[2] = 0 },
	"trace-load-moved": func(of *conformance.Traced) {
		loads := of.Document.Traced[0].Gates[5].Conditions[2][0].Loads
		from := slices.Index(loads, slices.Max(loads))
		loads[from]--
		loads[(from+1)%len(loads)]++
	},
	"trace-weighted-load-moved": func(of *conformance.Traced) {
		of.Document.Traced[0].Gates[5].Conditions[2][0].WeightedLoads[2] += 0.125
	},
	"trace-summary-of-another": func(of *conformance.Traced) { of.Document.Summary.Routes[7][3].LoadTV *= 1.5 },
	"trace-bit-flipped": func(of *conformance.Traced) {
		of.Sources[0].Recorded = spoiltTensors{Recorded: of.Sources[0].Recorded, hidden: func(stage int, h trace.Hidden) {
			if stage == 3 {
				h.Rows[1] = slices.Clone(h.Rows[1])
				h.Rows[1][2] = math.Float32frombits(math.Float32bits(h.Rows[1][2]) ^ 1)
			}
		}}
	},
	"trace-routes-reordered": func(of *conformance.Traced) {
		of.Sources[0].Recorded = spoiltTensors{Recorded: of.Sources[0].Recorded, routes: func(gate int, r trace.Routes) {
			if gate == 4 {
				r.IDs[0] = slices.Clone(r.IDs[0])
				slices.Reverse(r.IDs[0])
			}
		}}
	},
}

// spoiltTensors are tensors that are changed when they are read. The lists of rows are
// the reader's own, the rows are not.
type spoiltTensors struct {
	trace.Recorded
	hidden func(stage int, h trace.Hidden)
	routes func(gate int, r trace.Routes)
}

func (s spoiltTensors) Hidden(stage, condition, scope int) (trace.Hidden, bool) {
	h, ok := s.Recorded.Hidden(stage, condition, scope)
	if ok && s.hidden != nil && condition == 1 {
		s.hidden(stage, h)
	}
	return h, ok
}

func (s spoiltTensors) Routes(gate, condition, scope int) (trace.Routes, bool) {
	r, ok := s.Recorded.Routes(gate, condition, scope)
	if ok && s.routes != nil && condition == 1 {
		s.routes(gate, r)
	}
	return r, ok
}

// plantInTrace plants a fault in a trace, or in what it was made of. ok is false when
// the control is not one of these.
func plantInTrace(cfg conformance.Config, k conformance.Control) (_ conformance.Config, ok bool, err error) {
	edit, ok := traceFaults[k.Mutant]
	if !ok {
		return cfg, false, nil
	}
	if cfg.Trace == nil {
		return cfg, true, fmt.Errorf("suite: %s: got no trace to plant it in", k.Mutant)
	}
	planted := *cfg.Trace
	open := planted.Open
	planted.Open = func(ctx context.Context) (*conformance.Traced, error) {
		of, err := open(ctx)
		if err != nil {
			return nil, err
		}
		of = ownTrace(of)
		edit(of)
		return of, nil
	}
	cfg.Trace = &planted
	return cfg, true, nil
}

// ownTrace is a trace whose first source and summary share no memory with of.
func ownTrace(of *conformance.Traced) *conformance.Traced {
	d := *of.Document
	d.Traced = slices.Clone(d.Traced)
	t := &d.Traced[0]
	t.BoundaryCrossing, t.Stages, t.Gates = slices.Clone(t.BoundaryCrossing), slices.Clone(t.Stages), slices.Clone(t.Gates)
	for g := range t.Gates {
		t.Gates[g].Conditions = slices.Clone(t.Gates[g].Conditions)
		for c, scopes := range t.Gates[g].Conditions {
			scopes = slices.Clone(scopes)
			for i := range scopes {
				scopes[i].Loads, scopes[i].WeightedLoads = slices.Clone(scopes[i].Loads), slices.Clone(scopes[i].WeightedLoads)
			}
			t.Gates[g].Conditions[c] = scopes
		}
	}
	d.Summary.Routes = slices.Clone(d.Summary.Routes)
	for g := range d.Summary.Routes {
		d.Summary.Routes[g] = slices.Clone(d.Summary.Routes[g])
	}
	out := &conformance.Traced{Document: &d, Sources: slices.Clone(of.Sources)}
	first := &out.Sources[0]
	first.Variants = slices.Clone(first.Variants)
	for i := range first.Variants {
		v := &first.Variants[i]
		v.TokenIDs, v.ContentPositions = slices.Clone(v.TokenIDs), slices.Clone(v.ContentPositions)
	}
	return out
}
