package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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
