package trace

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
)

// Writer writes a document source by source: what is in memory doesn't grow with
// their number. The sources are kept in a file without a name beside the document,
// since the execution block, which is known last, comes before them.
type Writer struct {
	plan   Plan
	shape  Shape
	hidden DType
	file   *dumpfmt.File
	spool  *os.File
	buf    *bufio.Writer
	sums   *Summariser
	n      int
	wall   float64
	peak   *int64
}

// Written is what became of a document.
type Written struct {
	Path, SHA256 string
	Bytes        int64
	Sources      int
	Summary      Summary
	// ForwardSeconds and Peak are those of all sources.
	ForwardSeconds float64
	Peak           *int64
}

// NewWriter starts a document at path; nothing is there under that name before
// Finish. An existing file is an error that satisfies errors.Is(err, fs.ErrExist),
// unless the options allow it.
func NewWriter(path string, p Plan, s Shape, hidden DType, o dumpfmt.WriteOptions) (*Writer, error) {
	if _, err := NewAccumulator(p, s, hidden); err != nil { // what it refuses
		return nil, err
	}
	f, err := dumpfmt.Create(path, o)
	if err != nil {
		return nil, err
	}
	spool, err := os.CreateTemp(filepath.Dir(path), ".sources-*")
	if err != nil {
		f.Abort()
		return nil, fmt.Errorf("trace: %w", err)
	}
	_ = os.Remove(spool.Name()) // where that works on an open file, a crash leaves nothing
	return &Writer{plan: p, shape: s, hidden: hidden, file: f, spool: spool, buf: bufio.NewWriterSize(spool, 256<<10), sums: NewSummariser(p, s)}, nil
}

// Add takes the next source. After an error the document is gone.
func (w *Writer) Add(t *SourceTrace) error {
	if w.spool == nil {
		return &UsageError{"Add", "document", "one that was finished or aborted", "one that is being written"}
	}
	l := newLayout(NewContract(w.plan, w.shape, w.hidden))
	if len(t.Stages) != len(l.stages) || len(t.Gates) != len(l.gates) || len(t.PromptTokens) != len(l.conditions) {
		w.Abort()
		return &UsageError{"Add", "source", fmt.Sprintf("%d stages, %d gates, %d conditions", len(t.Stages), len(t.Gates), len(t.PromptTokens)), "those of the document's plan and shape"}
	}
	if w.n > 0 {
		_, _ = w.buf.WriteString(",\n    ") // an error stays until Flush
	}
	if err := writeIndented(w.buf, encode(func(o *object) { t.fields(o, l) }), "    "); err != nil {
		w.Abort()
		return fmt.Errorf("trace: source %s: %w", dumpfmt.Printable(t.ID), err)
	}
	w.sums.Add(t)
	w.n++
	w.wall += t.ForwardSeconds
	if t.Peak != nil && (w.peak == nil || *t.Peak > *w.peak) {
		w.peak = t.Peak
	}
	return nil
}

// Finish writes the document and gives it its name. The trace contract, the number
// of sources, the seconds of all sources and the largest device memory of loading
// and running are filled in. A document without a source isn't written.
func (w *Writer) Finish(h Head) (Written, error) {
	if w.spool == nil {
		return Written{}, &UsageError{"Finish", "document", "one that was finished or aborted", "one that is being written"}
	}
	defer w.Abort()
	sum, err := w.sums.Summary()
	if err != nil {
		return Written{}, err
	}
	h.Trace = NewContract(w.plan, w.shape, w.hidden)
	h.Sources.Sources = w.n
	h.Execution.ForwardSeconds = w.wall
	h.Execution.Peak = w.peak
	if p := h.Execution.LoadPeak; p != nil && (w.peak == nil || *p > *w.peak) {
		h.Execution.Peak = p
	}
	if err := w.buf.Flush(); err != nil {
		return Written{}, fmt.Errorf("trace: %w", err)
	}
	if _, err := w.spool.Seek(0, io.SeekStart); err != nil {
		return Written{}, fmt.Errorf("trace: %w", err)
	}
	c := &counted{to: w.file, sum: sha256.New()}
	if err := writeDocument(c, h, w.spool, sum); err != nil {
		return Written{}, fmt.Errorf("trace: %s: %w", w.file.Name(), err)
	}
	if err := w.file.Commit(); err != nil {
		return Written{}, err
	}
	return Written{w.file.Name(), hex.EncodeToString(c.sum.Sum(nil)), c.n, w.n, sum, w.wall, h.Execution.Peak}, nil
}

// Abort removes what was written. After Finish it does nothing.
func (w *Writer) Abort() {
	w.file.Abort()
	if w.spool != nil {
		_ = w.spool.Close()
		_ = os.Remove(w.spool.Name()) // where it couldn't be while it was open
		w.spool = nil
	}
}

// Write writes a document that is in memory.
func Write(path string, d *Document, o dumpfmt.WriteOptions) error {
	f, err := dumpfmt.Create(path, o)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := d.Encode(f); err != nil {
		return err
	}
	return f.Commit()
}

// Encode writes the document's JSON as Python's json.dumps(…, indent=2,
// ensure_ascii=False) does, and a newline. Its lists have the lengths that its
// contract says.
func (d *Document) Encode(w io.Writer) error {
	if err := d.lengths(); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 64<<10)
	for i, m := range d.value().Members() {
		if err := writeMember(b, i, m); err != nil {
			return err
		}
	}
	_, _ = b.WriteString("\n}\n")
	return b.Flush()
}

// writeDocument writes head, sources that are JSON already, and the rest.
func writeDocument(w io.Writer, h Head, sources io.Reader, sum Summary) error {
	b := bufio.NewWriterSize(w, 64<<10)
	i := 0
	for _, m := range encode(h.before).Members() {
		if err := writeMember(b, i, m); err != nil {
			return err
		}
		i++
	}
	_, _ = b.WriteString(",\n  \"sources\": [\n    ")
	if _, err := io.Copy(b, sources); err != nil {
		return err
	}
	_, _ = b.WriteString("\n  ]")
	rest := encode(func(o *object) {
		o.inner("summary", func(o *object) { sum.fields(o, newLayout(h.Trace)) })
		o.strs("claim_boundary", &h.ClaimBoundary)
	})
	for _, m := range rest.Members() {
		if err := writeMember(b, i, m); err != nil {
			return err
		}
	}
	_, _ = b.WriteString("\n}\n")
	return b.Flush()
}

// writeMember writes member i of the document.
func writeMember(b *bufio.Writer, i int, m canonical.Member) error {
	sep := ",\n  "
	if i == 0 {
		sep = "{\n  "
	}
	_, _ = b.WriteString(sep + `"` + m.Key + `": `) // the keys of a document need no escapes
	if err := writeIndented(b, m.Value, "  "); err != nil {
		return fmt.Errorf("%s: %w", m.Key, err)
	}
	return nil
}

// writeIndented writes a value over several lines, each but the first behind
// prefix.
func writeIndented(w io.Writer, v canonical.Value, prefix string) error {
	compact, err := v.Append(nil, canonical.InsertionOrder)
	if err != nil {
		return err
	}
	text := jsontext.Value(compact)
	if err := text.Indent(jsontext.WithIndentPrefix(prefix), jsontext.WithIndent("  ")); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// counted counts and hashes what it passes on.
type counted struct {
	to  io.Writer
	sum interface {
		io.Writer
		Sum([]byte) []byte
	}
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	_, _ = c.sum.Write(p[:n])
	return n, err
}
