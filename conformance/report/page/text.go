package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/conformance"
)

// Names and sentences beyond these lengths, in characters, are cut.
const (
	maxName     = 120
	maxSentence = 600
)

// visible is a foreign text as the page shows it: characters that have no look of
// their own, or change that of others, are spelled out, and what is long is cut.
func visible(s string, most int) string {
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); n++ {
		if n == most {
			fmt.Fprintf(&b, "… (%d bytes)", len(s))
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case !unicode.IsGraphic(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

func name(s string) string {
	if s == "" {
		return "(no name)"
	}
	return visible(s, maxName)
}

func sentence(s string) string { return visible(s, maxSentence) }

// figure is a number with the digits that are worth reading.
func figure(n conformance.Number) string { return number(float64(n)) }

func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "∞"
	case math.IsInf(x, -1):
		return "−∞"
	}
	return strings.Replace(strconv.FormatFloat(x, 'g', 4, 64), "-", "−", 1)
}

// ratioText fits into a cell of a map.
func ratioText(x float64) string {
	a := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 0):
		return "∞"
	case a < 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a < 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a < 1e5:
		return strconv.FormatFloat(x/1000, 'f', 0, 64) + "k"
	}
	return "1e" + strconv.Itoa(int(math.Floor(math.Log10(a))))
}

// sortKey is what orders a number whose text doesn't: what isn't one comes with the
// largest. It is empty where the text does.
func sortKey(x float64) string {
	switch {
	case math.IsNaN(x):
		return "1e309"
	case math.IsInf(x, 0):
		return strconv.FormatFloat(math.Copysign(1e308, x), 'g', 3, 64)
	case x < 0 || x != 0 && math.Abs(x) < 1e-4: // with a minus sign, which no program reads
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	return ""
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// identifier is isolated, and kept together where it fits.
func identifier(s string) template.HTML {
	return template.HTML(`<bdi class="id">` + template.HTMLEscapeString(s) + "</bdi>")
}

// isolated is a foreign text whose direction of writing stays its own. ASCII has none
// that could change another's.
func isolated(s string) template.HTML {
	if strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0 {
		return template.HTML(template.HTMLEscapeString(s))
	}
	return template.HTML("<bdi>" + template.HTMLEscapeString(s) + "</bdi>")
}
