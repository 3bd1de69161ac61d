package gguf

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// FormatError says that a file isn't a GGUF file, or is a broken one.
type FormatError struct {
	// File is the file at fault.
	File string
	// Offset is the byte where the fault shows.
	Offset int64
	// What is the element; Got and Want say the rest.
	What, Got, Want string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("gguf: %s: %s at byte 0x%X: got %s, want %s", dumpfmt.Printable(e.File), dumpfmt.Printable(e.What),
		e.Offset, dumpfmt.Printable(e.Got), dumpfmt.Printable(e.Want))
}

// unsupported is what a sound file has and isn't read here.
func unsupported(file, what, why string) error {
	return &engine.UnsupportedError{What: file + ": " + what, Why: why}
}
