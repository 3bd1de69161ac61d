package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// caseLine is a line of the table of first breaches.
type caseLine struct {
	Name                  string
	Status                status
	Row, RowKey, Source   string
	Position, PositionKey string
	// NoPosition is what stands where Position is empty.
	NoPosition                  string
	File, Reason, Time, TimeKey string
}

// maxCases is how many cases the table has, those that fail first.
const maxCases = 1000

// orderedCases are the names of all cases: those with a first bad row, those not
// judged, the others, each by name.
func orderedCases(r *conformance.Report) []string {
	rank := func(n string) int {
		switch v := r.Cases[n]; {
		case v.FirstBadRow != nil:
			return 0
		case !v.Judged:
			return 1
		}
		return 2
	}
	names := slices.Collect(maps.Keys(r.Cases))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
	return names
}

func casesOf(r *conformance.Report, names []string) (lines []caseLine, left int) {
	failing := map[string]conformance.Status{}
	for _, c := range r.Failures() {
		if failing[c.Case] != conformance.Error {
			failing[c.Case] = c.Status
		}
	}
	for _, n := range names {
		if len(lines) == maxCases {
			return lines, len(names) - maxCases
		}
		v := r.Cases[n]
		l := caseLine{Name: n, File: v.File, Reason: v.Reason, RowKey: "1e9", PositionKey: "1e9"}
		switch s, bad := failing[n]; {
		case bad:
			l.Status = statusOf(s)
		case v.FirstBadRow != nil:
			l.Status = statusOf(conformance.Fail)
		case v.Judged:
			l.Status = statusOf(conformance.Pass)
		default:
			l.Status = status{"not judged", "○", "none"}
		}
		if v.FirstBadRow != nil {
			l.Row, l.RowKey = fmt.Sprintf("%d (%s)", *v.FirstBadRow, engine.RowProbe(*v.FirstBadRow)), fmt.Sprint(*v.FirstBadRow)
		}
		if v.Source != nil {
			l.Source = string(*v.Source)
		}
		switch l.NoPosition = "none"; {
		case v.FirstBadRow == nil:
		case lastRows(v):
			l.NoPosition = "not known: last rows only"
		default:
			l.NoPosition = "not known"
		}
		if v.FirstBadPosition != nil {
			l.Position = fmt.Sprint(*v.FirstBadPosition)
			l.PositionKey = l.Position
		}
		if r.Times != nil {
			if t, ok := r.Times.Cases[n]; ok {
				l.Time, l.TimeKey = figure(t), sortKey(float64(t))
			}
		}
		lines = append(lines, l)
	}
	return lines, 0
}
