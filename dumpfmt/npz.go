package dumpfmt

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"
)

// NPZ reads numpy's file of named arrays: a zip archive whose members NAME.npy
// are npy files, stored or deflated.
//
// A member's header has to tell its declared size, which is checked before the
// rest is looked at; its checksum is verified when it is opened. A stored member is
// then read in place; a deflated one is inflated into memory, which grows with what
// there is, not with what is declared. [NPZ.Shape] reads the header alone, for a
// caller that knows what to expect.
type NPZ struct {
	src     source
	members map[string]*zip.File
	names   []string
}

// deflateFactor is the most bytes that deflate makes of one.
const deflateFactor = 1032

// OpenNPZ opens the file at path. The caller closes it.
func OpenNPZ(path string) (*NPZ, error) {
	s, err := openSource(path, formatNPZ)
	if err != nil {
		return nil, err
	}
	d, err := newNPZ(s)
	if err != nil {
		_ = s.close() // the first error is the one to tell
	}
	return d, err
}

// NewNPZ reads a file of size bytes from r; name stands in for the file in
// errors. Close leaves r open.
func NewNPZ(r io.ReaderAt, size int64, name string) (*NPZ, error) {
	return newNPZ(source{r: r, size: size, file: name, format: formatNPZ})
}

func newNPZ(s source) (*NPZ, error) {
	z, err := zip.NewReader(s.r, s.size)
	if err != nil {
		return nil, s.broken(NoOffset, "archive", err.Error(), "a zip archive")
	}
	d := &NPZ{src: s, members: map[string]*zip.File{}}
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			return nil, s.broken(NoOffset, "member", fmt.Sprintf("%q", f.Name), "names that end in .npy")
		}
		if d.members[name] != nil {
			return nil, s.broken(NoOffset, "member", fmt.Sprintf("%q twice", f.Name), "each name once")
		}
		d.members[name] = f
		d.names = append(d.names, name)
	}
	return d, nil
}

// Names returns the arrays' names in file order, without ".npy".
func (d *NPZ) Names() []string { return slices.Clone(d.names) }

// Has reports whether there is an array of that name.
func (d *NPZ) Has(name string) bool { return d.members[name] != nil }

// File returns the file's name, as its errors give it.
func (d *NPZ) File() string { return d.src.file }

// Shape returns the shape of the named array. Of the array itself nothing is read.
// A name that isn't there is a *UsageError.
func (d *NPZ) Shape(name string) ([]int, error) {
	f, err := d.member("NPZ.Shape", name)
	if err != nil {
		return nil, err
	}
	var a *NPY
	if f.Method == zip.Store {
		_, _, a, err = d.stored(f, name)
	} else {
		var r io.ReadCloser
		if r, _, a, err = d.inflating(f, name); err == nil {
			_ = r.Close() // what is left of it doesn't matter
		}
	}
	if err != nil {
		return nil, err
	}
	return a.Shape(), nil
}

// Float32s opens the named array; it is valid until the file is closed. A name
// that isn't there is a *UsageError.
func (d *NPZ) Float32s(name string) (*NPY, error) {
	f, err := d.member("NPZ.Float32s", name)
	if err != nil {
		return nil, err
	}
	if f.Method == zip.Store {
		r, at, a, err := d.stored(f, name)
		if err != nil {
			return nil, err
		}
		if err := d.verify(f, r, at); err != nil {
			return nil, err
		}
		return a, nil
	}
	return d.inflated(f, name)
}

func memberOf(f *zip.File) string { return fmt.Sprintf("member %q", f.Name) }

// member finds a member of a kind that can be read.
func (d *NPZ) member(op, name string) (*zip.File, error) {
	f := d.members[name]
	if f == nil {
		return nil, &UsageError{Op: op, What: "array", Got: fmt.Sprintf("%q", name), Want: "an array of " + d.src.file}
	}
	unsupported := func(got, want string) error {
		return &UnsupportedError{File: d.src.file, Format: formatNPZ, Offset: NoOffset, What: memberOf(f), Got: got, Supported: want}
	}
	switch {
	case f.Flags&1 != 0:
		return nil, unsupported("encryption", "plain members")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, unsupported(fmt.Sprintf("method %d", f.Method), "0 (stored) and 8 (deflated)")
	}
	return f, nil
}

// stored returns a member's bytes in place, where they begin, and its array, whose
// checksum isn't verified.
func (d *NPZ) stored(f *zip.File, name string) (r io.Reader, at int64, a *NPY, err error) {
	what := memberOf(f)
	if at, err = f.DataOffset(); err != nil {
		return nil, 0, nil, d.src.broken(NoOffset, what, err.Error(), "a local header")
	}
	size := f.UncompressedSize64
	if f.CompressedSize64 != size || at < 0 || at > d.src.size || size > uint64(d.src.size-at) {
		return nil, 0, nil, d.src.broken(max(at, 0), what, fmt.Sprintf("%d bytes as %d", size, f.CompressedSize64),
			fmt.Sprintf("a stored member within %d bytes", d.src.size))
	}
	section := io.NewSectionReader(d.src.r, at, int64(size))
	a, err = NewNPY(section, int64(size), d.src.file+"#"+name)
	return section, at, a, err
}

// verify reads a stored member for its checksum.
func (d *NPZ) verify(f *zip.File, r io.Reader, at int64) error {
	sum := crc32.NewIEEE()
	if n, err := io.Copy(sum, r); err != nil || n != int64(f.UncompressedSize64) {
		return d.src.read(make([]byte, 1), at+n) // says why
	}
	if sum.Sum32() != f.CRC32 {
		return d.src.broken(at, "checksum of "+memberOf(f), fmt.Sprintf("0x%08X", sum.Sum32()), fmt.Sprintf("0x%08X", f.CRC32))
	}
	return nil
}

// inflating inflates a member's header and checks the declared size against it: the
// array has its shape, and no values. The header and some bytes behind it are in
// head, the rest comes from r.
func (d *NPZ) inflating(f *zip.File, name string) (r io.ReadCloser, head []byte, a *NPY, err error) {
	what, size := memberOf(f), f.UncompressedSize64
	if f.CompressedSize64 > uint64(d.src.size) || size > math.MaxInt || size/deflateFactor > f.CompressedSize64 {
		return nil, nil, nil, d.src.broken(NoOffset, what, fmt.Sprintf("%d bytes as %d", size, f.CompressedSize64),
			fmt.Sprintf("at most %d times as many, within %d bytes", deflateFactor, d.src.size))
	}
	if r, err = f.Open(); err != nil {
		return nil, nil, nil, d.src.broken(NoOffset, what, err.Error(), "a deflated member")
	}
	head = make([]byte, min(size, npyHeadBytes))
	if n, err := io.ReadFull(r, head); err != nil {
		_ = r.Close() // the first error is the one to tell
		return nil, nil, nil, d.src.broken(NoOffset, what, fmt.Sprintf("%d bytes (%v)", n, err), fmt.Sprintf("%d", size))
	}
	if a, err = NewNPY(bytes.NewReader(head), int64(size), d.src.file+"#"+name); err != nil {
		_ = r.Close() // the first error is the one to tell
	}
	return r, head, a, err
}

// npyHeadBytes hold every header.
const npyHeadBytes = 12 + maxNPYHeader

// inflated returns a member's array in memory.
func (d *NPZ) inflated(f *zip.File, name string) (*NPY, error) {
	r, head, _, err := d.inflating(f, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	what, size := memberOf(f), int64(f.UncompressedSize64)
	b := bytes.NewBuffer(head)
	if n, err := io.CopyN(b, r, size-int64(len(head))); err != nil {
		return nil, d.src.broken(NoOffset, what, fmt.Sprintf("%d bytes (%v)", int64(len(head))+n, err), fmt.Sprintf("%d", size))
	}
	// The end brings the checksum's verdict.
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, d.src.broken(NoOffset, what, fmt.Sprintf("more than its size, or another checksum (%v)", err), fmt.Sprintf("%d bytes", size))
	}
	return NewNPY(bytes.NewReader(b.Bytes()), size, d.src.file+"#"+name)
}

// Close closes the file that OpenNPZ opened.
func (d *NPZ) Close() error { return d.src.close() }
