package dumpfmt

import (
	"fmt"
	"strings"
)

// Names of the formats in errors.
const (
	formatFloatLayers = "layer dump"
	formatInt8Layers  = "int8 layer dump"
	formatFloatLogits = "logit dump"
	formatInt32Logits = "int32 logit dump"
	formatSafetensors = "safetensors"
	formatEngineFile  = "engine file"
	formatCaseFile    = "case file"
	formatFolder      = "dump folder"
	formatRaw         = "float32 file"
	formatNPY         = "npy file"
	formatNPZ         = "npz file"
	formatTarget      = "target file"
)

// whatBytes is the subject of a file that is too short: Got of Want bytes
// after Offset.
const whatBytes = "bytes"

// WhatFileType is the What of a [*FormatError] for a folder, a pipe or a device, which
// isn't read.
const WhatFileType = "file type"

// NoOffset is the Offset of an error that concerns an absent element.
const NoOffset = -1

// FormatError says that a file is broken.
type FormatError struct {
	// File is the file at fault, Format its kind, e.g. "layer dump".
	File, Format string
	// Offset is the byte where the fault shows, or NoOffset.
	Offset int64
	// What is the element at fault, with what was expected and found. For a
	// file that is too short it is "bytes", and Got and Want are decimal counts
	// after Offset.
	What, Want, Got string
	// Note adds what helps to find the cause; may be empty.
	Note string
	// Value is true where a value of a target file's row is at fault, not what is
	// around it.
	Value bool
}

func (e *FormatError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dumpfmt: %s %s: ", e.Format, Printable(e.File))
	if e.What == whatBytes {
		fmt.Fprintf(&b, "%s of %s bytes after byte 0x%X", e.Got, e.Want, e.Offset)
	} else {
		b.WriteString(Printable(e.What)) // it may hold a key of the file
		if e.Offset >= 0 {
			fmt.Fprintf(&b, " at byte 0x%X", e.Offset)
		}
		fmt.Fprintf(&b, ": got %s, want %s", Printable(e.Got), Printable(e.Want))
	}
	if e.Note != "" {
		fmt.Fprintf(&b, " (%s)", Printable(e.Note))
	}
	return b.String()
}

// UnsupportedError says that a file uses something that isn't handled here. It
// need not be broken.
type UnsupportedError struct {
	File, Format string
	// Offset is the byte where it shows, or NoOffset.
	Offset int64
	// What is the element; Got is its value, Supported what would be handled.
	What, Got, Supported string
}

func (e *UnsupportedError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte 0x%X", e.Offset)
	}
	return fmt.Sprintf("dumpfmt: %s %s: %s%s: %s is not supported, only %s",
		e.Format, Printable(e.File), Printable(e.What), at, Printable(e.Got), e.Supported)
}

// FingerprintError says that a sound layer dump belongs to another prompt.
type FingerprintError struct {
	// File is the layer dump; the fingerprint lies at Offset.
	File   string
	Offset int64
	// Want is the fingerprint of the case's text, Got what the dump declares.
	Want, Got uint64
}

func (e *FingerprintError) Error() string {
	return fmt.Sprintf("dumpfmt: layer dump %s: prompt fingerprint at byte 0x%X: got 0x%016X, want 0x%016X",
		Printable(e.File), e.Offset, e.Got, e.Want)
}

// NoCasesError says that a dump folder holds no case.
type NoCasesError struct {
	Folder string
}

func (e *NoCasesError) Error() string {
	return fmt.Sprintf("dumpfmt: dump folder %s: got 0 cases, want at least 1", Printable(e.Folder))
}

// UsageError is a caller's mistake: a row that doesn't exist, a buffer of the
// wrong length, a count that contradicts the header being written.
type UsageError struct {
	// Op is the function, e.g. "FloatLayers.Row".
	Op string
	// What is the argument, with what was expected and found.
	What, Want, Got string
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("dumpfmt: %s: %s: got %s, want %s", e.Op, e.What, e.Got, e.Want)
}

func usageInt(op, what string, got, want int) error {
	return &UsageError{Op: op, What: what, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
}

func checkIndex(op string, i, n int) error {
	if i < 0 || i >= n {
		return &UsageError{Op: op, What: "row", Got: fmt.Sprint(i), Want: fmt.Sprintf("0 <= row < %d", n)}
	}
	return nil
}

func checkLen(op string, got, want int) error {
	if got != want {
		return usageInt(op, "buffer length", got, want)
	}
	return nil
}
