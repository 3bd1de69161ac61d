package kernel

import (
	"math"
	"strconv"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// PythonFloat is x as Python's repr writes a float: the shortest digits that give
// it back, with an exponent below 1e-4 and from 1e16 on.
func PythonFloat(x float64) string {
	if s, ok := pythonNonFinite(x); ok {
		return s
	}
	return canonical.FloatText(x)
}

// PythonExp is x as Python's format specification .{decimals}e writes it.
func PythonExp(x float64, decimals int) string {
	if s, ok := pythonNonFinite(x); ok {
		return s
	}
	return strconv.FormatFloat(x, 'e', decimals, 64)
}

func pythonNonFinite(x float64) (string, bool) {
	switch {
	case math.IsNaN(x):
		return "nan", true
	case math.IsInf(x, 1):
		return "inf", true
	case math.IsInf(x, -1):
		return "-inf", true
	}
	return "", false
}
