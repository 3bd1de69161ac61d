package canonical

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// SyntaxError says why a text is no JSON, or none that can be hashed as Python does.
type SyntaxError struct {
	// File is the text's name; the fault shows at byte Offset.
	File   string
	Offset int64
	// Pointer is the value at fault as a JSON pointer (RFC 6901), "" for the whole.
	Pointer string
	// Got is what was found; Want may be empty.
	Got, Want string
	// Own says that Python's json takes the text.
	Own bool
}

func (e *SyntaxError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "canonical: %s: at byte 0x%X", dumpfmt.Printable(e.File), e.Offset)
	if e.Pointer != "" {
		fmt.Fprintf(&b, ", %s", dumpfmt.Printable(shorten(e.Pointer)))
	}
	fmt.Fprintf(&b, ": got %s", dumpfmt.Printable(e.Got))
	if e.Want != "" {
		fmt.Fprintf(&b, ", want %s", e.Want)
	}
	if e.Own {
		b.WriteString(" (a rule of our own)")
	}
	return b.String()
}

// SizeError says that a file is larger than its reader takes; it wasn't read.
type SizeError struct {
	File       string
	Size, Most int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("canonical: %s: got %d bytes, want at most %d (not read)", dumpfmt.Printable(e.File), e.Size, e.Most)
}

// ValueError says why a value made in Go can't be written.
type ValueError struct {
	What, Got, Want string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("canonical: %s: got %s, want %s", e.What, dumpfmt.Printable(e.Got), e.Want)
}
