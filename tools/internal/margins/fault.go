package margins

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Side is whose fault a fault is.
type Side string

// The two sides of a comparison.
const (
	Reference Side = "reference"
	Candidate Side = "candidate"
)

// Kind classifies a fault.
type Kind string

// Kinds of faults.
const (
	// Missing: the side has no such case.
	Missing Kind = "missing"
	// Format: a file is broken.
	Format Kind = "format"
	// Provenance: sound files of something else, another prompt or vocabulary.
	Provenance Kind = "provenance"
	// Values: a row that chooses no token: NaN, infinities, one repeated value.
	Values Kind = "values"
	// Contract: rows and tokens that don't belong together.
	Contract Kind = "contract"
)

// Fault says why a case can't be compared.
type Fault struct {
	Side Side
	Kind Kind
	// File is the file at fault.
	File string
	// Row is the row at fault, or -1.
	Row int
	// What is the element at fault, e.g. "vocabulary".
	What, Got, Want string
	// Err is the reader's error, for Format.
	Err error
}

func (f *Fault) Error() string {
	switch {
	case f.Kind == Missing:
		return fmt.Sprintf("margins: %s: no such case in the %s folder", dumpfmt.Printable(f.File), f.Side)
	case f.Err != nil:
		return fmt.Sprintf("margins: %s: %v", f.Side, f.Err)
	}
	place := dumpfmt.Printable(f.File)
	if f.Row >= 0 {
		place += fmt.Sprintf(": row %d", f.Row)
	}
	return fmt.Sprintf("margins: %s: %s: %s: got %s, want %s", f.Side, place, f.What, dumpfmt.Printable(f.Got), dumpfmt.Printable(f.Want))
}

func (f *Fault) Unwrap() error { return f.Err }
