package kernel

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// csvHeader are the columns of tq_c0_diff.py. pos is the decode step.
const csvHeader = "layer,pos,op,max_abs_diff,mean_abs_diff,mse,nrmse,rel_err_pct,dense_mean_abs,tq_mean_abs,note"

const missingCell = "MISSING"

// CSVWriter writes rows as the script does: CRLF, Python's shortest floats.
type CSVWriter struct {
	w   io.Writer
	inv *Inventory
	buf []byte
}

// NewCSVWriter writes the header to w. The caller buffers.
func NewCSVWriter(w io.Writer, inv *Inventory) (*CSVWriter, error) {
	_, err := io.WriteString(w, csvHeader+"\r\n")
	return &CSVWriter{w: w, inv: inv}, err
}

// Write writes a row. One that a recorded CSV didn't have isn't written either.
func (c *CSVWriter) Write(r Row) error {
	if r.Absent {
		return nil
	}
	b := strconv.AppendInt(c.buf[:0], int64(r.Layer), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(c.inv.Positions[r.Position].Step), 10)
	b = append(b, ',')
	b = append(b, csvCell(c.inv.Ops[r.Op].Name)...)
	f := r.Figures
	for _, x := range [...]float64{f.MaxAbs, f.MeanAbs, f.MSE, f.NRMSE, f.RelErrPct, f.RefMeanAbs, f.CandMeanAbs} {
		b = append(b, ',')
		if r.Compared() {
			b = append(b, PythonFloat(x)...)
		} else {
			b = append(b, missingCell...)
		}
	}
	b = append(b, ',')
	b = append(b, csvCell(r.Note)...)
	b = append(b, '\r', '\n')
	c.buf = b
	_, err := c.w.Write(b)
	return err
}

// csvCell quotes as Python's csv module does.
func csvCell(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// ReadCSV reads a recorded CSV of an inventory and calls each with a row for every
// tensor, in the inventory's order: a tensor that the CSV has no row for is Missing
// and Absent. Rows that the inventory doesn't have, rows twice, cells that aren't
// what their column holds, and figures that no two tensors have are a *CSVError, with
// the line, before the first call.
func ReadCSV(r io.Reader, name string, inv *Inventory, each func(Row) error) error {
	rows, err := readCSV(r, name, inv)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row == nil {
			row = &Row{Key: inv.Key(i), Problem: Missing, Absent: true,
				Note: fmt.Sprintf("ABSENT:%s:no row for %s", name, inv.Coordinates(inv.Key(i)))}
		}
		if err := each(*row); err != nil {
			return err
		}
	}
	return nil
}

// CSVError says that a recorded CSV is malformed.
type CSVError struct {
	Name string
	Err  error
}

func (e *CSVError) Error() string { return fmt.Sprintf("kernel: csv %s: %v", e.Name, e.Err) }
func (e *CSVError) Unwrap() error { return e.Err }

// csvError is a failure to read, or what the csv package says of the text.
func csvError(name string, err error) error {
	var text *csv.ParseError
	if errors.As(err, &text) {
		return &CSVError{name, err}
	}
	return fmt.Errorf("kernel: csv %s: %w", name, err)
}

func readCSV(r io.Reader, name string, inv *Inventory) ([]*Row, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	c.FieldsPerRecord = strings.Count(csvHeader, ",") + 1
	head, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil, &CSVError{name, errors.New("got 0 bytes, want a header")}
	}
	if err != nil {
		return nil, csvError(name, err)
	}
	if strings.HasPrefix(head[0], "\ufeff") {
		return nil, &CSVError{name, errors.New("header: got a byte order mark, want none")}
	}
	if got := strings.Join(head, ","); got != csvHeader {
		return nil, &CSVError{name, fmt.Errorf("header: got %q, want %q", got, csvHeader)}
	}
	steps, ops := map[int]int{}, map[string]int{}
	for i, p := range inv.Positions {
		steps[p.Step] = i
	}
	for i, op := range inv.Ops {
		ops[op.Name] = i
	}
	rows := make([]*Row, inv.Len())
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, csvError(name, err)
		}
		line, _ := c.FieldPos(0)
		bad := func(what, got, want string) error {
			return &CSVError{name, fmt.Errorf("line %d: %s: got %q, want %s", line, what, got, want)}
		}
		layer, err := strconv.Atoi(cells[0])
		if err != nil || layer < 0 || layer >= len(inv.Layers) {
			return nil, bad("layer", cells[0], fmt.Sprintf("0 to %d, the layers of inventory %s", len(inv.Layers)-1, inv.Name))
		}
		step, err := strconv.Atoi(cells[1])
		position, ok := steps[step]
		if err != nil || !ok {
			return nil, bad("pos", cells[1], "a decode step of inventory "+inv.Name)
		}
		op, ok := ops[cells[2]]
		if !ok {
			return nil, bad("op", cells[2], "an op of inventory "+inv.Name)
		}
		row := &Row{Key: Key{layer, position, op}, Note: strings.Clone(cells[10])}
		if row.Note != "" {
			row.Problem = problemOfNote(row.Note)
		}
		for i, x := range []*float64{&row.MaxAbs, &row.MeanAbs, &row.MSE, &row.NRMSE, &row.RelErrPct, &row.RefMeanAbs, &row.CandMeanAbs} {
			cell := cells[3+i]
			if row.Note != "" {
				if cell != missingCell {
					return nil, bad(strings.Split(csvHeader, ",")[3+i], cell, missingCell+" in a row with a note")
				}
				continue
			}
			if *x, err = strconv.ParseFloat(cell, 64); err != nil || *x < 0 {
				return nil, bad(strings.Split(csvHeader, ",")[3+i], cell, "a number, not negative")
			}
		}
		if row.Compared() {
			heads, width := inv.Shape(row.Key)
			if what, got, want := row.impossible(float64(heads) * float64(width)); what != "" {
				return nil, bad(what, got, want)
			}
		}
		at := &rows[inv.Index(row.Key)]
		if *at != nil {
			return nil, bad("row", inv.Coordinates(row.Key)+" twice", "each tensor once")
		}
		*at = row
	}
}

// problemOfNote is the gravest problem that a note tells of.
func problemOfNote(note string) Problem {
	switch {
	case strings.Contains(note, "UNREADABLE:"):
		return Unreadable
	case strings.Contains(note, "SIZE_MISMATCH:"), strings.Contains(note, "SHAPE_MISMATCH:"):
		return WrongSize
	case strings.Contains(note, "MISSING:"):
		return Missing
	}
	return Unreadable
}
