package canonical

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"
)

// generator makes JSON texts, and texts that nearly are some, the same ones for a
// seed whatever the version of Go.
type generator struct {
	r *rand.PCG
	b []byte
}

func newGenerator(seed uint64) *generator { return &generator{r: rand.NewPCG(seed, 0)} }

// n is uniform below limit; nothing here needs it better.
func (g *generator) n(limit int) int { return int(g.r.Uint64() % uint64(limit)) }

func (g *generator) add(s string) { g.b = append(g.b, s...) }

// document returns a text, every fifth with a fault planted in its bytes.
func (g *generator) document() []byte {
	g.b = nil
	g.space()
	g.value(1 + g.n(5))
	g.space()
	if g.n(5) == 0 {
		g.fault()
	}
	return g.b
}

func (g *generator) fault() {
	at := g.n(len(g.b))
	switch g.n(4) {
	case 0:
		g.b[at] = byte(g.n(256))
	case 1:
		g.b = g.b[:at]
	case 2:
		g.b = append(g.b[:at], g.b[at+1:]...)
	default:
		extra := []string{",", "]", "}", "\"", "0", "-", ".", "e", "NaN", "Infinity", "\\", "\\ud800", "\xed\xa0\x80", "\xef\xbb\xbf", "\x00", " "}
		g.b = append(g.b[:at:at], extra[g.n(len(extra))]+string(g.b[at:])...)
	}
}

func (g *generator) space() {
	for g.n(4) == 0 {
		g.add([]string{" ", "\n", "\t", "\r"}[g.n(4)])
	}
}

func (g *generator) value(depth int) {
	kind := g.n(9)
	if depth == 0 {
		kind = g.n(6)
	}
	switch kind {
	case 0:
		g.add([]string{"null", "true", "false"}[g.n(3)])
	case 1, 2:
		g.integer()
	case 3:
		g.float()
	case 4, 5:
		g.str()
	case 6:
		g.list('[', ']', func() { g.value(depth - 1) })
	case 7:
		g.list('[', ']', func() { g.add(strconv.Itoa(g.n(150_000))) })
	default:
		g.list('{', '}', func() {
			g.key()
			g.space()
			g.add(":")
			g.space()
			g.value(depth - 1)
		})
	}
}

func (g *generator) list(open, end byte, element func()) {
	g.b = append(g.b, open)
	g.space()
	for i := range g.n(7) {
		if i > 0 {
			g.add(",")
			g.space()
		}
		element()
		g.space()
	}
	g.b = append(g.b, end)
}

func (g *generator) integer() {
	switch g.n(6) {
	case 0:
		g.add([]string{"0", "-0", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616"}[g.n(8)])
	case 1:
		g.sign()
		g.digits(1 + g.n(60))
	default:
		g.sign()
		g.add(strconv.FormatUint(g.r.Uint64()>>g.n(64), 10))
	}
}

func (g *generator) sign() {
	if g.n(3) == 0 {
		g.add("-")
	}
}

// digits adds count of them, the first of which isn't 0.
func (g *generator) digits(count int) {
	g.b = append(g.b, byte('1'+g.n(9)))
	for range count - 1 {
		g.b = append(g.b, byte('0'+g.n(10)))
	}
}

func (g *generator) float() {
	switch g.n(4) {
	case 0: // any float64
		f := math.Float64frombits(g.r.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = 0.5
		}
		g.b = strconv.AppendFloat(g.b, f, []byte{'e', 'g', 'E'}[g.n(3)], []int{-1, 17, 20, 3}[g.n(4)], 64)
	case 1: // near the ends of the range, and of the form without exponent
		g.sign()
		g.digits(1 + g.n(20))
		g.add([]string{"e", "E", "e+", "e-", "E-0"}[g.n(5)])
		g.add(strconv.Itoa([]int{0, 1, 3, 4, 5, 14, 15, 16, 17, 22, 289, 308, 323, 324}[g.n(14)]))
	default:
		g.sign()
		if g.n(2) == 0 {
			g.add("0")
		} else {
			g.digits(1 + g.n(18))
		}
		g.add(".")
		g.add(strings.Repeat("0", g.n(6)))
		g.digits(1 + g.n(20))
		g.add(strings.Repeat("0", g.n(3)))
	}
}

// key is short, so that some come twice in an object.
func (g *generator) key() {
	if g.n(3) == 0 {
		g.str()
		return
	}
	fmt.Fprintf(g, "%q", []string{"a", "b", "aa", "A", "kind", "é", "\uffff", "😀", "10", "9"}[g.n(10)])
}

func (g *generator) Write(p []byte) (int, error) {
	g.b = append(g.b, p...)
	return len(p), nil
}

func (g *generator) str() {
	g.add(`"`)
	for range g.n(12) {
		switch g.n(10) {
		case 0:
			g.add([]string{`\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`}[g.n(8)])
		case 1:
			fmt.Fprintf(g, []string{`\u%04x`, `\u%04X`}[g.n(2)], g.n(0xd800))
		case 2: // a pair
			fmt.Fprintf(g, `\u%04x\u%04X`, 0xd800+g.n(0x400), 0xdc00+g.n(0x400))
		case 3: // often half of one
			if g.n(20) == 0 {
				fmt.Fprintf(g, `\u%04x`, 0xd800+g.n(0x800))
			}
		case 4:
			g.b = utf8.AppendRune(g.b, []rune{0x7f, 0x80, 0xa0, 0x2028, 0x2029, 0xfeff, 0xfffd, 0xffff, 0x10ffff, '<', '>', '&', '/', '\''}[g.n(14)])
		case 5:
			for {
				if c := rune(g.n(0x110000)); utf8.ValidRune(c) && c >= 0x20 && c != '"' && c != '\\' {
					g.b = utf8.AppendRune(g.b, c)
					break
				}
			}
		default:
			if c := byte(0x20 + g.n(0x5f)); c != '"' && c != '\\' {
				g.b = append(g.b, c)
			}
		}
	}
	g.add(`"`)
}
