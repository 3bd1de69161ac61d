package dumpfmt

import "fmt"

// rowWriter counts rows against a header that is already written.
type rowWriter struct {
	op                   string
	f                    *File
	rows, width, written int
}

func (w *rowWriter) begin(op, path string, head []byte, rows, width int, o WriteOptions) error {
	f, err := Create(path, o)
	if err != nil {
		return err
	}
	*w = rowWriter{op: op, f: f, rows: rows, width: width}
	_, err = f.Write(head)
	return err
}

// next checks one more row of the given length.
func (w *rowWriter) next(n int) error {
	if w.written == w.rows {
		return usageInt(w.op+".WriteRow", "row count", w.written+1, w.rows)
	}
	if n != w.width {
		return usageInt(w.op+".WriteRow", fmt.Sprintf("length of row %d", w.written), n, w.width)
	}
	w.written++
	return nil
}

// Commit makes the file visible under its final name. Too few rows are a
// *UsageError and leave nothing.
func (w *rowWriter) Commit() error {
	if w.written != w.rows {
		_ = w.f.Abort()
		return usageInt(w.op+".Commit", "row count", w.written, w.rows)
	}
	return w.f.Commit()
}

// Abort removes what was written; after Commit it does nothing.
func (w *rowWriter) Abort() error { return w.f.Abort() }

// writeRow4 appends a row of 4-byte values.
func writeRow4[T float32 | int32](w *rowWriter, row []T) error {
	if err := w.next(len(row)); err != nil {
		return err
	}
	return writeValues4(w.f, row)
}

func writeValues4[T float32 | int32](f *File, v []T) error {
	p := bytesOf(v)
	if !littleEndian {
		p = append([]byte(nil), p...)
		swap4(p)
	}
	_, err := f.Write(p)
	return err
}
