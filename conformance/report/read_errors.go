package report

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// VersionError is a report of another schema version.
type VersionError struct {
	File      string // empty where it has no name
	Got, Want int
}

// Error implements error.
func (e *VersionError) Error() string {
	s := fmt.Sprintf("report: %sschema_version: got %d, want %d", prefix(e.File), e.Got, e.Want)
	switch {
	case e.Got > e.Want:
		return s + ": a newer plumbline wrote it; read it with that one"
	case e.Got == 1:
		return s + ": version 1 lacks what reports for people need; judge again with this plumbline"
	}
	return s
}

// FormatError is a report that can't be read: broken JSON, a report that was cut off, a
// value of another shape than the schema's.
type FormatError struct {
	File string // empty where it has no name
	// Offset is the byte up to which it was read.
	Offset int64
	// Path is the element, as a JSON pointer; empty for the whole.
	Path      string
	Got, Want string
	// Err is the cause, if there is one: io.ErrUnexpectedEOF for a report that was cut
	// off.
	Err error
}

// Error implements error.
func (e *FormatError) Error() string {
	s := fmt.Sprintf("report: %sbyte %d: ", prefix(e.File), e.Offset)
	if e.Path != "" {
		s += printable(e.Path, nameLength) + ": "
	}
	return s + fmt.Sprintf("got %s, want %s", e.Got, e.Want)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// ContradictionError is a report whose parts contradict each other, so that its verdict
// can't be believed.
type ContradictionError struct {
	File string // empty where it has no name
	What string
}

// Error implements error.
func (e *ContradictionError) Error() string {
	return fmt.Sprintf("report: %s%s: the report contradicts itself, its verdict is not to be believed", prefix(e.File), e.What)
}

func prefix(file string) string {
	if file == "" {
		return ""
	}
	return dumpfmt.Printable(file) + ": "
}

func wrongVersion(file string, got int) error {
	if got == conformance.SchemaVersion {
		return nil
	}
	return &VersionError{File: file, Got: got, Want: conformance.SchemaVersion}
}
