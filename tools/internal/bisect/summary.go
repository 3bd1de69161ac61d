package bisect

import "github.com/plumbline-go/plumbline/golden/metric"

// Summary describes one figure of a set of rows. Quantiles are
// those of [metric.Quantile]. The figures are NaN when N is 0 or a row has none.
type Summary struct {
	N                           int
	Min, Median, P95, Max, Mean float64
}

// Summarise describes xs.
func Summarise(xs []float64) Summary {
	return Summary{
		N:      len(xs),
		Min:    metric.Quantile(0, xs),
		Median: metric.Median(xs),
		P95:    metric.Quantile(0.95, xs),
		Max:    metric.Quantile(1, xs),
		Mean:   metric.Mean(xs),
	}
}

// GroupSummary is a group over all its cases and rows, and per row over its
// cases.
type GroupSummary struct {
	Name string
	// Cases counts the cases of the group that were compared.
	Cases int
	Summary
	// RowMeans[i] is the mean of row i over the cases that have one.
	RowMeans []float64
}

// SummariseGroups describes each group.
func SummariseGroups(groups []Group, cases []Case) []GroupSummary {
	byName := map[string]*Case{}
	for i := range cases {
		byName[cases[i].Name] = &cases[i]
	}
	var out []GroupSummary
	for _, g := range groups {
		s := GroupSummary{Name: g.Name}
		var all []float64
		var perRow [][]float64
		for _, name := range g.Cases {
			c := byName[name]
			if c == nil || !c.Compared() {
				continue
			}
			s.Cases++
			for i, r := range c.Rows {
				if i == len(perRow) {
					perRow = append(perRow, nil)
				}
				perRow[i] = append(perRow[i], r.MaxZDiff)
				all = append(all, r.MaxZDiff)
			}
		}
		s.Summary = Summarise(all)
		for _, xs := range perRow {
			s.RowMeans = append(s.RowMeans, metric.Mean(xs))
		}
		out = append(out, s)
	}
	return out
}

// MaxZDiffs returns the figure of every row of every compared case.
func MaxZDiffs(cases []Case) []float64 {
	var out []float64
	for i := range cases {
		if cases[i].Compared() {
			for _, r := range cases[i].Rows {
				out = append(out, r.MaxZDiff)
			}
		}
	}
	return out
}

// Figure is one figure of a row; false where the row can't have it.
type Figure func(c *Case, r Row) (float64, bool)

// RelativeL2 is the [Figure] that sees scale, which max |z-difference| can't.
func RelativeL2(_ *Case, r Row) (float64, bool) { return r.RelativeL2, true }

// Median is the median of N values: NaN when one of them is, or there are none.
type Median struct {
	N     int
	Value float64
}

// GroupMedians is one figure of a group.
type GroupMedians struct {
	// All is over the group's compared cases and their rows.
	All Median
	// Rows[i] is row i over the cases that have one.
	Rows []Median
}

// MedianOf takes the medians of one figure, group by group.
func MedianOf(f Figure, groups []Group, cases []Case) []GroupMedians {
	byName := map[string]*Case{}
	for i := range cases {
		byName[cases[i].Name] = &cases[i]
	}
	median := func(xs []float64) Median { return Median{len(xs), metric.Median(xs)} }
	var out []GroupMedians
	for _, g := range groups {
		var all []float64
		var perRow [][]float64
		for _, name := range g.Cases {
			c := byName[name]
			if c == nil || !c.Compared() {
				continue
			}
			for i, r := range c.Rows {
				if i == len(perRow) {
					perRow = append(perRow, nil)
				}
				if x, ok := f(c, r); ok {
					perRow[i] = append(perRow[i], x)
					all = append(all, x)
				}
			}
		}
		m := GroupMedians{All: median(all)}
		for _, xs := range perRow {
			m.Rows = append(m.Rows, median(xs))
		}
		out = append(out, m)
	}
	return out
}
