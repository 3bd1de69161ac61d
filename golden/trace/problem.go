package trace

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Problem is one thing that is not as it should be. The checks of this package
// return all of them, or the first of many of a kind, and how much they looked at:
// nothing looked at is no pass.
type Problem struct {
	// At names the place, as a path into the document where it is in one.
	At              string
	What, Got, Want string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: got %s, want %s", place(p.At, p.What), dumpfmt.Printable(p.Got), dumpfmt.Printable(p.Want))
}
