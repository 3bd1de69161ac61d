package bisect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// dump is one layer dump of either type.
type dump struct {
	side   Side
	path   string
	text   uint64 // the fingerprint of the case's own text
	header header
	row    func(i int, dst []float64) error
	close  func() error
}

// header is what a dump declares, as it stands there.
type header struct{ rows, width, fingerprint, mode uint64 }

func headerOf(h dumpfmt.LayerHeader) header {
	return header{uint64(h.Rows), uint64(h.Width), h.Fingerprint, h.Mode}
}

// openDump opens the layer dump of a case. A dump whose capture mode is wrong
// comes back with its header and without rows, so that the fields which are
// compared before the mode are.
func openDump(side Side, c *dumpfmt.Case, layers string) (*dump, error) {
	d := &dump{side: side, path: c.LayersPath, text: dumpfmt.Fingerprint(c.File.Text)}
	var err error
	if layers == dumpfmt.LayersInt8Scaled {
		var f *dumpfmt.Int8Layers
		if f, err = dumpfmt.OpenInt8Layers(c.LayersPath); err == nil {
			d.header, d.close = headerOf(f.Header()), f.Close
			d.row = func(i int, dst []float64) error {
				_, err := f.Row64(i, dst)
				return err
			}
		}
	} else {
		var f *dumpfmt.FloatLayers
		if f, err = dumpfmt.OpenFloatLayers(c.LayersPath); err == nil {
			d.header, d.close, d.row = headerOf(f.Header()), f.Close, f.Row64
		}
	}
	if err == nil {
		return d, nil
	}
	fault := &Fault{Side: side, Kind: Format, File: c.LayersPath, Row: -1, Err: err}
	var broken *dumpfmt.FormatError
	h, peekErr := peekHeader(c.LayersPath)
	switch {
	case peekErr != nil || !errors.As(err, &broken):
	case broken.Offset == modeOffset:
		d.header, d.close = h, func() error { return nil }
		return d, nil
	case broken.Offset == headerBytes && broken.What == "bytes":
		fault.Row = lastRow(c.LayersPath, h, layers)
	}
	return nil, fault
}

// lastRow is the row in which a file that is too short ends, or -1.
func lastRow(path string, h header, layers string) int {
	st, err := os.Stat(path)
	if err != nil || h.width == 0 || h.width > uint64(st.Size()) {
		return -1 // not even one row
	}
	rowBytes := 4 * int64(h.width)
	if layers == dumpfmt.LayersInt8Scaled {
		rowBytes = 16 + int64(h.width)
	}
	return int((st.Size() - headerBytes) / rowBytes)
}

const (
	headerBytes = 32
	modeOffset  = 24
)

// peekHeader reads the four fields without judging them.
func peekHeader(path string) (header, error) {
	f, err := os.Open(path)
	if err != nil {
		return header{}, err
	}
	defer func() { _ = f.Close() }()
	var p [headerBytes]byte
	if _, err := io.ReadFull(f, p[:]); err != nil {
		return header{}, err
	}
	u := func(off int) uint64 { return binary.LittleEndian.Uint64(p[off:]) }
	return header{u(0), u(8), u(16), u(modeOffset)}, nil
}

// checkProvenance compares what two dumps declare. The candidate is held to the
// reference, and each to its own case file first.
func checkProvenance(cand, ref *dump) error {
	differs := func(d *dump, field string, got, want any) error {
		return &Fault{Side: d.side, Kind: Provenance, File: d.path, Row: -1,
			Field: field, Got: fmt.Sprint(got), Want: fmt.Sprint(want)}
	}
	hex := func(fp uint64) string { return fmt.Sprintf("0x%016X", fp) }
	c, r := cand.header, ref.header
	if c.rows != r.rows {
		return differs(cand, "rows", c.rows, fmt.Sprintf("%d as in %s", r.rows, ref.path))
	}
	if c.width != r.width {
		return differs(cand, "width", c.width, fmt.Sprintf("%d as in %s", r.width, ref.path))
	}
	for _, d := range []*dump{ref, cand} {
		if d.header.fingerprint != d.text {
			return differs(d, "prompt fingerprint", hex(d.header.fingerprint), hex(d.text)+", that of its case file's text")
		}
	}
	if c.fingerprint != r.fingerprint {
		return differs(cand, "prompt fingerprint", hex(c.fingerprint), hex(r.fingerprint)+" as in "+ref.path)
	}
	for _, d := range []*dump{ref, cand} {
		if d.header.mode != dumpfmt.CaptureIncremental {
			return differs(d, "capture mode", d.header.mode, dumpfmt.CaptureIncremental)
		}
	}
	return nil
}
