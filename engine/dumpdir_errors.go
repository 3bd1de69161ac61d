package engine

import (
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// NoAnswerError says that a candidate has no answer to a case: it is none of
// the cases of its dump folder. It is neither broken nor unsupported.
type NoAnswerError struct {
	// Case is the name of the case.
	Case string
	Why  string
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("engine: no answer to case %q: %s", e.Case, dumpfmt.Printable(e.Why))
}

// SetupError says that the run can't even ask the candidate: its folder
// doesn't exist or can't be read. It is the run's fault, not the candidate's.
type SetupError struct {
	// Path is what could not be used.
	Path string
	Err  error
}

func (e *SetupError) Error() string {
	return fmt.Sprintf("engine: candidate %s: %v", dumpfmt.Printable(e.Path), e.Err)
}

func (e *SetupError) Unwrap() error { return e.Err }

// fromDump turns an error about a file into one about the answer. An element
// type that isn't handled is malformed here: a dump folder's types are fixed.
// Errors of the system's pass as they are.
func fromDump(err error) error {
	var (
		broken      *dumpfmt.FormatError
		unsupported *dumpfmt.UnsupportedError
		other       *dumpfmt.FingerprintError
	)
	switch {
	case errors.As(err, &broken):
		return &MalformedError{File: broken.File, Err: err}
	case errors.As(err, &unsupported):
		return &MalformedError{File: unsupported.File, Err: err}
	case errors.As(err, &other):
		return &MalformedError{File: other.File, Provenance: true, Err: err}
	}
	return err
}
