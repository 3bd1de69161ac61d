package bisect

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
	// Provenance: a sound dump of something else.
	Provenance Kind = "provenance"
)

// Fault says why a case can't be compared.
type Fault struct {
	Side Side
	Kind Kind
	// File is the file at fault.
	File string
	// Row is the row at fault, or -1.
	Row int
	// Field is the header field that differs, for Provenance.
	Field, Want, Got string
	// Err is the reader's error, for Format.
	Err error
}

func (f *Fault) Error() string {
	switch f.Kind {
	case Missing:
		return fmt.Sprintf("bisect: %s: no such case in the %s folder", dumpfmt.Printable(f.File), f.Side)
	case Provenance:
		return fmt.Sprintf("bisect: %s dump %s: %s: got %s, want %s", f.Side, dumpfmt.Printable(f.File), f.Field, dumpfmt.Printable(f.Got), dumpfmt.Printable(f.Want))
	}
	if f.Row >= 0 {
		return fmt.Sprintf("bisect: %s dump: row %d: %v", f.Side, f.Row, f.Err)
	}
	return fmt.Sprintf("bisect: %s: %v", f.Side, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }
