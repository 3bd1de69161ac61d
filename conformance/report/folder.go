package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// JSONFile is the file of a report folder that has everything; [Read] reads it.
const JSONFile = "report.json"

// Format is what a report is written as.
type Format string

// The formats.
const (
	FormatText     Format = "text"
	FormatJSON     Format = "json"
	FormatMarkdown Format = "markdown"
	FormatJUnit    Format = "junit"
	FormatHTML     Format = "html"
)

// renderings are the files of a report folder beside JSONFile, in the order in which they
// are written.
var renderings = []struct {
	format Format
	file   string
	write  func(io.Writer, *conformance.Report) error
}{
	{FormatMarkdown, "report.md", Markdown},
	{FormatJUnit, "junit.xml", JUnit},
	{FormatHTML, "report.html", HTML},
}

// Write writes a report in a format; text is without colour.
func Write(w io.Writer, r *conformance.Report, f Format) error {
	switch f {
	case FormatText:
		return Text(w, r, TextOptions{})
	case FormatJSON:
		return r.WriteJSON(w)
	}
	for _, x := range renderings {
		if x.format == f {
			return x.write(w, r)
		}
	}
	return fmt.Errorf("report: format: got %q, want text, json, markdown, junit or html", string(f))
}

// Known reports whether f is a format that [Write] writes.
func Known(f Format) bool {
	for _, x := range renderings {
		if x.format == f {
			return true
		}
	}
	return f == FormatText || f == FormatJSON
}

// ErrNotEmpty is a folder that holds something.
var ErrNotEmpty = errors.New("the folder is not empty")

// WriteFolder writes report.json, report.md, junit.xml and report.html into a folder that
// is new or empty. Each file is whole or not there. What merging needs of a shard comes
// first, so that it is there where report.json is, and then report.json: when later
// ones can't be written, the error names them, and report.json stays.
func WriteFolder(dir string, r *conformance.Report) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("report: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("report: %s: %w: got %s, want a new or empty one", dumpfmt.Printable(dir), ErrNotEmpty, entriesText(len(entries)))
	}
	return writeFolder(dir, r, dumpfmt.WriteOptions{}, create)
}

// OverwriteFolder is WriteFolder into a folder that may hold an earlier report, whose
// files are replaced; others stay. Once report.json is the new one, none of the earlier
// report's other files is left, also where theirs can't be written.
func OverwriteFolder(dir string, r *conformance.Report) error {
	return writeFolder(dir, r, dumpfmt.WriteOptions{Overwrite: true}, create)
}

// file is what is written: all of it, by Commit, or nothing.
type file interface {
	io.Writer
	Commit() error
	Abort() error
}

func create(path string, o dumpfmt.WriteOptions) (file, error) { return dumpfmt.Create(path, o) }

func writeFolder(dir string, r *conformance.Report, o dumpfmt.WriteOptions, create func(string, dumpfmt.WriteOptions) (file, error)) error {
	write := func(name string, render func(io.Writer, *conformance.Report) error) error {
		path := filepath.Join(dir, name)
		f, err := create(path, o)
		if err == nil {
			if err = render(f, r); err != nil {
				err = errors.Join(err, f.Abort())
			} else {
				err = f.Commit()
			}
		}
		if err != nil {
			return fmt.Errorf("report: %s: %w", dumpfmt.Printable(path), err)
		}
		return nil
	}
	if r.Shard != nil && r.HasEvidence() {
		if err := write(conformance.EvidenceFile, func(w io.Writer, r *conformance.Report) error { return r.WriteEvidence(w) }); err != nil {
			return err
		}
	}
	if err := write(JSONFile, func(w io.Writer, r *conformance.Report) error { return r.WriteJSON(w) }); err != nil {
		return err
	}
	if o.Overwrite {
		for _, x := range renderings {
			if err := os.Remove(filepath.Join(dir, x.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("report: an earlier report's: %w", err)
			}
		}
	}
	var failed []error // one of them is no reason to lack the others
	for _, x := range renderings {
		failed = append(failed, write(x.file, x.write))
	}
	return errors.Join(failed...)
}

func entriesText(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
