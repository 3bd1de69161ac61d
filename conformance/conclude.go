package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// conclude derives the conclusion from the results.
func (r *Report) conclude() {
	judged := map[string]bool{}
	failed := false
	for _, c := range r.Checks {
		if c.Side == SideReference && (c.Status == Fail || c.Status == Error) {
			r.ReferenceFailed = true
		}
		if c.Side != SideCandidate {
			continue
		}
		if c.Status.Judged() {
			r.Executed++
			judged[c.ID] = true
		}
		if c.Level != Provisional && (c.Status == Fail || c.Status == Error) {
			failed = true
		}
	}
	for _, core := range coreOfCandidate {
		if !judged[core.ID] {
			r.NotJudged = append(r.NotJudged, NotJudged{ID: core.ID, WouldRun: core.WouldRun})
		}
	}
	switch {
	case failed:
		r.Conclusion = Fails
	case r.Executed == 0:
		r.Conclusion = NothingJudged
	case len(r.NotJudged) > 0:
		r.Conclusion = Partial
	default:
		r.Conclusion = Conforms
	}
}

// localise names the first bad row and the sources, over all cases and for
// each.
func (r *Report) localise(ctx context.Context, evs []*Evidence, b Budgets) error {
	overall, each := locateAll(evs, b)
	for _, ev := range evs {
		v := CaseVerdict{Depth: depthOf(ev.Profile)}
		l, ok := each[ev.Case.Name]
		switch {
		case ok:
			v.Judged = true
			v.FirstBadRow, v.Source = rowAndSource(l)
			if l.Row >= 0 {
				v.File = ev.CandidateFile
			}
		case ev.CandidateErr != nil:
			v.Reason = ev.CandidateErr.Error()
			var bad *engine.MalformedError
			if errors.As(ev.CandidateErr, &bad) {
				v.File = bad.File
			}
		default:
			v.Reason = ev.NoProfile
			v.File = ev.CandidateFile
		}
		r.Cases[ev.Case.Name] = v
	}
	if overall.Row < 0 && r.failedAt("LastTokenEmbed") {
		overall = Locus{Row: 0, Kind: KindInput, Sources: []engine.Probe{engine.ProbeEmbed}}
	}
	partner, err := swapPartner(ctx, evs, overall)
	if err != nil {
		return err
	}
	if partner != "" {
		overall.Notes = append(overall.Notes, partner)
	}
	r.FirstBadRow, r.Source = rowAndSource(overall)
	r.Notes = overall.Notes
	if overall.Row >= 0 {
		kind := overall.Kind
		r.Kind = &kind
		r.Sources = append(r.Sources, overall.Sources...)
		if kind == KindDump {
			r.Source = nil
		}
	} else if k := r.formKind(); k != "" {
		r.Kind = &k
	}
	r.Power = power(evs)
	return nil
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

func (r *Report) failedAt(id string) bool {
	for _, c := range r.Checks {
		if c.ID == id && c.Side == SideCandidate && c.Status == Fail {
			return true
		}
	}
	return false
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

// power says what the dumps can show and what they can't.
func power(evs []*Evidence) []string {
	var judged, positions int
	quantised := false
	for _, ev := range evs {
		if ev.Profile == nil {
			continue
		}
		judged++
		positions += len(ev.Case.TokenIDs)
		quantised = quantised || !arithmeticOf(ev.Declared).float
	}
	if judged == 0 {
		return []string{"no case was judged by value"}
	}
	out := []string{fmt.Sprintf("%d of %d prompts, %d tokens in all, judged by value at each prompt's last position; probes: embed and every blocks.N.resid_post",
		judged, len(evs), positions)}
	if judged < MedianCases {
		out = append(out, fmt.Sprintf("fewer than %d prompts: each is judged alone, with the wider single-prompt bound", MedianCases))
	}
	out = append(out,
		"not seen: final norm, output head and logits (no check of values is built yet)",
		"not seen: a fault at earlier positions that the last row does not feel, and a smaller fault behind a larger one: dump all positions")
	if quantised {
		out = append(out, "not seen in int8 rows: a wrong norm epsilon")
	}
	return out
}
