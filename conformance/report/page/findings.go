package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
)

// maxFindings is how many findings a page has, and maxResults how many results of one
// check: beyond that a table is no longer read, and slow.
const (
	maxFindings = 3000
	maxResults  = 250
)

// finding is a line of a table.
type finding struct {
	Check, Case, Place, Metric string
	Got, Limit, Ratio          string
	GotKey, LimitKey, RatioKey string
	Source, Detail, Where      string
	Status                     status
	Waived                     bool
	Exact                      bool
	excess                     float64
	first                      bool // the worst of its check
}

// Excess is how far a finding is beyond its limit: 1 is on it.
func Excess(f conformance.Finding) float64 { return excess(f) }

func excess(f conformance.Finding) float64 {
	got, limit := float64(f.Got), float64(f.Limit.Value)
	if f.Exact {
		if got == limit {
			return 0
		}
		return math.Inf(1)
	}
	x := got / limit
	if math.IsNaN(x) {
		if got == 0 && limit == 0 {
			return 0
		}
		return math.Inf(1)
	}
	return x
}

// worstOf is the finding furthest beyond its limit, nil without one.
func worstOf(r conformance.Result) *conformance.Finding {
	if len(r.Findings) == 0 {
		return nil
	}
	worst := 0
	for i := range r.Findings {
		if excess(r.Findings[i]) > excess(r.Findings[worst]) {
			worst = i
		}
	}
	return &r.Findings[worst]
}

func lineOf(r conformance.Result, f conformance.Finding) finding {
	x := excess(f)
	out := finding{Check: r.ID, Case: r.Case, Place: string(f.Probe), Metric: f.Metric, Got: figure(f.Got), Limit: figure(f.Limit.Value),
		GotKey: sortKey(float64(f.Got)), LimitKey: sortKey(float64(f.Limit.Value)), Ratio: number(x), RatioKey: sortKey(x),
		Source: f.Limit.Source, Detail: f.Detail, Where: whereOf(f.At), Status: statusOf(r.Status), Waived: r.Waived != nil, Exact: f.Exact, excess: x}
	if f.Exact { // it is the limit's value or it isn't
		out.Ratio, out.RatioKey = "≠", "1e308"
		if x == 0 {
			out.Ratio, out.RatioKey = "=", "0"
		}
	}
	return out
}

// whereOf are coordinates in words.
func whereOf(a conformance.At) string {
	s := ""
	add := func(format string, n int) {
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf(format, n)
	}
	if a.Row >= 0 {
		add("row %d", a.Row)
	}
	if a.Position != nil {
		add("position %d", *a.Position)
	}
	if a.Point != nil {
		add("point %d", *a.Point)
	}
	if a.Step != nil {
		add("step %d", *a.Step)
	}
	if a.Channel >= 0 {
		add("channel %d", a.Channel)
	}
	return s
}

// findingTable is what a page has of all findings, worst first.
type findingTable struct {
	Lines []finding
	// All is how many findings there are of results that failed or gave no answer.
	All int
}

// Left is how many are in report.json alone.
func (t findingTable) Left() int { return t.All - len(t.Lines) }

// findingsOf takes the findings of what failed. Each check's worst are in it, whatever
// the number.
func findingsOf(r *conformance.Report) findingTable {
	var t findingTable
	seen := map[string]int{}
	var lines []finding
	for _, res := range r.Checks {
		if res.Status != conformance.Fail && res.Status != conformance.Error {
			continue
		}
		for _, f := range res.Findings {
			lines = append(lines, lineOf(res, f))
		}
	}
	t.All = len(lines)
	slices.SortStableFunc(lines, func(a, b finding) int { return cmp.Compare(b.excess, a.excess) })
	for i := range lines {
		lines[i].first = seen[lines[i].Check] < 3
		seen[lines[i].Check]++
	}
	if len(lines) > maxFindings {
		first := 0
		for _, l := range lines {
			if l.first {
				first++
			}
		}
		room := max(maxFindings-first, 0)
		kept := lines[:0]
		for _, l := range lines {
			if l.first || room > 0 {
				if !l.first {
					room--
				}
				kept = append(kept, l)
			}
		}
		lines = kept
	}
	t.Lines = lines
	return t
}
