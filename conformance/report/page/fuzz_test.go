package page_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/conformance/report/page"
)

// Whatever a candidate calls its parts, the page has the elements of the templates and
// no others, and is valid UTF-8.
func FuzzHostileText(f *testing.F) {
	for _, s := range hostileTexts() {
		f.Add(s)
	}
	var plain bytes.Buffer
	if err := page.Write(&plain, hostile("plain")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return // leaves parts out
		}
		var b bytes.Buffer
		if err := page.Write(&b, hostile(text)); err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(b.Bytes()) {
			t.Fatal("the page is not UTF-8")
		}
		for _, mark := range []string{"<script", "</script", "<style", "<img", "<svg", "<td", "<a ", "<!--", "\""} {
			got, want := strings.Count(b.String(), mark), strings.Count(plain.String(), mark)
			if got != want && (mark != "\"" || got%2 != 0) {
				t.Errorf("%q: got %d of %q, want %d", text, got, mark, want)
			}
		}
		if strings.ContainsAny(b.String(), "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\x00\x1b") {
			t.Errorf("%q: a control character got through", text)
		}
	})
}
