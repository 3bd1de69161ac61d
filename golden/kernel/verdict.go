package kernel

import (
	"fmt"
	"math"
)

// Conclusion is the outcome of a comparison; the words are those of every report.
type Conclusion string

// The conclusions.
const (
	Conforms      Conclusion = "conforms"
	Fails         Conclusion = "fails"
	NothingJudged Conclusion = "nothing judged"
)

// Verdict is Plumbline's own. Evidence comes before numbers: every tensor of the
// inventory, finite, with a reference that isn't all zero. Bounds are written so
// that NaN fails them.
type Verdict struct {
	Conclusion Conclusion
	// Class is empty where nothing was compared. FloorCandidate means that all of
	// it holds.
	Class Class
	// Compared of Expected tensors have figures.
	Compared, Expected int
	// How many tensors are missing, of another size or shape, unreadable, hold a
	// NaN or an infinity (or figures that are one), have an all-zero reference, and have no difference at
	// all.
	Missing, WrongSize, Unreadable, NonFinite, ZeroReference, Identical int

	// FirstBreach of each op, and Overall, by layer, then position, then op. A
	// difference that is no number is a breach.
	FirstBreach []*Breach
	Overall     *Breach
	// Layers are the kernel bound by layer.
	Layers []LayerBound
	// BoundHolds: each layer's bound op is complete and below the bound.
	BoundHolds bool
	// LargestBoundOp is the bound op's largest difference; MaxAbsHolds, that it is
	// below the kernel test's own ceiling. NaN counts as the largest.
	LargestBoundOp *Breach
	MaxAbsHolds    bool
	// OverMaxAbs is how many tensors of the bound op aren't.
	OverMaxAbs int

	// Findings are what is wrong, in words, gravest first; of each kind the first
	// few.
	Findings []Finding
	// Differs says, per reason, where the script comes to something else; empty
	// where the two agree.
	Differs []string
	// Power is what these rows can't show, or were judged without.
	Power []string
}

// LayerBound is the kernel bound in one layer.
type LayerBound struct {
	// Max is the bound op's largest nRMSE over the positions, at position At (an
	// index); NaN without a number, and -1.
	Max float64
	At  int
	// Compared is how many positions have a number.
	Compared int
	Holds    bool
}

// Kind says what is wrong with a tensor, or with all of them.
type Kind string

// The kinds of findings.
const (
	KindMissing       Kind = "missing"
	KindWrongSize     Kind = "size"
	KindUnreadable    Kind = "unreadable"
	KindNonFinite     Kind = "non-finite"
	KindZeroReference Kind = "zero reference"
	KindBreach        Kind = "breach"
	KindBound         Kind = "kernel bound"
	KindMaxAbs        Kind = "max abs"
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind Kind
	// Key is the tensor, its Position and Op -1 where the finding is a layer's.
	Key
	// Got and Limit are NaN where the kind has none.
	Got, Limit float64
	// Says is the finding in words.
	Says string
}

// perKind bounds the findings of one kind; the counts go on.
const perKind = 20

// Judge comes to both verdicts. Its memory doesn't grow with the number of
// positions.
type Judge struct {
	inv     *Inventory
	t       Thresholds
	script  *Script
	v       *Verdict
	last    []*float64 // the bound op's nRMSE at the last step, by layer
	next    int
	kinds   map[Kind][]Finding
	legacy  int // rows whose nRMSE equals the legacy formula
	nonzero int
	stats   bool // any row came from tensors
}

// NewJudge returns a judge for the rows of inv.
func NewJudge(inv *Inventory, t Thresholds) *Judge {
	v := &Verdict{Expected: inv.Len(), FirstBreach: make([]*Breach, len(inv.Ops)), Layers: make([]LayerBound, len(inv.Layers)), MaxAbsHolds: true}
	for i := range v.Layers {
		v.Layers[i] = LayerBound{Max: math.NaN(), At: -1}
	}
	return &Judge{inv: inv, t: t, script: newScript(inv), v: v, last: make([]*float64, len(inv.Layers)), kinds: map[Kind][]Finding{}}
}

// Add takes the next row. Rows come in the inventory's order, each once; another
// one is an error of the caller's.
func (j *Judge) Add(r Row) error {
	if j.next >= j.inv.Len() || r.Key != j.inv.Key(j.next) {
		return fmt.Errorf("kernel: judge: got %+v as row %d, want the inventory's order", r.Key, j.next)
	}
	j.next++
	j.script.add(j.inv, j.t, &r)
	j.own(&r)
	return nil
}

func (j *Judge) own(r *Row) {
	v := j.v
	if !r.Compared() {
		switch r.Problem {
		case Missing:
			v.Missing++
			j.find(KindMissing, r.Key, math.NaN(), math.NaN(), r.Note)
		case WrongSize:
			v.WrongSize++
			j.find(KindWrongSize, r.Key, math.NaN(), math.NaN(), r.Note)
		default:
			v.Unreadable++
			j.find(KindUnreadable, r.Key, math.NaN(), math.NaN(), r.Note)
		}
		return
	}
	v.Compared++
	j.stats = j.stats || r.Stats != nil
	switch {
	case r.NonFinite():
		v.NonFinite++
		j.find(KindNonFinite, r.Key, math.NaN(), math.NaN(), nonFiniteText(r))
	case r.ZeroReference():
		v.ZeroReference++
		j.find(KindZeroReference, r.Key, r.MaxAbs, math.NaN(), "the reference is all zero: nRMSE has no denominator")
	}
	if r.MaxAbs == 0 {
		v.Identical++
	}
	if j.t.breaches(r.MaxAbs) {
		b := &Breach{r.Key, r.MaxAbs}
		if v.FirstBreach[r.Op] == nil {
			v.FirstBreach[r.Op] = b
		}
		if v.Overall == nil { // rows come in the order that decides
			v.Overall = b
		}
	}
	if r.Op == j.inv.BoundOp {
		j.bound(r)
	}
}

func nonFiniteText(r *Row) string {
	if r.Stats == nil || r.Stats.NonFinite() == 0 {
		return "figures that are no numbers: a NaN or an infinity in the tensors, or means beyond float32"
	}
	s := r.Stats
	return fmt.Sprintf("NaN or infinite: %d values of the reference, %d of the candidate, the first at index %d", s.RefNaN+s.RefInf, s.CandNaN+s.CandInf, s.FirstNonFinite)
}

// bound takes a row of the bound op.
func (j *Judge) bound(r *Row) {
	v, layer := j.v, &j.v.Layers[r.Layer]
	if x := r.Relative(); !math.IsNaN(x) && !r.NonFinite() {
		layer.Compared++
		if !(x <= layer.Max) {
			layer.Max, layer.At = x, r.Position
		}
	}
	if l := v.LargestBoundOp; l == nil || !(r.MaxAbs <= l.MaxAbs) && !math.IsNaN(l.MaxAbs) {
		v.LargestBoundOp = &Breach{r.Key, r.MaxAbs}
	}
	if !below(r.MaxAbs, j.t.MaxAbs) {
		v.MaxAbsHolds = false
		v.OverMaxAbs++
		j.find(KindMaxAbs, r.Key, r.MaxAbs, j.t.MaxAbs.Value, "the kernel's test wants it below the limit")
	}
	if r.Position == len(j.inv.Positions)-1 {
		j.last[r.Layer] = &r.NRMSE
	}
	if r.NRMSE > 0 && r.Stats == nil {
		j.nonzero++
		if math.Abs(r.NRMSE-r.RelErrPct/100) <= 1e-6*r.NRMSE {
			j.legacy++
		}
	}
}

func (j *Judge) find(k Kind, at Key, got, limit float64, says string) {
	if len(j.kinds[k]) < perKind {
		j.kinds[k] = append(j.kinds[k], Finding{k, at, got, limit, says})
	}
}

// Verdicts ends the judging.
func (j *Judge) Verdicts() (*Script, *Verdict) {
	j.script.finish(j.inv, j.t, j.last)
	v := j.v
	v.BoundHolds = true
	for i := range v.Layers {
		l := &v.Layers[i]
		complete := l.Compared == len(j.inv.Positions)
		l.Holds = complete && below(l.Max, j.t.NRMSE)
		v.BoundHolds = v.BoundHolds && l.Holds
		if l.Compared > 0 && !below(l.Max, j.t.NRMSE) {
			j.find(KindBound, Key{i, l.At, j.inv.BoundOp}, l.Max, j.t.NRMSE.Value, fmt.Sprintf("the layer's largest nRMSE over %d positions", l.Compared))
		}
	}
	for i, b := range v.FirstBreach {
		if b != nil {
			j.find(KindBreach, b.Key, b.MaxAbs, j.t.Breach.Value, "first breach of "+j.inv.Ops[i].Name)
		}
	}
	v.Missing += j.inv.Len() - j.next // rows that never came
	evidence := v.Compared == v.Expected && v.NonFinite == 0 && v.ZeroReference == 0
	switch {
	case v.Compared == 0:
		v.Conclusion = NothingJudged
	case v.Overall != nil:
		v.Conclusion, v.Class = Fails, BugCandidate
	case !evidence, !v.BoundHolds, !v.MaxAbsHolds:
		v.Conclusion, v.Class = Fails, Ambiguous
	default:
		v.Conclusion, v.Class = Conforms, FloorCandidate
	}
	for _, k := range []Kind{KindMissing, KindWrongSize, KindUnreadable, KindNonFinite, KindZeroReference, KindBreach, KindBound, KindMaxAbs} {
		v.Findings = append(v.Findings, j.kinds[k]...)
	}
	v.Differs = j.differs()
	v.Power = j.power()
	return j.script, v
}

// differs says where the script comes to something else, and why. The order is
// that in which the script meets it.
func (j *Judge) differs() []string {
	s, v, t := j.script, j.v, j.t
	var out []string
	if s.Unreadable != nil {
		return append(out, fmt.Sprintf("%d tensors have the size that they should have and can't be read: the script ends with a traceback at the first, %s, before it has said anything",
			v.Unreadable, j.inv.Coordinates(*s.Unreadable)))
	}
	if s.Crashes() {
		return append(out, "no tensor could be compared: the script ends with a traceback, looking for the largest of no differences")
	}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if absent := v.Expected - v.Compared; absent > 0 && s.Overall == nil {
		say("%d of %d tensors were not compared: the script leaves them out, and says of each op that it is within threshold at all %d measurements", absent, v.Expected, len(j.inv.Layers)*len(j.inv.Positions))
	}
	if v.NonFinite > 0 {
		say("%d tensors hold a NaN or an infinity: to the script a NaN is not above a threshold, its max() forgets one that doesn't come first, and a NaN in the reference gives it nRMSE 0", v.NonFinite)
	}
	if v.ZeroReference > 0 {
		say("%d references are all zero: the script takes nRMSE 0 for them, whatever the candidate holds", v.ZeroReference)
	}
	missingLast := 0
	for _, x := range j.last {
		if x == nil {
			missingLast++
		}
	}
	if missingLast > 0 && s.Overall == nil {
		say("%s at the last step is missing in %d layers: the script's drill-down rule counts them as 0.0", j.inv.Ops[j.inv.BoundOp].Name, missingLast)
	}
	if !v.MaxAbsHolds && v.Overall == nil {
		say("%s reaches a max abs of %s, where the kernel's own test wants less than %s: the script knows that bound and doesn't look at it",
			j.inv.Ops[j.inv.BoundOp].Name, PythonExp(v.LargestBoundOp.MaxAbs, 6), PythonFloat(t.MaxAbs.Value))
	}
	return out
}

// power says what the rows can't show.
func (j *Judge) power() []string {
	var out []string
	v := j.v
	if v.Compared == 0 {
		return out
	}
	if v.Identical == v.Compared {
		out = append(out, "no tensor differs at all: two copies of one dump would look like this")
	}
	if !j.stats && j.nonzero > 0 && j.legacy == j.nonzero {
		out = append(out, "every recorded nrmse equals rel_err_pct/100: a constant factor does that, or another formula, mean|diff|/mean|ref|, which the kernel bound isn't for")
	}
	if !j.stats {
		out = append(out, "judged from recorded figures: the tensors weren't seen, so neither were their sizes, nor single NaNs that the figures don't show")
	}
	return append(out, "each difference includes what earlier layers passed on: the first breach is where it shows, not always where it is made")
}
