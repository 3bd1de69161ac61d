package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/trace"
)

func newTraceCompare(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compare REFERENCE OTHER",
		Short: "List in what two trace documents differ",
		Long: `Compares two trace documents, key by key: sources by their id, numbers as numbers. For each
field it tells how many values differ, how much at most, and where. What any two runs
differ in, times, memory and the machine, is listed apart and doesn't count.

Exit codes: 0 no value differs; 1 some do, or OTHER is malformed; 2 REFERENCE can't be
used.`,
		Example: `  plumbline trace compare recorded.json trace.json`,
		Args:    exactArgs(2, "two documents"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.compareTraces(args[0], args[1])
		},
	}
}

func (a *app) compareTraces(reference, other string) error {
	ref, err := trace.Read(reference)
	if err != nil {
		return err
	}
	d, err := trace.Read(other)
	var broken *trace.FormatError
	var unsupported *trace.UnsupportedError
	if errors.As(err, &broken) || errors.As(err, &unsupported) {
		return &exitError{exitFails, err}
	}
	if err != nil {
		return err
	}
	c := trace.Compare(ref, d)
	if a.json {
		err = a.emitJSON(comparisonOf(c))
	} else {
		err = a.emit([]byte(comparisonText(c)))
	}
	if err != nil {
		return err
	}
	if c.Different > 0 {
		return exitWith(exitFails)
	}
	return nil
}

// comparisonText is a line for each field that differs.
func comparisonText(c *trace.Comparison) string {
	var b strings.Builder
	if c.Different > 0 {
		t := newTable("field", "differ", "of", "max abs", "max rel").alignLeft(0)
		for _, f := range c.Fields {
			if f.Different > 0 {
				t.add("", f.Field, fmt.Sprint(f.Different), fmt.Sprint(f.Compared), figureOf(f.MaxAbs), figureOf(f.MaxRel))
			}
		}
		t.print(&b)
		b.WriteByte('\n')
		for _, d := range firstOfEach(c) {
			fmt.Fprintf(&b, "%s: %s, then %s\n", dumpfmt.Printable(d.Path), dumpfmt.Printable(shortened(d.A)), dumpfmt.Printable(shortened(d.B)))
		}
		b.WriteByte('\n')
	}
	if len(c.Run) > 0 {
		var names []string
		for _, d := range c.Run {
			names = append(names, d.Path)
		}
		fmt.Fprintf(&b, "not counted, as runs differ in it: %s\n", printables(names, 8))
	}
	fmt.Fprintf(&b, "%d of %d values differ\n", c.Different, c.Compared)
	return b.String()
}

// figureOf is a difference of numbers; there is none of text.
func figureOf(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", x)
}

// firstOfEach is the first difference of each field.
func firstOfEach(c *trace.Comparison) []trace.Difference {
	seen := map[string]bool{}
	var out []trace.Difference
	for _, d := range c.Differences {
		if !seen[d.Field] {
			seen[d.Field] = true
			out = append(out, d)
		}
	}
	return out
}

// comparison is what --json prints.
type comparison struct {
	Compared    int               `json:"compared"`
	Different   int               `json:"different"`
	Fields      []comparedField   `json:"fields"`
	Differences []valueDifference `json:"differences"`
	Run         []valueDifference `json:"not_counted"`
}

type comparedField struct {
	Field     string `json:"field"`
	Compared  int    `json:"compared"`
	Different int    `json:"different"`
	MaxAbs    num    `json:"max_abs"`
	MaxRel    num    `json:"max_rel"`
	At        string `json:"at,omitempty"`
}

type valueDifference struct {
	Path string `json:"path"`
	A    string `json:"a"`
	B    string `json:"b"`
	Abs  num    `json:"abs"`
	Rel  num    `json:"rel"`
}

func comparisonOf(c *trace.Comparison) comparison {
	out := comparison{Compared: c.Compared, Different: c.Different, Fields: []comparedField{},
		Differences: valueDifferences(c.Differences), Run: valueDifferences(c.Run)}
	for _, f := range c.Fields {
		out.Fields = append(out.Fields, comparedField{f.Field, f.Compared, f.Different, num(f.MaxAbs), num(f.MaxRel), f.At})
	}
	return out
}

func valueDifferences(all []trace.Difference) []valueDifference {
	out := []valueDifference{}
	for _, d := range all {
		out = append(out, valueDifference{d.Path, d.A, d.B, num(d.Abs), num(d.Rel)})
	}
	return out
}
