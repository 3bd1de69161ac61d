package conformance

import (
	"errors"

	"github.com/plumbline-go/plumbline/engine"
)

// foundElsewhere is what was seen in the process that had the engines.
type foundElsewhere struct {
	locus  caseLocus
	misses map[int]layerMisses
}

// The wire types are what a shard's evidence file holds. They have no pointers: gob
// takes one to a zero for none.

// caseWire is what merging needs of a case.
type caseWire struct {
	// Index is the case's place in the whole run.
	Index int
	Case  engine.Case
	// Outcomes are what the checks said of it.
	Outcomes []outcomeWire

	Offered         bool
	WrongVocabulary bool
	Header          engine.CaptureHeader
	File            string
	NoProfile       string
	Notes           []string
	Err             *errorWire
	ListsOwnCases   bool
	OutputIDs       []int
	Profile         *Profile
	Probes          *probesWire
	Places          *placesWire
	Form            *formWire
	Logits          *LogitProfile
	// Reference are the reference's rows, and Candidate the candidate's where they are
	// wrong: another case's may be those.
	Reference, Candidate  [][]float64
	FormLocus, ValueLocus locusWire
	Judged, AllPositions  bool
	// Misses are there for the rows at which the case stands out, if no case of the
	// shard before it does.
	Misses map[int]layerMisses
}

type outcomeWire struct {
	Check    string
	Side     Side
	Status   Status
	Kind     Kind
	Reason   string
	Findings []findingWire
}

type findingWire struct {
	Finding               Finding // without At and follows
	Row, Channel          int
	File                  string
	Step, Position, Point []int // none or one
	Follows               bool
}

type locusWire struct {
	Locus    Locus // its exported part
	Healed   int
	Healing  string
	Position []int // none or one
	Form     bool
}

type errorWire struct {
	Text, File string
	Malformed  bool
}

type probesWire struct {
	Profile             ProbeProfile // its exported part
	FloatFactors        Factors
	Float, WeightsKnown bool
}

type placesWire struct {
	Positions, Prefixes int
	Names               []engine.Probe
}

type formWire struct {
	Form LogitForm
	// ToldNone tells an empty list of tokens from none.
	ToldNone bool
}

func listOf(p *int) []int {
	if p == nil {
		return nil
	}
	return []int{*p}
}

func pointerOf(xs []int) *int {
	if len(xs) == 0 {
		return nil
	}
	return &xs[0]
}

func wireOfOutcome(id string, side Side, o Outcome) outcomeWire {
	w := outcomeWire{Check: id, Side: side, Status: o.Status, Kind: o.Kind, Reason: o.Reason}
	for _, f := range o.Findings {
		at := f.At
		x := findingWire{Row: at.Row, Channel: at.Channel, File: at.File, Step: listOf(at.Step), Position: listOf(at.Position), Point: listOf(at.Point), Follows: f.follows}
		f.At = At{}
		x.Finding = f
		w.Findings = append(w.Findings, x)
	}
	return w
}

func (w outcomeWire) outcome() Outcome {
	o := Outcome{Status: w.Status, Kind: w.Kind, Reason: w.Reason}
	for _, x := range w.Findings {
		f := x.Finding
		f.At = At{Row: x.Row, Channel: x.Channel, File: x.File, Step: pointerOf(x.Step), Position: pointerOf(x.Position), Point: pointerOf(x.Point)}
		f.follows = x.Follows
		o.Findings = append(o.Findings, f)
	}
	return o
}

func wireOfLocus(l Locus) locusWire {
	return locusWire{Locus: l, Healed: l.healed, Healing: l.healing, Position: listOf(l.position), Form: l.form}
}

func (w locusWire) locus() Locus {
	l := w.Locus
	l.healed, l.healing, l.position, l.form = w.Healed, w.Healing, pointerOf(w.Position), w.Form
	return l
}

// storedError is a candidate's error as another process saw it.
type storedError struct {
	text string
	as   error
}

func (e *storedError) Error() string { return e.text }
func (e *storedError) Unwrap() error { return e.as }

func wireOfError(err error) *errorWire {
	if err == nil {
		return nil
	}
	w := &errorWire{Text: err.Error()}
	var bad *engine.MalformedError
	if w.Malformed = errors.As(err, &bad); w.Malformed {
		w.File = bad.File
	}
	return w
}

func (w *errorWire) error() error {
	if w == nil {
		return nil
	}
	e := &storedError{text: w.Text}
	if w.Malformed {
		e.as = &engine.MalformedError{File: w.File, Err: errors.New(w.Text)}
	}
	return e
}

// wireOf takes of a case what merging needs.
func wireOf(ev *Evidence) caseWire {
	l := locateOne(ev, ev.Budgets)
	w := caseWire{
		Case: ev.Case, Offered: ev.Offered, WrongVocabulary: ev.wrongVocabulary, Header: ev.CandidateHeader, File: ev.CandidateFile,
		NoProfile: ev.NoProfile, Notes: ev.Notes, Err: wireOfError(ev.CandidateErr), ListsOwnCases: ev.listsOwnCases, OutputIDs: ev.OutputIDs,
		Profile: ev.Profile, Logits: ev.Logits, FormLocus: wireOfLocus(l.form), ValueLocus: wireOfLocus(l.value), Judged: l.judged, AllPositions: l.allPositions,
	}
	if ev.Reference != nil {
		w.Reference = ev.Reference.Rows
	}
	if ev.Candidate != nil && l.value.Row >= 0 {
		w.Candidate = ev.Candidate.Rows
	}
	if p := ev.ProbeProfile; p != nil {
		w.Probes = &probesWire{Profile: *p, FloatFactors: p.floatFactors, Float: p.float, WeightsKnown: p.weightsKnown}
	}
	if p := ev.Places; p != nil {
		w.Places = &placesWire{Positions: p.Positions, Prefixes: p.Prefixes}
		for name := range p.Rows {
			w.Places.Names = append(w.Places.Names, name)
		}
	}
	if f := ev.LogitForm; f != nil {
		w.Form = &formWire{Form: *f, ToldNone: f.Told != nil && len(f.Told) == 0}
	}
	return w
}

// evidence is the case as checks over all cases and the localisation look at it.
func (w caseWire) evidence(of *shardWire) *Evidence {
	ev := &Evidence{
		Case: w.Case, Arch: of.Arch, Budgets: of.Budgets, Declared: of.Candidate, Offered: w.Offered, wrongVocabulary: w.WrongVocabulary,
		CandidateHeader: w.Header, CandidateFile: w.File, NoProfile: w.NoProfile, Notes: w.Notes, CandidateErr: w.Err.error(),
		listsOwnCases: w.ListsOwnCases, OutputIDs: w.OutputIDs, Profile: w.Profile, Logits: w.Logits,
		found: &foundElsewhere{misses: w.Misses, locus: caseLocus{form: w.FormLocus.locus(), value: w.ValueLocus.locus(), judged: w.Judged, allPositions: w.AllPositions}},
	}
	if w.Reference != nil {
		ev.Reference = &Capture{Rows: w.Reference}
	}
	if w.Candidate != nil {
		ev.Candidate = &Capture{Rows: w.Candidate}
	}
	if p := w.Probes; p != nil {
		x := p.Profile
		x.floatFactors, x.float, x.weightsKnown = p.FloatFactors, p.Float, p.WeightsKnown
		ev.ProbeProfile = &x
	}
	if p := w.Places; p != nil {
		ev.Places = &Places{Positions: p.Positions, Prefixes: p.Prefixes, Rows: map[engine.Probe][][]float64{}}
		for _, name := range p.Names {
			ev.Places.Rows[name] = nil
		}
	}
	if f := w.Form; f != nil {
		x := f.Form
		if f.ToldNone {
			x.Told = []int{}
		}
		ev.LogitForm = &x
	}
	return ev
}
