package dumpfmt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/big"
	"math/bits"
	"os"
	"strconv"
)

// source is a file being read, with what its errors need.
type source struct {
	r      io.ReaderAt
	size   int64
	file   string
	format string
	closer io.Closer // nil when the caller owns r
}

// openSource opens a regular file. Anything else (a folder, a pipe, a device)
// is a broken file: it has no size to check counts against, and opening a pipe
// would block.
func openSource(path, format string) (source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return source{}, fmt.Errorf("dumpfmt: %s: %w", format, err)
	}
	if !st.Mode().IsRegular() {
		return source{}, notRegular(path, format, st.Mode())
	}
	f, err := os.Open(path)
	if err != nil {
		return source{}, fmt.Errorf("dumpfmt: %s: %w", format, err)
	}
	if st, err = f.Stat(); err != nil {
		_ = f.Close()
		return source{}, fmt.Errorf("dumpfmt: %s: %w", format, err)
	}
	return source{r: f, size: st.Size(), file: path, format: format, closer: f}, nil
}

func notRegular(path, format string, mode fs.FileMode) error {
	return &FormatError{File: path, Format: format, Offset: NoOffset,
		What: WhatFileType, Got: mode.Type().String(), Want: "a regular file"}
}

func (s *source) close() error {
	if s.closer == nil {
		return nil
	}
	if err := s.closer.Close(); err != nil {
		return fmt.Errorf("dumpfmt: %s: %w", s.format, err)
	}
	return nil
}

// read fills p from byte off on. A file that ends early (it shrank since its
// size was taken) is broken; any other error is the system's.
func (s *source) read(p []byte, off int64) error {
	n, err := s.r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return s.short(off, int64(n), strconv.Itoa(len(p)), "")
	}
	return fmt.Errorf("dumpfmt: %s %s: read at byte 0x%X: %w", s.format, Printable(s.file), off+int64(n), err)
}

func (s *source) broken(off int64, what, got, want string) error {
	return &FormatError{File: s.file, Format: s.format, Offset: off, What: what, Got: got, Want: want}
}

func (s *source) short(off, got int64, want, note string) error {
	return &FormatError{File: s.file, Format: s.format, Offset: off, What: whatBytes,
		Got: strconv.FormatInt(got, 10), Want: want, Note: note}
}

// header reads the first n bytes, or says how many there are.
func (s *source) header(n int) ([]byte, error) {
	if s.size < int64(n) {
		return nil, s.short(0, max(s.size, 0), strconv.Itoa(n), "header")
	}
	p := make([]byte, n)
	if err := s.read(p, 0); err != nil {
		return nil, err
	}
	return p, nil
}

// body checks that rows rows of rowExtra + width*item bytes follow byte start,
// and returns how many bytes come after them. It divides where a lying count
// would make a product overflow.
func (s *source) body(start int64, rows, width, item, rowExtra uint64) (trailing int64, err error) {
	avail := uint64(s.size - start)
	fits := width <= avail/item
	if fits {
		rowBytes := rowExtra + width*item
		fits = rows <= avail/rowBytes
	}
	if !fits {
		row := new(big.Int).SetUint64(width)
		row.Mul(row, new(big.Int).SetUint64(item))
		row.Add(row, new(big.Int).SetUint64(rowExtra))
		total := new(big.Int).SetUint64(rows)
		total.Mul(total, row)
		return 0, s.short(start, int64(avail), total.String(), fmt.Sprintf("%d rows of %s bytes", rows, row))
	}
	if bits.UintSize == 32 && (rows > math.MaxInt32 || width > math.MaxInt32) {
		return 0, &UnsupportedError{File: s.file, Format: s.format, Offset: 0, What: "size",
			Got: fmt.Sprintf("%d x %d", rows, width), Supported: "counts below 2^31 on this machine"}
	}
	return int64(avail - rows*(rowExtra+width*item)), nil
}

// noTrailing turns bytes after the last row into an error.
func (s *source) noTrailing(trailing int64) error {
	if trailing == 0 {
		return nil
	}
	return s.broken(s.size-trailing, "end of file", fmt.Sprintf("%d trailing bytes", trailing), "none")
}
