package margins

import (
	"fmt"
	"testing"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

func open(tb testing.TB, dir string) *dumpfmt.Folder {
	tb.Helper()
	f, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// writeFloat writes a folder with one case of float32 logits; an empty case file
// gets a prompt.
func writeFloat(tb testing.TB, dir, name string, c dumpfmt.CaseFile, rows [][]float32) {
	tb.Helper()
	write(tb, dir, dumpfmt.LogitsFloat32, name, c, func(w *dumpfmt.CaseWriter) error {
		d, err := w.FloatLogits(headerOf(rows))
		for _, r := range rows {
			if err == nil {
				err = d.WriteRow(r)
			}
		}
		if err != nil {
			return err
		}
		return d.Commit()
	})
}

// writeInt is writeFloat for int32 logits.
func writeInt(tb testing.TB, dir, name string, c dumpfmt.CaseFile, rows [][]int32) {
	tb.Helper()
	write(tb, dir, dumpfmt.LogitsInt32, name, c, func(w *dumpfmt.CaseWriter) error {
		d, err := w.Int32Logits(headerOf(rows))
		for _, r := range rows {
			if err == nil {
				err = d.WriteRow(r)
			}
		}
		if err != nil {
			return err
		}
		return d.Commit()
	})
}

func headerOf[T any](rows [][]T) dumpfmt.LogitHeader {
	if len(rows) == 0 {
		return dumpfmt.LogitHeader{}
	}
	return dumpfmt.LogitHeader{Rows: len(rows), Vocab: len(rows[0])}
}

func write(tb testing.TB, dir, logits, name string, c dumpfmt.CaseFile, dump func(*dumpfmt.CaseWriter) error) {
	tb.Helper()
	if c.Text == "" {
		c.Text, c.TokenIDs = "<s>"+name, []int{1, 2, 3}
	}
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: fmt.Sprintf("%s engine", logits), Layers: dumpfmt.LayersFloat32, Logits: logits}, dumpfmt.WriteOptions{Overwrite: true})
	if err != nil {
		tb.Fatal(err)
	}
	cw, err := w.Case(name, c)
	if err == nil {
		err = dump(cw)
	}
	if err == nil {
		err = cw.Commit()
	}
	if err != nil {
		tb.Fatal(err)
	}
}
