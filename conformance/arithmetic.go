package conformance

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// arithmetic is how a candidate computes, as far as it says so.
type arithmetic struct {
	// float: the candidate computes in float32 throughout.
	float bool
	// scheme is what the yardstick emulates otherwise.
	scheme engine.Scheme
	// unknown is why the yardstick is not the candidate's own arithmetic;
	// empty when it is.
	unknown string
}

// arithmeticOf reads the declaration. A side that declares float rows and no
// quantisation is held to float32: it would be held too loosely otherwise, and
// its engine.json is the place to say more.
func arithmeticOf(d engine.Info) arithmetic {
	if d.Layers == engine.LayersInt8Scaled {
		return arithmetic{scheme: engine.Scheme{RowsInt8: true}}
	}
	w, a := strings.ToLower(d.Weights), strings.ToLower(d.Activations)
	dt := strings.ToLower(d.DType)
	switch {
	case isFloat32(w) && isFloat32(a) && isFloat32(dt):
		if kv, known := engine.ParseKVCache(d.KVCache); (!known || kv != (engine.KVCache{})) && !isFloatCache(d.KVCache) {
			return arithmetic{unknown: fmt.Sprintf("%skv_cache %q beside float32", unknownArithmetic, d.KVCache)}
		}
		return arithmetic{float: true}
	case w == "int8" && (a == "int8" || a == ""):
		return arithmetic{}
	}
	return blockArithmeticOf(d)
}

// arithmeticOfLogits is arithmeticOf for the logits: integer logits come from an
// integer head, whatever the rows in front of it are.
func arithmeticOfLogits(d engine.Info) arithmetic {
	a := arithmeticOf(d)
	if d.Logits == engine.LogitsInt32 {
		a.float = false
	}
	return a
}

// isFloatCache reports whether a declared cache rounds to no less than float32. What
// stands behind the type is said for people.
func isFloatCache(s string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(s)), ",")
	kind, _, _ = strings.Cut(kind, " ")
	return isFloat32(kind) || kind == "float64"
}

func isFloat32(s string) bool { return s == "" || s == "f32" || s == "float32" || s == "fp32" }

// degenerate returns the first row that carries no information and what it is,
// or -1.
func degenerate(rows [][]float64) (row int, what string) {
	for i, r := range rows {
		if c := metric.Classify(r); c.Degenerate() {
			return i, c.Kind.String()
		}
	}
	return -1, ""
}

// usableRows returns the rows with nil in place of those that can't be measured:
// degenerate ones, and ones that float32 can't hold. measurable is false when
// no layer has both its rows.
func usableRows(rows [][]float64) (out [][]float64, measurable bool) {
	out = make([][]float64, len(rows))
	for i, r := range rows {
		if metric.Classify(r).Degenerate() || beyondFloat32(r) >= 0 {
			continue
		}
		out[i] = r
		measurable = measurable || (i > 0 && out[i-1] != nil)
	}
	return out, measurable
}

// beyondFloat32 is the first channel whose square sum float32 can't hold, or
// -1: a layer of the reference could not take such a row.
func beyondFloat32(row []float64) int {
	for i, x := range row {
		if math.Abs(x) > 1e18 {
			return i
		}
	}
	return -1
}

// sameBits reports the first channel where two rows differ in bits.
func sameBits(a, b []float64) (channel int, same bool) {
	for i := range a {
		if i >= len(b) || math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return i, false
		}
	}
	if len(a) != len(b) {
		return len(a), false
	}
	return -1, true
}
