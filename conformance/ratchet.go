package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// RatchetStep says how a baseline was made from an earlier one and a newer report.
type RatchetStep struct {
	// Improved is how many figures and verdicts became the newer report's because they
	// are better beyond the noise, Kept how many figures stayed as they were, Loosened
	// how many became worse with leave.
	Improved int `json:"improved"`
	Kept     int `json:"kept"`
	Loosened int `json:"loosened,omitempty"`
	// Reason is why it was loosened.
	Reason string `json:"reason,omitempty"`
}

// RatchetOptions say what a ratchet may do.
type RatchetOptions struct {
	// OldName and NewName are the reports' files, for messages.
	OldName, NewName string
	// AllowPartial takes partial reports.
	AllowPartial bool
	// Loosen lets figures and verdicts get worse; Reason says why, and is required then.
	Loosen bool
	Reason string
}

// WorseError says that a report is worse than the baseline that it was to replace.
type WorseError struct {
	Name    string
	Changes []Change
}

func (e *WorseError) Error() string {
	return fmt.Sprintf("conformance: ratchet: %s: got %d figures or verdicts that are worse than the baseline's, want none", e.Name, len(e.Changes))
}

// Ratchet makes the next baseline out of the present one and a newer report of the same
// candidate. It is the newer report, with the figures of the present one wherever the
// newer ones are not better beyond the noise: else the baseline would drift with the
// noise, one step at a time. comparison is what changed, and is set with a *WorseError as
// well: that is the error where something got worse and Loosen doesn't allow it. Neither
// report is changed.
func Ratchet(old, newer *Report, o RatchetOptions) (next *Report, comparison *BaselineInfo, err error) {
	if next, err = copyOf(newer); err != nil {
		return nil, nil, err
	}
	next.forgetBaseline()
	for _, b := range []struct {
		r    *Report
		name string
	}{{old, o.OldName}, {next, o.NewName}} {
		if err := refusesBaseline(b.r, b.name, o.AllowPartial); err != nil {
			return nil, nil, err
		}
	}
	if o.Loosen && blank(o.Reason) {
		return nil, nil, fmt.Errorf("conformance: ratchet: reason: got %q, want why the baseline is loosened", o.Reason)
	}
	held, err := copyOf(next)
	if err != nil {
		return nil, nil, err
	}
	if err := held.HoldToBaseline(old, o.OldName); err != nil {
		return nil, nil, err
	}
	info := held.Baseline
	if n := len(info.Regressions); n > 0 && !o.Loosen {
		return nil, info, &WorseError{o.NewName, info.Regressions}
	} else if n == 0 && o.Loosen {
		return nil, info, fmt.Errorf("conformance: ratchet: %s: got nothing that is worse, want no loosening then", o.NewName)
	}
	moved := map[figureKey]bool{}
	for _, c := range slices.Concat(info.Improvements, info.Regressions) {
		moved[figureKey{c.Check, c.Metric, c.Probe}] = true
	}
	kept := next.keepFigures(old, moved)
	if next.Repeat == nil {
		next.Repeat = old.Repeat
	}
	next.Ratchet = append(slices.Clone(old.Ratchet), RatchetStep{Improved: len(info.Improvements), Kept: kept, Loosened: len(info.Regressions), Reason: o.Reason})
	return next, info, nil
}

func copyOf(r *Report) (*Report, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("conformance: report: %w", err)
	}
	var out Report
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("conformance: report: %w", err)
	}
	return &out, nil
}

// forgetBaseline takes out what a comparison with a baseline added, and concludes anew:
// whether the report is worse than that one is not the question here.
func (r *Report) forgetBaseline() {
	if r.Baseline == nil {
		return
	}
	r.Baseline = nil
	r.Checks = slices.DeleteFunc(r.Checks, func(c Result) bool { return c.ID == baselineID })
	r.About = slices.DeleteFunc(r.About, func(c CheckInfo) bool { return c.ID == baselineID })
	r.Power = slices.DeleteFunc(r.Power, func(p string) bool { return strings.HasPrefix(p, againstBaseline) })
	r.Executed, r.NotJudged, r.ReferenceFailed = 0, nil, false
	r.conclude()
}

// keepFigures takes the earlier report's figures but for those that moved, and counts
// them. The rows of logits go together: their steps depend on each other.
func (r *Report) keepFigures(old *Report, moved map[figureKey]bool) int {
	kept := map[figureKey]bool{}
	stays := func(k figureKey) bool {
		if moved[k] {
			return false
		}
		kept[k] = true
		return true
	}
	for _, name := range casesBoth(old, r) {
		was, is := old.Cases[name], r.Cases[name]
		for i := 0; i < len(was.Depth) && i < len(is.Depth); i++ {
			b, a := was.Depth[i], &is.Depth[i]
			if stays(figureKey{"ResidualCandidate", figureAccumulated, string(a.Probe)}) {
				a.Accumulated, a.AccumulatedRatio = b.Accumulated, b.AccumulatedRatio
			}
			if a.Local != nil && b.Local != nil && a.LocalAllPositions == b.LocalAllPositions && stays(figureKey{"LocalError", figureLocal, string(a.Probe)}) {
				a.Local, a.LocalRatio = b.Local, b.LocalRatio
			}
		}
		for _, b := range was.Probes {
			i := slices.IndexFunc(is.Probes, func(a ProbeRow) bool { return a.Probe == b.Probe })
			if i >= 0 && stays(figureKey{"ProbeCandidate", figurePositions, string(b.Probe)}) {
				is.Probes[i] = b
			}
		}
		logits := true
		for _, metric := range []string{figureLogits, figureKL, figureRegret} {
			logits = logits && !moved[figureKey{"LogitCandidate", metric, "logits"}]
		}
		if logits && len(was.Logits) > 0 && len(is.Logits) > 0 {
			for _, metric := range []string{figureLogits, figureKL, figureRegret} {
				stays(figureKey{"LogitCandidate", metric, "logits"})
			}
			is.Logits = was.Logits
		}
		r.Cases[name] = is
	}
	return len(kept)
}
