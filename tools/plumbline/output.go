package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// emit writes results. They are written at once, so that a run that breaks
// leaves no half answer, and a failure to write is a broken run.
func (a *app) emit(text []byte) error {
	if _, err := a.stdout.Write(text); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// emitJSON writes v as one indented object.
func (a *app) emitJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	return a.emit(b.Bytes())
}

// mayWrite finds an existing file, or a folder of that name, before the work,
// not after it; flag names it. The writer checks again.
func (a *app) mayWrite(flag, path string) error {
	st, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	if path != "" && os.IsPathSeparator(path[len(path)-1]) || err == nil && !st.Mode().IsRegular() {
		kind := "a folder"
		if err == nil && !st.IsDir() {
			kind = "no regular file (" + st.Mode().Type().String() + ")"
		}
		return fmt.Errorf("--%s %s: got %s, want a file to write", flag, dumpfmt.Printable(path), kind)
	}
	if a.overwrite {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%w: --overwrite replaces it", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	return nil
}
