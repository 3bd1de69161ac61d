package conformance

import (
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// noEmulationFor begins what is said where the yardstick can't run the model.
const noEmulationFor = "no emulation to bound it by: "

// emulationError is one of the yardstick, not of the reference.
type emulationError struct{ err error }

func (e *emulationError) Error() string { return fmt.Sprintf("yardstick: %v", e.err) }

func (e *emulationError) Unwrap() error { return e.err }

// emulating marks an error of the yardstick.
func emulating(err error) error {
	if err == nil {
		return nil
	}
	return &emulationError{err}
}

// noEmulation says why nothing bounds a candidate: the yardstick doesn't offer what
// was asked of it, such as this model's family. none is false for any other error,
// which is the run's.
func noEmulation(err error) (why string, none bool) {
	var yard *emulationError
	var unsupported *engine.UnsupportedError
	if errors.As(err, &yard) && errors.As(yard, &unsupported) {
		return fmt.Sprintf("%s%s: %s", noEmulationFor, unsupported.What, unsupported.Why), true
	}
	return "", false
}
