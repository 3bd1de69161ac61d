package trace

import (
	"fmt"
	"slices"
)

// Hidden are the hidden rows of some tokens, one per token, all of one width. The
// values are those of DType.
type Hidden struct {
	DType DType
	Rows  [][]float32
}

// At are the rows at some positions; they share memory with h.
func (h Hidden) At(positions []int) Hidden {
	rows := make([][]float32, len(positions))
	for i, p := range positions {
		rows[i] = h.Rows[p]
	}
	return Hidden{h.DType, rows}
}

// width is the number of columns, 0 without rows.
func (h Hidden) width() int {
	if len(h.Rows) == 0 {
		return 0
	}
	return len(h.Rows[0])
}

// check wants at least one row, equal widths and finite values of the type.
func (h Hidden) check(at string) error {
	if err := h.DType.check(); err != nil {
		return err
	}
	return rowsOf(at, "row", h.DType, h.Rows)
}

func rowsOf(at, what string, t DType, rows [][]float32) error {
	if len(rows) == 0 || len(rows[0]) == 0 {
		return &InputError{at, what + "s", "none", "at least one value"}
	}
	for i, row := range rows {
		if len(row) != len(rows[0]) {
			return &InputError{at, fmt.Sprintf("%s %d", what, i), fmt.Sprintf("%d values", len(row)), fmt.Sprint(len(rows[0]))}
		}
		for k, x := range row {
			if !t.holds(x) {
				return &InputError{at, fmt.Sprintf("%s %d, value %d", what, i, k), fmt.Sprint(x), "a finite value of " + string(t)}
			}
		}
	}
	return nil
}

// Routes are the experts of some tokens, and their weights, in the order in which
// the router gave them.
type Routes struct {
	IDs     [][]int
	Weights [][]float32
	// DType is the type of the weights.
	DType DType
}

// At are the routes at some positions; they share memory with r.
func (r Routes) At(positions []int) Routes {
	out := Routes{make([][]int, len(positions)), make([][]float32, len(positions)), r.DType}
	for i, p := range positions {
		out.IDs[i], out.Weights[i] = r.IDs[p], r.Weights[p]
	}
	return out
}

// check wants at least one token, the same number of experts for each, all of them
// there and each once, and finite weights.
func (r Routes) check(at string, experts int) error {
	if err := r.DType.check(); err != nil {
		return err
	}
	if len(r.IDs) == 0 || len(r.IDs[0]) == 0 {
		return &InputError{at, "routes", "none", "at least one expert"}
	}
	if len(r.Weights) != len(r.IDs) {
		return &InputError{at, "weights", fmt.Sprintf("%d rows", len(r.Weights)), fmt.Sprint(len(r.IDs))}
	}
	k := len(r.IDs[0])
	for t, ids := range r.IDs {
		if len(ids) != k || len(r.Weights[t]) != k {
			return &InputError{at, fmt.Sprintf("token %d", t), fmt.Sprintf("%d experts, %d weights", len(ids), len(r.Weights[t])), fmt.Sprintf("%d of each", k)}
		}
		for s, id := range ids {
			if id < 0 || id >= experts {
				return &InputError{at, fmt.Sprintf("token %d, slot %d", t, s), fmt.Sprintf("expert %d", id), fmt.Sprintf("0 <= expert < %d", experts)}
			}
			if slices.Contains(ids[:s], id) {
				return &InputError{at, fmt.Sprintf("token %d, slot %d", t, s), fmt.Sprintf("expert %d again", id), "each expert once"}
			}
		}
	}
	return rowsOf(at, "weights of token", r.DType, r.Weights)
}
