package main

import (
	"errors"
	"fmt"
)

// Exit codes.
const (
	exitDone      = 0 // conforms, or done
	exitFails     = 1 // does not conform
	exitBroken    = 2 // the run itself broke
	exitNotJudged = 3 // nothing, or a Core check nowhere, could be judged
)

// exitError ends a command with a code other than 2. Its Err, if any, goes to
// standard error; a command whose results already say everything has none.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitWith makes a command end with code and nothing more to say. Code 0 is no
// error.
func exitWith(code int) error {
	if code == exitDone {
		return nil
	}
	return &exitError{code: code}
}

// exitCode is the code that a command's error stands for. An error that names
// none is a broken run.
func exitCode(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		return e.code
	}
	return exitBroken
}

// usageErrorf is a mistake on the command line.
func usageErrorf(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }
