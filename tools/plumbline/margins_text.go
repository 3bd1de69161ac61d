package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
	"github.com/plumbline-go/plumbline/tools/internal/margins"
)

func (a *app) showMargins(r *marginReport) error {
	return a.show(r.json(a.commandLine()), func(w io.Writer) {
		cases, groupOf := r.ordered()
		for _, c := range cases {
			printMargins(w, r, c, groupOf[c.Name])
		}
		printComparable(w, r)
		printNaive(w, r)
		printMarginsEnd(w, r)
	})
}

func printMargins(w io.Writer, r *marginReport, c *margins.Case, group string) {
	fmt.Fprintf(w, "case %s", dumpfmt.Printable(c.Name))
	if group != "" {
		fmt.Fprintf(w, ", group %s", dumpfmt.Printable(group))
	}
	if c.Prompt != "" {
		fmt.Fprintf(w, ": %q", c.Prompt)
	}
	fmt.Fprintln(w)
	switch {
	case c.Err != nil:
		fmt.Fprintf(w, "  not compared: %s\n\n", dumpfmt.Printable(c.Err.Error()))
		return
	case c.Skipped != "":
		fmt.Fprintf(w, "  not compared: %s\n\n", dumpfmt.Printable(c.Skipped))
		return
	}
	heads := []string{"pos", "ref", "cand", "class", "top1-top2 z", "to choice z", "rank", "regret", "KL"}
	if r.CandInt32 {
		heads = append(heads, "KL own")
	} else {
		heads = append(heads, "rel L2")
	}
	heads = append(heads, "spearman", fmt.Sprintf("top %d", r.Top), "max|dz|")
	t := newTable(heads...).alignLeft(3)
	for i := range c.Positions {
		p := &c.Positions[i]
		cells := []string{strconv.Itoa(p.Index), strconv.Itoa(p.RefToken), strconv.Itoa(p.CandToken), string(p.Class),
			fixed(p.ZMargin, 3), fixed(p.ZChoice, 3), strconv.Itoa(p.Rank), nats(p.Regret), nats(p.KL)}
		note := ""
		switch {
		case p.AfterFlip:
			cells[3], note = none, "  <- after the flip: other input, not counted"
		case p.Index == c.FirstFlip:
			note = "  <- first flip"
		}
		if r.CandInt32 {
			cells = append(cells, nats(p.KLRowScale))
		} else {
			cells = append(cells, nats(p.CentredL2))
		}
		t.add(note, append(cells, fixed(p.Spearman, 4), fixed(p.SpearmanTop, 4), fixed(p.MaxZDiffTop, 3))...)
	}
	t.print(w)
	fmt.Fprintf(w, "  %d of %d tokens agree, %d of %d positions are comparable\n", c.Agree(), len(c.Positions), c.Comparable(), len(c.RefTokens))
	fmt.Fprintf(w, "  reference output: %s\n  candidate output: %s\n", ids(c.RefTokens), ids(c.CandTokens))
	if n, m := len(c.RefTokens), len(c.CandTokens); n != m {
		fmt.Fprintf(w, "  the shorter output ended with a stop id: %d rows of one side have none to be compared with\n", max(n, m)-min(n, m))
	}
	for _, n := range c.Notes {
		printLine(w, "  note: %s", n)
	}
	fmt.Fprintln(w)
}

func ids(tokens []int) string {
	out := make([]string, len(tokens))
	for i, id := range tokens {
		out[i] = strconv.Itoa(id)
	}
	return strings.Join(out, " ")
}

// nats is a figure that a row without a unit doesn't have.
func nats(x float64) string {
	switch {
	case math.IsNaN(x):
		return none
	case x == 0:
		return "0"
	}
	return scientific(x)
}

var classes = []conformance.Margin{conformance.Match, conformance.TieFlip, conformance.Drift, conformance.Wrong}

func printComparable(w io.Writer, r *marginReport) {
	fmt.Fprintln(w, "comparable positions only: each case up to its first flip, the flip included")
	heads := []string{"group", "cases", "positions", "of"}
	for _, c := range classes {
		heads = append(heads, string(c))
	}
	t := newTable(append(heads, "agree", "spearman min", "mean")...).alignLeft(0)
	f := newTable("group", "n", "KL mean", "p99", "max", "KL own mean", "p99", "max", "regret mean", "p99", "max").alignLeft(0)
	for _, g := range r.sets() {
		s := r.Comparable(g)
		cells := []string{s.Group, fmt.Sprintf("%d/%d", s.Cases, s.OfCases), strconv.Itoa(s.Positions), strconv.Itoa(s.Of)}
		for _, c := range classes {
			cells = append(cells, strconv.Itoa(s.Classes[c]))
		}
		t.add("", append(cells, share(s.Agree, s.Positions), orNone(s.Spearman.N > 0, fixed(s.Spearman.Min, 4)), orNone(s.Spearman.N > 0, fixed(s.Spearman.Mean, 4)))...)
		cells = []string{s.Group, strconv.Itoa(s.Positions)}
		for _, x := range []margins.Stats{s.KL, s.KLRowScale, s.Regret} {
			for _, y := range []float64{x.Mean, x.P99, x.Max} {
				cells = append(cells, orNone(x.N > 0, scientific(y)))
			}
		}
		f.add("", cells...)
	}
	t.print(w)
	fmt.Fprintln(w, "in nats")
	f.print(w)
	if s := r.Scale; s != nil {
		fmt.Fprintf(w, "  int32 logits: %.6g steps are taken for one logit, estimated once over %s; single rows fit %.3g to %.3g times that\n",
			s.Value, plural(s.Positions, "comparable position"), s.Min/s.Value, s.Max/s.Value)
	}
	if b := r.band; !math.IsNaN(b.Value) {
		from := b.Describe()
		if b.Multiple == 1 {
			from = b.Source
		}
		if b.Expires != "" {
			from += ", to be looked at again by " + b.Expires
		}
		printLine(w, "  tie band: %.3g z, %s", b.Value, from)
		printLine(w, "    (%s)", b.Why)
	}
}

func share(n, of int) string {
	if of == 0 {
		return none
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

// printNaive is the summary of the int8 engine owners' own report.
func printNaive(w io.Writer, r *marginReport) {
	fmt.Fprintln(w, "\nall positions, those after a flip too: what a report without the cut counts")
	t := newTable("group", "figure", "n", "min", "median", "max", "mean").alignLeft(0, 1)
	sets := r.sets()
	row := func(group, figure string, s margins.Stats, decimals int) {
		cells := []string{group, figure, strconv.Itoa(s.N)}
		for _, x := range []float64{s.Min, s.Median, s.Max, s.Mean} {
			cells = append(cells, orNone(s.N > 0, fixed(x, decimals)))
		}
		t.add("", cells...)
	}
	var ranks []string
	for _, g := range sets {
		s := r.Naive(g)
		row(s.Group, "top1-top2 z where the tokens agree", s.AgreeMargin, 3)
		row(s.Group, "to choice z where they differ", s.FlipMargin, 3)
		row(s.Group, "spearman", s.Spearman, 3)
		if len(sets) == 1 || s.Group != bisect.AllGroup {
			ranks = append(ranks, fmt.Sprintf("  ranks of the picks that differ, %s (n=%d): %s", s.Group, len(s.FlipRanks), orNone(len(s.FlipRanks) > 0, ids(s.FlipRanks))))
		}
	}
	t.print(w)
	for _, l := range ranks {
		printLine(w, "%s", l)
	}
	after := r.AfterFlip()
	if after.N == 0 {
		fmt.Fprintln(w, "  no position follows a flip: both summaries count the same")
		return
	}
	all := r.Comparable(r.Everything(""))
	fmt.Fprintf(w, "  why the two differ: %s a flip, where the sides read different inputs; Spearman is %.3f there on average, and %.3f or more up to the flip\n",
		followed(after.N), after.Mean, all.Spearman.Min)
}

func followed(n int) string {
	if n == 1 {
		return "1 position follows"
	}
	return fmt.Sprintf("%d positions follow", n)
}

func printMarginsEnd(w io.Writer, r *marginReport) {
	positions, comparable := 0, 0
	for i := range r.Cases {
		positions += len(r.Cases[i].Positions)
		comparable += r.Cases[i].Comparable()
	}
	fmt.Fprintf(w, "\n%d of %d cases compared, %s, %d comparable\n", r.compared(), len(r.Cases), plural(positions, "position"), comparable)
	switch {
	case r.conclusion() == conformance.Fails:
		fmt.Fprintf(w, "conclusion: %s\n", conformance.Fails)
		for _, l := range r.failures() {
			printLine(w, "  %s", l)
		}
	case r.compared() > 0:
		fmt.Fprintln(w, noYardstick)
	default:
		fmt.Fprintf(w, "conclusion: %s\n", conformance.NothingJudged)
	}
	for _, p := range r.power() {
		printLine(w, "power: %s", p)
	}
}

// noYardstick is the outcome where nothing is wrong.
const noYardstick = "measured only: there is no yardstick here, so no figure has a bound (gate has)"

// failures are the candidate's faults and its wrong picks, at most ten.
func (r *marginReport) failures() []string {
	var out []string
	cases, _ := r.ordered()
	for _, c := range cases {
		if c.Err != nil && marginsFaultCode(c.Err) == exitFails {
			out = append(out, fmt.Sprintf("%s: %v", dumpfmt.Printable(c.Name), c.Err))
		}
		for i := range c.Positions {
			if p := &c.Positions[i]; p.Class == conformance.Wrong {
				out = append(out, fmt.Sprintf("%s, position %d: picked %d, rank %d of the reference, which picks %d by %.3g z; the tie band is %.3g z and a drift ends at %d times that",
					dumpfmt.Printable(c.Name), p.Index, p.CandToken, p.Rank, p.RefToken, p.ZChoice, r.band.Value, margins.WrongMultiple))
			}
		}
	}
	if more := len(out) - 10; more > 0 {
		out = append(out[:10], fmt.Sprintf("and %d more", more))
	}
	return out
}

// power says what these dumps can't show.
func (r *marginReport) power() []string {
	var out []string
	if r.CandInt32 {
		out = append(out, "int32 logits have no unit: a wrong scale of all logits (a temperature) can't be seen")
	}
	if r.RefInt32 {
		out = append(out, "the reference's logits are int32 and have no unit: no KL and no regret in nats")
	}
	if s := r.Scale; s != nil && !(s.Value > 0) {
		out = append(out, "the candidate's logits don't follow the reference's at all: no scale, so no KL")
	}
	if after := r.AfterFlip(); after.N > 0 {
		out = append(out, fmt.Sprintf("%d of %d positions follow a flip and say nothing (gate runs the model along the candidate's own tokens)", after.N, r.positionsCompared()))
	}
	steps := slices.MaxFunc(append(r.Cases, margins.Case{}), func(a, b margins.Case) int { return len(a.Positions) - len(b.Positions) })
	if n := len(steps.Positions); n > 0 {
		out = append(out, fmt.Sprintf("%s with at most %s each: what shows later isn't here", plural(r.compared(), "prompt"), plural(n, "token")))
	}
	return out
}

func (r *marginReport) positionsCompared() int {
	n := 0
	for i := range r.Cases {
		n += len(r.Cases[i].Positions)
	}
	return n
}
