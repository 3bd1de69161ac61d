package dumpfmt

import (
	"encoding/binary"
	"fmt"
)

const (
	layerHeaderBytes  = 32
	offsetWidth       = 8
	offsetFingerprint = 16
	offsetMode        = 24

	// CaptureIncremental is the only capture mode: token by token with a KV
	// cache.
	CaptureIncremental = 1
)

// LayerHeader is the head of a layer dump, float or int8.
type LayerHeader struct {
	// Rows is the number of decoder layers + 1, Width the hidden size.
	Rows, Width int
	// Fingerprint is the [Fingerprint] of the templated prompt.
	Fingerprint uint64
	// Mode is CaptureIncremental.
	Mode uint64
}

// readLayerHeader reads and checks the 32 bytes, and that rows of rowExtra +
// width*item bytes follow.
func readLayerHeader(s *source, item, rowExtra uint64) (h LayerHeader, trailing int64, err error) {
	p, err := s.header(layerHeaderBytes)
	if err != nil {
		return h, 0, err
	}
	rows, width := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[offsetWidth:])
	mode := binary.LittleEndian.Uint64(p[offsetMode:])
	switch {
	case mode != CaptureIncremental:
		return h, 0, s.broken(offsetMode, "capture mode", fmt.Sprint(mode), fmt.Sprint(CaptureIncremental))
	case rows == 0:
		return h, 0, s.broken(0, "rows", "0", "at least 1")
	case width == 0:
		return h, 0, s.broken(offsetWidth, "hidden size", "0", "at least 1")
	}
	if trailing, err = s.body(layerHeaderBytes, rows, width, item, rowExtra); err != nil {
		return h, 0, err
	}
	return LayerHeader{
		Rows: int(rows), Width: int(width),
		Fingerprint: binary.LittleEndian.Uint64(p[offsetFingerprint:]),
		Mode:        mode,
	}, trailing, nil
}

// encode checks what the reader would refuse.
func (h LayerHeader) encode(op string) ([]byte, error) {
	switch {
	case h.Rows < 1:
		return nil, &UsageError{Op: op, What: "rows", Got: fmt.Sprint(h.Rows), Want: "at least 1"}
	case h.Width < 1:
		return nil, &UsageError{Op: op, What: "width", Got: fmt.Sprint(h.Width), Want: "at least 1"}
	case h.Mode != CaptureIncremental:
		return nil, &UsageError{Op: op, What: "capture mode", Got: fmt.Sprint(h.Mode), Want: fmt.Sprint(CaptureIncremental)}
	}
	p := make([]byte, 0, layerHeaderBytes)
	for _, v := range []uint64{uint64(h.Rows), uint64(h.Width), h.Fingerprint, h.Mode} {
		p = binary.LittleEndian.AppendUint64(p, v)
	}
	return p, nil
}
