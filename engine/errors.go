package engine

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// MalformedError says that a candidate's answer is broken: a truncated file, a
// lying header, another prompt's dump. It is the candidate's fault, never the
// run's.
type MalformedError struct {
	// File is the file at fault, or empty.
	File string
	// Provenance is true when the answer is well-formed but belongs to
	// something else (another prompt, another model).
	Provenance bool
	Err        error
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("engine: malformed answer: %v", e.Err)
}

func (e *MalformedError) Unwrap() error { return e.Err }

// UnsupportedError says that a side does not offer what was asked.
type UnsupportedError struct {
	What string
	Why  string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("engine: %s not supported: %s", dumpfmt.Printable(e.What), dumpfmt.Printable(e.Why))
}

// ConfigError says that a model folder or an engine description can't be used:
// a missing tensor, an unknown architecture, a config that contradicts itself.
type ConfigError struct {
	// File is the file at fault.
	File string
	// What is the key or tensor; Want and Got say the rest.
	What, Want, Got string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("engine: %s: %s: got %s, want %s", dumpfmt.Printable(e.File), dumpfmt.Printable(e.What),
		dumpfmt.Printable(e.Got), dumpfmt.Printable(e.Want))
}
