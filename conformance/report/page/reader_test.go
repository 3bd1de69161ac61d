package page_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report/page"
)

// element is a part of a page, as another reader sees it.
type element struct {
	name     string
	attrs    map[string]string
	children []*element
	parent   *element
	// parts are text, and nil for the next child.
	parts []*string
}

func (e *element) write(b *strings.Builder) {
	next := 0
	for _, p := range e.parts {
		if p != nil {
			b.WriteString(*p)
			continue
		}
		e.children[next].write(b)
		next++
	}
	if !slices.Contains([]string{"a", "b", "bdi", "code", "strong", "span", "i"}, e.name) {
		b.WriteByte(' ') // elements that stand apart
	}
}

// words are an element's text, and that of what is in it, with single spaces.
func (e *element) words() string {
	var b strings.Builder
	e.write(&b)
	return strings.Join(strings.Fields(b.String()), " ")
}

// parse reads a page, whose elements are all closed. The contents of style and script
// are no markup, and are cut out first.
func parse(t testing.TB, html []byte) *element {
	t.Helper()
	require.True(t, utf8.Valid(html))
	bare := regexp.MustCompile(`(?s)(<style>|<script>).*?(</style>|</script>)`).ReplaceAll(html, []byte("$1$2"))
	bare = bytes.TrimPrefix(bare, []byte("<!DOCTYPE html>"))
	d := xml.NewDecoder(bytes.NewReader(bare))
	d.Entity = xml.HTMLEntity
	root := &element{name: "#root"}
	at := root
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			require.Same(t, root, at, "unclosed <%s>", at.name)
			return root
		}
		require.NoError(t, err)
		switch tok := tok.(type) {
		case xml.StartElement:
			e := &element{name: tok.Name.Local, attrs: map[string]string{}, parent: at}
			for _, a := range tok.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			at.children, at.parts = append(at.children, e), append(at.parts, nil)
			at = e
		case xml.EndElement:
			at = at.parent
		case xml.CharData:
			text := string(tok)
			at.parts = append(at.parts, &text)
		}
	}
}

// all are the elements that fit, in order.
func (e *element) all(fits func(*element) bool) []*element {
	var out []*element
	if fits(e) {
		out = append(out, e)
	}
	for _, c := range e.children {
		out = append(out, c.all(fits)...)
	}
	return out
}

func (e *element) named(name string) []*element {
	return e.all(func(x *element) bool { return x.name == name })
}

func (e *element) id(id string) *element {
	if found := e.all(func(x *element) bool { return x.attrs["id"] == id }); len(found) == 1 {
		return found[0]
	}
	return nil
}

func (e *element) class(class string) []*element {
	return e.all(func(x *element) bool { return slices.Contains(strings.Fields(x.attrs["class"]), class) })
}

func written(t testing.TB, r *conformance.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, page.Write(&b, r))
	return b.Bytes()
}
