package teacher

import (
	"math"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// scriptInt is Python's int(v), with which the script reads numbers: it cuts
// fractions off, and takes booleans and strings. A number beyond int64 is the end
// that it lies beyond. ok is false where Python raises.
func scriptInt(v canonical.Value) (n int64, ok bool) {
	switch v.Kind() {
	case canonical.KindInteger:
		if n, ok := v.Int(); ok {
			return n, true
		}
		text, _ := v.Number()
		return beyond(strings.HasPrefix(text, "-")), true
	case canonical.KindFloat:
		f, _ := v.Float()
		if f = math.Trunc(f); f >= math.MaxInt64 || f <= math.MinInt64 {
			return beyond(f < 0), true
		}
		return int64(f), true
	case canonical.KindBool:
		if b, _ := v.Bool(); b {
			return 1, true
		}
		return 0, true
	case canonical.KindString:
		text, _ := v.Text()
		return scriptIntText(strings.TrimSpace(text))
	}
	return 0, false
}

// scriptIntText takes decimal digits with a sign, and single underscores between
// them.
func scriptIntText(s string) (n int64, ok bool) {
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" || strings.Contains(digits, "__") || strings.Trim(digits, "_") != digits ||
		strings.Trim(digits, "0123456789_") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil {
		return beyond(strings.HasPrefix(s, "-")), true
	}
	return n, true
}

func beyond(negative bool) int64 {
	if negative {
		return math.MinInt64
	}
	return math.MaxInt64
}

// scriptTruth is Python's bool(v).
func scriptTruth(v canonical.Value) bool {
	switch v.Kind() {
	case canonical.KindBool:
		b, _ := v.Bool()
		return b
	case canonical.KindInteger:
		n, ok := v.Int()
		return !ok || n != 0
	case canonical.KindFloat:
		f, _ := v.Float()
		return f != 0
	case canonical.KindString:
		s, _ := v.Text()
		return s != ""
	}
	return v.Len() > 0
}

// scriptSlice is Python's ids[:n]: a negative n counts from the end.
func scriptSlice(ids []int, n int64) []int {
	if n < 0 {
		n = max(0, int64(len(ids))+n)
	}
	return ids[:min(n, int64(len(ids)))]
}

// scriptIndex is Python's ids[n]; ok is false where it raises.
func scriptIndex(ids []int, n int64) (id int, ok bool) {
	if n < 0 {
		n += int64(len(ids))
	}
	if n < 0 || n >= int64(len(ids)) {
		return 0, false
	}
	return ids[n], true
}
