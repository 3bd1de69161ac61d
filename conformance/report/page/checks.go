package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// check is what a report says of one check.
type check struct {
	conformance.CheckInfo
	Anchor string
	Status status
	// Says sums its results up.
	Says    string
	Open    bool
	Results []result
	Left    int
	excess  float64
	// Nearest is, where nothing failed, the finding nearest to its bound.
	Nearest   *finding
	SidesText string
}

// result is a line of a check's table.
type result struct {
	Case, Side, Reason string
	Status             status
	Findings           int
	Worst              *finding
	Waived             string
}

// checksOf are the checks that had something to judge, what failed before what passed
// and the first of them on top, and those that had nothing.
func checksOf(r *conformance.Report, first string) (busy, idle []check) {
	by := map[string][]conformance.Result{}
	var order []string
	known := map[string]conformance.CheckInfo{}
	for _, a := range r.About {
		if _, twice := known[a.ID]; !twice {
			order = append(order, a.ID)
		}
		known[a.ID] = a
	}
	for _, c := range r.Checks {
		if _, ok := known[c.ID]; !ok { // a report that says nothing about it
			known[c.ID] = conformance.CheckInfo{ID: c.ID, Rule: c.Rule, Level: c.Level}
			order = append(order, c.ID)
		}
		by[c.ID] = append(by[c.ID], c)
	}
	unjudged := map[string]bool{}
	for _, n := range r.NotJudged {
		unjudged[n.ID] = true
	}
	for _, id := range order {
		c := checkOf(known[id], by[id], unjudged[id])
		if len(by[id]) == 0 {
			idle = append(idle, c)
		} else {
			busy = append(busy, c)
		}
	}
	slices.SortStableFunc(busy, func(a, b check) int {
		if a.ID != b.ID && (a.ID == first || b.ID == first) {
			return map[bool]int{true: -1, false: 1}[a.ID == first]
		}
		if d := rankOf(a.Status) - rankOf(b.Status); d != 0 || a.Status.Class != "bad" {
			return d
		}
		return cmp.Compare(b.excess, a.excess)
	})
	for i := range busy {
		busy[i].Anchor = fmt.Sprintf("check-%d", i)
	}
	for i := range idle {
		idle[i].Anchor = fmt.Sprintf("check-%d", len(busy)+i)
	}
	return busy, idle
}

func rankOf(s status) int {
	switch s.Class {
	case "bad":
		return 0
	case "part":
		return 1
	case "ok":
		return 2
	}
	return 3
}

// checkOf sums a check's results up. That it was judged nowhere is said of the candidate:
// what it says of the reference is no answer to that.
func checkOf(info conformance.CheckInfo, results []conformance.Result, judgedNowhere bool) check {
	c := check{CheckInfo: info, Status: status{"did not apply", "–", "none"}}
	c.Controls = slices.Compact(slices.Sorted(slices.Values(c.Controls)))
	counts := map[conformance.Status]int{}
	waived := 0
	var nearest *finding
	for _, res := range results {
		counts[res.Status]++
		if res.Waived != nil {
			waived++
		}
		if res.Status == conformance.Fail {
			c.excess = max(c.excess, worstExcess(res))
		}
		if w := worstOf(res); w != nil && res.Status == conformance.Pass {
			if l := lineOf(res, *w); nearest == nil || l.excess > nearest.excess {
				nearest = &l
			}
		}
	}
	bad := counts[conformance.Fail] + counts[conformance.Error]
	switch {
	case bad > waived:
		c.Status, c.Open = statusOf(conformance.Fail), true
		if counts[conformance.Fail] == 0 {
			c.Status = statusOf(conformance.Error)
		}
	case bad > 0:
		c.Status = status{"waived", "◐", "part"}
	case judgedNowhere:
		c.Status = status{"not judged", "◐", "part"}
	case counts[conformance.Pass] > 0:
		c.Status, c.Nearest = statusOf(conformance.Pass), nearest
	case counts[conformance.Unsupported] > 0:
		c.Status = statusOf(conformance.Unsupported)
	case counts[conformance.Skip] > 0:
		c.Status = statusOf(conformance.Skip)
	}
	c.Says = says(results)
	for i, s := range info.Sides {
		if i > 0 {
			c.SidesText += ", "
		}
		c.SidesText += sideText(s)
	}
	sorted := slices.Clone(results)
	slices.SortStableFunc(sorted, func(a, b conformance.Result) int {
		return cmp.Or(resultRank(a)-resultRank(b), cmp.Compare(worstExcess(b), worstExcess(a)))
	})
	for _, res := range sorted {
		if len(c.Results) == maxResults {
			c.Left = len(sorted) - maxResults
			break
		}
		l := result{Case: res.Case, Side: sideText(res.Side), Reason: res.Reason, Status: statusOf(res.Status), Findings: len(res.Findings)}
		if w := worstOf(res); w != nil {
			f := lineOf(res, *w)
			l.Worst = &f
		}
		if res.Waived != nil {
			l.Waived = fmt.Sprintf("waived until %s: %s", sentence(res.Waived.Expires), sentence(res.Waived.Reason))
		}
		c.Results = append(c.Results, l)
	}
	return c
}

func worstExcess(r conformance.Result) float64 {
	if w := worstOf(r); w != nil {
		return excess(*w)
	}
	return -1
}

func resultRank(r conformance.Result) int {
	switch r.Status {
	case conformance.Error:
		return 0
	case conformance.Fail:
		return 1
	case conformance.Pass:
		return 2
	case conformance.Skip:
		return 3
	}
	return 4
}

// says counts results by outcome; a verdict over all cases is none of a case.
func says(results []conformance.Result) string {
	if len(results) == 0 {
		return "nothing in this run to judge"
	}
	var parts []string
	for _, k := range []conformance.Status{conformance.Error, conformance.Fail, conformance.Pass, conformance.Skip, conformance.Unsupported} {
		cases, across := 0, false
		for _, r := range results {
			switch {
			case r.Status != k:
			case r.Case == "*":
				across = true
			default:
				cases++
			}
		}
		switch word := statusOf(k).Word; {
		case cases > 0 && across:
			parts = append(parts, thousands(cases)+" "+word+" and over all cases")
		case cases > 0:
			parts = append(parts, thousands(cases)+" "+word)
		case across:
			parts = append(parts, word+" over all cases")
		}
	}
	return strings.Join(parts, ", ")
}
