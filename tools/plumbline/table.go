package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// table is text in columns that are as wide as their widest cell, right-aligned
// except for those that left names.
type table struct {
	heads []string
	left  map[int]bool
	rows  [][]string
	notes []string // behind a row's last column
}

func newTable(heads ...string) *table {
	return &table{heads: printableCells(heads), left: map[int]bool{}}
}

// printableCells keeps names from breaking the table.
func printableCells(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = dumpfmt.Printable(c)
	}
	return out
}

// alignLeft makes columns left-aligned.
func (t *table) alignLeft(columns ...int) *table {
	for _, c := range columns {
		t.left[c] = true
	}
	return t
}

// add appends a row; note goes behind it, whatever its length.
func (t *table) add(note string, cells ...string) {
	t.rows = append(t.rows, printableCells(cells))
	t.notes = append(t.notes, dumpfmt.Printable(note))
}

func (t *table) print(w io.Writer) {
	width := make([]int, len(t.heads))
	measure := func(cells []string) {
		for i, c := range cells {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	measure(t.heads)
	for _, r := range t.rows {
		measure(r)
	}
	line := func(cells []string, note string) {
		var b strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if t.left[i] {
				b.WriteString("  " + c + pad)
			} else {
				b.WriteString("  " + pad + c)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String()+note, " "))
	}
	line(t.heads, "")
	for i, r := range t.rows {
		line(r, t.notes[i])
	}
}

// fixed is x with a fixed number of decimals, so that a column's points are
// below each other; a number too long for that has an exponent.
func fixed(x float64, decimals int) string {
	s := fmt.Sprintf("%.*f", decimals, x)
	if len(s) > 10 {
		return scientific(x)
	}
	return s
}

// scientific is x with three digits and an exponent: for errors, whose size
// varies by orders of magnitude.
func scientific(x float64) string { return fmt.Sprintf("%.2e", x) }
