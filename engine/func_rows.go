package engine

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// FloatRows is a residual capture in memory: layers + 1 rows of the hidden size.
// The memory is the caller's, and is not copied.
func FloatRows(text string, rows [][]float32) (RowSource, error) {
	v, err := valuesOf("FloatRows", rows, 1)
	if err != nil {
		return nil, err
	}
	return memoryRows[float32]{v, dumpfmt.Fingerprint(text), nil}, nil
}

// Int8Rows is an int8 residual capture in memory, with the scale of each row.
// The memory is the caller's, and is not copied.
func Int8Rows(text string, scales []dumpfmt.Scale, codes [][]int8) (RowSource, error) {
	v, err := valuesOf("Int8Rows", codes, 1)
	if err == nil && len(scales) != len(codes) {
		err = fmt.Errorf("engine: Int8Rows: got %d scales, want %d", len(scales), len(codes))
	}
	if err != nil {
		return nil, err
	}
	steps := make([]float64, len(scales))
	for i, s := range scales {
		var ok bool
		if steps[i], ok = s.Step(); !ok {
			return nil, fmt.Errorf("engine: Int8Rows: scale of row %d: got %s, want m*2^e with m > 0, normal and finite in float64", i, s)
		}
	}
	return memoryRows[int8]{v, dumpfmt.Fingerprint(text), steps}, nil
}

// LogitRows is a logit dump in memory, one row per output token; it may have no
// row. The memory is the caller's, and is not copied.
func LogitRows[T float32 | int32](rows [][]T) (LogitSource, error) {
	v, err := valuesOf("LogitRows", rows, 0)
	if err != nil {
		return nil, err
	}
	return memoryLogits[T]{v}, nil
}

// memory is a table of values of one width.
type memory[T float32 | int32 | int8] struct {
	rows  [][]T
	width int
}

func valuesOf[T float32 | int32 | int8](what string, rows [][]T, least int) (memory[T], error) {
	m := memory[T]{rows: rows}
	if len(rows) < least {
		return m, fmt.Errorf("engine: %s: got %d rows, want at least %d", what, len(rows), least)
	}
	for i, r := range rows {
		if i == 0 {
			m.width = len(r)
		}
		if len(r) != m.width || len(r) == 0 {
			return m, fmt.Errorf("engine: %s: row %d: got %d values, want %d as in row 0, and at least 1", what, i, len(r), m.width)
		}
	}
	return m, nil
}

func (m memory[T]) read(i int, dst []float64, step float64) error {
	if i < 0 || i >= len(m.rows) || len(dst) != m.width {
		return fmt.Errorf("engine: row %d into %d values: got an index or length outside %d rows of %d", i, len(dst), len(m.rows), m.width)
	}
	for j, x := range m.rows[i] {
		dst[j] = float64(x) * step
	}
	return nil
}

type memoryRows[T float32 | int8] struct {
	memory[T]
	fingerprint uint64
	steps       []float64 // nil for float rows
}

func (m memoryRows[T]) Header() CaptureHeader {
	return CaptureHeader{Rows: len(m.rows), Width: m.width, Fingerprint: m.fingerprint, Mode: CaptureModeIncremental}
}

func (m memoryRows[T]) Row(i int, dst []float64) (float64, error) {
	if i < 0 || i >= len(m.steps) { // a float row, or an error
		return 0, m.read(i, dst, 1)
	}
	return m.steps[i], m.read(i, dst, m.steps[i])
}

func (memoryRows[T]) Close() error { return nil }

type memoryLogits[T float32 | int32] struct{ memory[T] }

func (m memoryLogits[T]) Shape() (rows, vocab int) { return len(m.rows), m.width }

func (m memoryLogits[T]) Row(i int, dst []float64) error { return m.read(i, dst, 1) }

func (memoryLogits[T]) Close() error { return nil }
