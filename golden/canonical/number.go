package canonical

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// maxDigits is how many digits of an integer CPython reads
// (sys.set_int_max_str_digits).
const maxDigits = 4300

// FloatText is a finite x as CPython's float.__repr__ writes it: the shortest digits
// that give it back, with an exponent below 1e-4 and from 1e16 on.
func FloatText(x float64) string {
	s := strconv.FormatFloat(x, 'e', -1, 64)
	_, exp, _ := strings.Cut(s, "e")
	if e, _ := strconv.Atoi(exp); x != 0 && (e < -4 || e >= 16) {
		return s
	}
	s = strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// smallInt is a number that is an integer of at most 18 digits, spelled as Python
// writes it.
func smallInt(raw []byte) (int64, bool) {
	digits := raw
	negative := len(raw) > 0 && raw[0] == '-'
	if negative {
		digits = raw[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n, n != 0
	}
	return n, true
}

// number is a number of JSON's grammar; got and want are set for one that Python
// refuses.
func number(raw []byte) (v Value, got, want string) {
	if n, ok := smallInt(raw); ok {
		return Int(n), "", ""
	}
	text := string(raw)
	if bytes.ContainsAny(raw, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) {
			return Value{}, shorten(text), "a number within float64"
		}
		v = Float(f)
		if FloatText(f) != text {
			v.ref = spelling(text)
		}
		return v, "", ""
	}
	if text == "-0" {
		return Value{kind: KindInteger, ref: spelling(text)}, "", ""
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(n), "", ""
	}
	if digits := len(strings.TrimPrefix(text, "-")); digits > maxDigits {
		return Value{}, "an integer of " + strconv.Itoa(digits) + " digits", "at most " + strconv.Itoa(maxDigits) + ", as many as CPython reads"
	}
	return Value{kind: KindInteger, ref: bigInteger(text)}, "", ""
}

// shorten cuts a text to what fits an error.
func shorten(s string) string {
	const limit = 60
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
