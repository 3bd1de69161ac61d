package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// conclude derives the conclusion from the results.
func (r *Report) conclude() {
	judged := map[string]bool{}
	failed, vacuous := false, false
	for _, c := range r.Checks {
		if c.Side == SideReference && (c.Status == Fail || c.Status == Error) {
			r.ReferenceFailed = true
		}
		if c.ID == "NoVacuousPass" && c.Status == Fail {
			vacuous = true // tokens may have been compared, and no value was
		}
		if c.Side != SideCandidate || c.Waived != nil {
			continue // what is waived is neither a failure nor a verdict
		}
		if c.Status.Judged() && !LooksAtResults(c.ID) {
			r.Executed++
			judged[c.ID] = true
		}
		if c.Level != Provisional && (c.Status == Fail || c.Status == Error) {
			failed = true
		}
	}
	for _, w := range r.Waivers {
		failed = failed || w.Problem != ""
	}
	for _, core := range coreOfCandidate {
		if !judged[core.ID] {
			r.NotJudged = append(r.NotJudged, NotJudged{ID: core.ID, WouldRun: r.wouldRun(core.ID, core.WouldRun)})
		}
	}
	for _, s := range r.Skips {
		if s.Reason == leftOutByOnly {
			continue // said once, below
		}
		note := "left out on request: " + s.Check
		if s.Case != "" {
			note += ", " + caseInWords(s.Case)
		}
		r.Notes = append(r.Notes, note+": "+s.Reason)
		// A waiver of the same would have to expire; what is left out only hides.
		if core := slices.ContainsFunc(coreOfCandidate, func(c coreCheck) bool { return c.ID == s.Check }); core && judged[s.Check] {
			r.NotJudged = append(r.NotJudged, NotJudged{ID: s.Check, Case: s.Case, WouldRun: "left out of " + caseInWords(s.Case) + " on request: " + s.Reason})
		}
	}
	if len(r.Only) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("only %s ran, on request: the verdict can't be better than partial", counted(len(r.Only), "check")))
	}
	switch {
	case r.ReferenceFailed:
		r.Conclusion = NothingJudged // against a reference that is wrong itself
	case failed:
		r.Conclusion = Fails
	case r.Executed == 0 || vacuous:
		r.Conclusion = NothingJudged
	case len(r.NotJudged) > 0 || len(r.Only) > 0:
		r.Conclusion = Partial
	default:
		r.Conclusion = Conforms
	}
}

// WhyPartial says what keeps a verdict that nothing contradicts from being whole.
func (r *Report) WhyPartial() string {
	switch {
	case slices.ContainsFunc(r.NotJudged, func(n NotJudged) bool { return n.Case == "" }):
		return "a Core check was judged on no case"
	case len(r.NotJudged) > 0:
		return "a Core check was left out of a case on request"
	}
	return "the run was restricted to " + counted(len(r.Only), "check")
}

func caseInWords(name string) string {
	if name == "*" {
		return "the verdict over all cases"
	}
	return "case " + name
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// wouldRun says what a check that was judged nowhere needs. Where a dump was there
// and something else was missing, the check has said what.
func (r *Report) wouldRun(id, needs string) string {
	if slices.Contains(r.Skips, CheckSkip{Check: id, Reason: leftOutByOnly}) {
		return "was " + leftOutByOnly
	}
	for _, c := range r.Checks {
		if c.ID != id || c.Side != SideCandidate || c.Reason == "" && c.Waived == nil || c.Reason == nothingOffered || c.Reason == noLogitsOffered {
			continue
		}
		if c.Waived != nil {
			return "needs a case whose failure isn't waived"
		}
		if strings.HasPrefix(c.Reason, skipped) {
			return "was " + c.Reason
		}
		if strings.Contains(c.Reason, unknownArithmetic) {
			return "needs an arithmetic that the gate can emulate, declared in engine.json: " + c.Reason
		}
		if strings.Contains(c.Reason, noEmulationFor) {
			return "needs a model that the emulation knows, or a candidate in float32; here: " + c.Reason
		}
		return needs + "; here: " + c.Reason
	}
	return needs
}

// localise names the first bad row and the sources, over all cases and for
// each.
func (r *Report) localise(ctx context.Context, evs []*Evidence, b Budgets) error {
	overall, each := locateAll(evs, b)
	provenance := ""
	for _, ev := range evs {
		l := each[ev.Case.Name]
		v := CaseVerdict{Depth: depthOf(ev.Profile, ev.ProbeProfile), Probes: probesOf(ev.ProbeProfile), Logits: stepsOf(ev.Logits), Judged: l.judged, Reason: ev.NoProfile,
			Inputs: inputsOf(ev.Case)}
		switch {
		case l.provenance != "":
			v.File = ev.CandidateFile
			v.Reason = fmt.Sprintf("the rows are those of case %s", l.provenance)
			provenance = fmt.Sprintf("case %s: the rows are those of case %s, under this one's fingerprint", ev.Case.Name, l.provenance)
			r.Notes = append(r.Notes, provenance)
		case l.judged:
			first := l.first()
			v.FirstBadRow, v.Source = rowAndSource(first)
			v.FirstBadPosition = first.position
			if first.Row >= 0 {
				v.File = ev.CandidateFile
			}
		case ev.CandidateErr != nil:
			v.Reason = ev.CandidateErr.Error()
			var bad *engine.MalformedError
			if errors.As(ev.CandidateErr, &bad) {
				v.File = bad.File
			}
		default:
			v.File = ev.CandidateFile
		}
		r.Cases[ev.Case.Name] = v
	}
	if overall.Row != 0 && r.inputIsWrong(overall.Row < 0) {
		overall = Locus{Row: 0, Kind: KindInput, Sources: []engine.Probe{engine.ProbeEmbed}, Notes: []string{
			"row 0 is not the embedding of the last prompt token: whatever follows has another input"}}
	}
	partner, healed, err := swapPartner(ctx, evs, overall)
	if err != nil {
		return err
	}
	if partner != "" {
		overall.Notes = append(overall.Notes, partner)
	}
	if healed {
		overall.Kind = KindLayer
		overall.Notes = slices.DeleteFunc(overall.Notes, func(n string) bool { return n == overall.healing })
		overall.Sources = append([]engine.Probe{engine.RowProbe(overall.Row)}, overall.Sources...)
	}
	r.FirstBadRow, r.Source = rowAndSource(overall)
	r.FirstBadPosition = overall.position
	r.Notes = append(r.Notes, overall.Notes...)
	if overall.Row >= 0 {
		kind := overall.Kind
		r.Kind = &kind
		r.Sources = append(r.Sources, overall.Sources...)
		if kind == KindDump {
			r.Source = nil
		} else if source, ok := r.headFault(evs); ok {
			r.Sources = append(r.Sources, source)
		}
	} else if provenance != "" {
		kind := KindProvenance
		r.Kind = &kind
	} else if source, ok := r.headFault(evs); ok {
		kind := KindHead
		r.Kind, r.Source = &kind, &source
		r.Sources = append(r.Sources, source)
	} else if k := r.formKind(); k != "" {
		r.Kind = &k
	}
	r.Notes = append(r.Notes, r.declarationNotes(evs)...)
	r.Power, r.Logits = power(evs), summarise(evs)
	return nil
}

// inputsOf is CaseVerdict.Inputs.
func inputsOf(c engine.Case) string {
	h := fnv.New64a()
	for _, id := range c.TokenIDs {
		fmt.Fprintf(h, "%d ", id)
	}
	return fmt.Sprintf("%016x %016x", dumpfmt.Fingerprint(c.Text), h.Sum64())
}

// declarationNotes say what a candidate's own description has to do with the
// verdict.
func (r *Report) declarationNotes(evs []*Evidence) []string {
	var out []string
	offered, wrong := 0, 0
	float := false
	for _, ev := range evs {
		for _, n := range ev.Notes {
			out = append(out, fmt.Sprintf("case %s: %s", ev.Case.Name, n))
		}
		if ev.wrongModel() {
			wrong++
		}
		if ev.Offered || ev.CandidateErr != nil {
			offered++
		}
		float = float || (ev.Profile != nil && arithmeticOf(ev.Declared).float)
	}
	d := r.Candidate
	if offered > 0 && wrong == offered {
		note := "every dump has the shape of another model than the reference's"
		if d.Model != "" {
			note += fmt.Sprintf(": the candidate calls its own %q", d.Model)
		}
		out = append(out, note)
	}
	if float && d.Weights == "" && d.Activations == "" && d.DType == "" && len(r.Failures()) > 0 {
		out = append(out, "the candidate was held to float32, since it declares float rows and no weights, activations or dtype "+
			"(engine.json is the place to say int8)")
	}
	return out
}

func rowAndSource(l Locus) (*int, *engine.Probe) {
	if l.Row < 0 {
		return nil, nil
	}
	row := l.Row
	if s := l.Source(); s != "" && l.Kind != KindDump {
		return &row, &s
	}
	return &row, nil
}

// inputIsWrong reports whether LastTokenEmbed failed: on one case when anyCase
// is set, else on most of those that it judged.
func (r *Report) inputIsWrong(anyCase bool) bool {
	failed, judged := 0, 0
	for _, c := range r.Checks {
		if c.ID == "LastTokenEmbed" && c.Side == SideCandidate && c.Status.Judged() {
			judged++
			if c.Status == Fail {
				failed++
			}
		}
	}
	return 2*failed > judged || (anyCase && failed > 0)
}

// formKind is the kind of a failure of form or provenance.
func (r *Report) formKind() Kind {
	for _, c := range r.Checks {
		if c.Side == SideCandidate && (c.Status == Fail || c.Status == Error) && c.Kind != "" {
			return c.Kind
		}
	}
	return ""
}
