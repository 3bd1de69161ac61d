package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// conclude prints a verdict, writes its report into a folder, unless dir is empty, and
// ends the command as the verdict says. flag names the folder.
func (a *app) conclude(rep *conformance.Report, partial bool, flag, dir string) error {
	rep.PartialAllowed = partial
	verdict := exitWith(gateCode(rep.Conclusion, partial))
	if rep.EmptyShard() {
		verdict = nil
	}
	if rep.ReferenceFailed {
		verdict = errors.New("the reference failed a check of its own: no verdict can be trusted")
	}
	told, written := a.emitReport(rep), writeReport(flag, rep, dir)
	if dir != "" && written == nil && !a.quiet {
		fmt.Fprintf(a.stderr, "report: %s\n", dumpfmt.Printable(filepath.Join(dir, report.JSONFile)))
	}
	return withReport(verdict, told, written)
}

// emitReport prints the verdict.
func (a *app) emitReport(rep *conformance.Report) error {
	if a.json {
		return a.emitJSON(rep)
	}
	var b bytes.Buffer
	if err := report.Text(&b, rep, report.TextOptions{Colour: a.colours()}); err != nil {
		return err
	}
	return a.emit(b.Bytes())
}

// writeReport writes the report's folder, if one was asked for.
func writeReport(flag string, rep *conformance.Report, dir string) error {
	if dir == "" {
		return nil
	}
	if err := report.WriteFolder(dir, rep); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

// withReport is how a command ends that came to a verdict (nil for one that is code 0)
// and then had to print and to write it. What failed then is told, and never changes a
// bad verdict; a good one that was not told or written is a broken run.
func withReport(verdict error, told ...error) error {
	failed := errors.Join(told...)
	if failed == nil {
		return verdict
	}
	if verdict == nil {
		return failed
	}
	var e *exitError
	if errors.As(verdict, &e) && e.err == nil {
		return &exitError{code: e.code, err: failed}
	}
	return &exitError{code: exitCode(verdict), err: errors.Join(verdict, failed)}
}

// emptyOrNew refuses a report folder that holds something.
func emptyOrNew(flag, dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--%s: %w", flag, err)
	case len(entries) > 0:
		return fmt.Errorf("--%s %s: got a folder with %d entries, want a new or empty one", flag, dir, len(entries))
	}
	return nil
}
