package selfcheck

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// Error says which check failed, and where.
type Error struct {
	// Check is "capture", "endpoint_self_check" or "interior_row_oracle".
	Check string
	// Row is the row at fault.
	Row int
	Why string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: row %d: %s", e.Check, e.Row, e.Why) }

// Finite checks that every row can be used at all.
func Finite(rows [][]float64) error {
	for i, row := range rows {
		if at, ok := metric.Finite(row); !ok {
			return &Error{Check: "capture", Row: i, Why: fmt.Sprintf("channel %d: got %v, want a finite value", at, row[at])}
		}
	}
	return nil
}

// Ends is what is known of the two ends of a capture, from elsewhere than it.
type Ends struct {
	// LastHidden is the model's own last hidden state, after the final norm.
	LastHidden []float64
	// NormOfLast is the final norm of the capture's last row.
	NormOfLast []float64
	// Embedding is the last prompt token's row of the table.
	Embedding []float64
}

// oneRounding is a unit in the last place of float32, relative: what the final
// norm may differ by between two compositions of the arithmetic.
const oneRounding = 0x1p-23

// Endpoint checks both ends of a capture. The last row must not be the model's
// own last hidden state (which comes after the final norm, and which frameworks
// silently put in the last layer's place), its final norm must be that state
// within one rounding of float32, and row 0 must be the embedding of the last
// prompt token. A state that isn't finite fails: it would differ from every row.
func Endpoint(rows [][]float64, e Ends) error {
	const check = "endpoint_self_check"
	lastHidden, embedding := e.LastHidden, e.Embedding
	last := len(rows) - 1
	if len(rows) < 2 {
		return &Error{Check: check, Row: last, Why: fmt.Sprintf("got %d rows, want at least 2", len(rows))}
	}
	if len(lastHidden) != len(rows[last]) {
		return &Error{Check: check, Row: last,
			Why: fmt.Sprintf("the last hidden state has %d elements, want %d", len(lastHidden), len(rows[last]))}
	}
	if at, ok := metric.Finite(lastHidden); !ok {
		return &Error{Check: check, Row: last, Why: fmt.Sprintf("channel %d of the state after the final norm: got %v, want a finite value", at, lastHidden[at])}
	}
	if firstDifference(rows[last], lastHidden) < 0 {
		return &Error{Check: check, Row: last, Why: "got the bits of the state after the final norm, want the residual stream before it"}
	}
	if len(e.NormOfLast) != len(lastHidden) {
		return &Error{Check: check, Row: last, Why: fmt.Sprintf("its final norm has %d elements, want %d", len(e.NormOfLast), len(lastHidden))}
	}
	for i, want := range lastHidden {
		if got := e.NormOfLast[i]; !(math.Abs(got-want) <= oneRounding*math.Abs(want)) {
			return &Error{Check: check, Row: last,
				Why: fmt.Sprintf("channel %d: its final norm is %v, the model's own last hidden state %v: more than one rounding apart", i, got, want)}
		}
	}
	if at := firstDifference(rows[0], embedding); at >= 0 {
		return &Error{Check: check, Row: 0, Why: fmt.Sprintf("channel %d differs from the embedding of the last prompt token", at)}
	}
	return nil
}

// Interior checks that every row has the bits of a second composition that
// shares no capture code with the first.
func Interior(rows, oracle [][]float64) error {
	const check = "interior_row_oracle"
	if len(rows) != len(oracle) {
		return &Error{Check: check, Row: min(len(rows), len(oracle)),
			Why: fmt.Sprintf("got %d rows, the second composition has %d", len(rows), len(oracle))}
	}
	for i := range rows {
		if at := firstDifference(rows[i], oracle[i]); at >= 0 {
			return &Error{Check: check, Row: i, Why: fmt.Sprintf("channel %d differs from the second composition", at)}
		}
	}
	return nil
}

// firstDifference is the first index at which the rows aren't bit-identical, the
// shorter length if one has no more, or -1. A NaN differs from everything.
func firstDifference(a, b []float64) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}
