package plot

import (
	"io"

	"gonum.org/v1/plot/font"
)

// ReduceFont is what FontFace does.
var ReduceFont = reduceFont

// WriteInlineFont writes the font that it does it to.
func WriteInlineFont(w io.Writer) error {
	_, err := font.DefaultCache.Lookup(inlineFont, 12).Face.WriteSourceTo(nil, w)
	return err
}
