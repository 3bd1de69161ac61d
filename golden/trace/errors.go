package trace

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// SourceError says that a file of sources is broken.
type SourceError struct {
	File string
	// Line counts from 1; 0 where the fault is the file's as a whole.
	Line            int
	What, Got, Want string
}

func (e *SourceError) Error() string {
	at := dumpfmt.Printable(e.File)
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, e.Line)
	}
	return fmt.Sprintf("trace: sources %s: %s: got %s, want %s", at, dumpfmt.Printable(e.What), dumpfmt.Printable(e.Got), dumpfmt.Printable(e.Want))
}

// TokenError says that a source can't be traced as it is tokenised: the tokens of
// its text differ between conditions, there are none, or the tokenizer's ids aren't
// those that they should be.
type TokenError struct {
	// Source is the source's id, Condition the condition; "" where it is no single
	// one's.
	Source, Condition string
	What, Got, Want   string
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("trace: %s: got %s, want %s", place(e.Source, e.Condition, e.What), dumpfmt.Printable(e.Got), dumpfmt.Printable(e.Want))
}

// InputError says that what an engine gave can't be part of a trace: another
// shape, a value that isn't finite, an expert that doesn't exist, a stage that never
// came.
type InputError struct {
	// At names the place: source, stage or gate, condition.
	At              string
	What, Got, Want string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("trace: %s: got %s, want %s", place(e.At, e.What), dumpfmt.Printable(e.Got), dumpfmt.Printable(e.Want))
}

// FormatError says that a trace document is broken.
type FormatError struct {
	File string
	// Path is the element at fault, such as
	// sources[0].hidden_stages.layer_03.conditions.s0_eos.
	Path      string
	Got, Want string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("trace: document %s: %s: got %s, want %s", dumpfmt.Printable(e.File), dumpfmt.Printable(e.Path), dumpfmt.Printable(e.Got), dumpfmt.Printable(e.Want))
}

// UnsupportedError says that a trace document may be sound, but isn't of the
// schema that is known here.
type UnsupportedError struct {
	File, What, Got, Supported string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("trace: document %s: %s: %s is not supported, only %s", dumpfmt.Printable(e.File), e.What, dumpfmt.Printable(e.Got), e.Supported)
}

// UsageError is a caller's mistake.
type UsageError struct {
	Op, What, Got, Want string
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("trace: %s: %s: got %s, want %s", e.Op, e.What, e.Got, e.Want)
}

// place joins the parts of a place that are there.
func place(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, dumpfmt.Printable(p))
		}
	}
	return strings.Join(kept, ": ")
}
