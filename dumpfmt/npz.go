package dumpfmt

import (
	"archive/zip"
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// NPZ reads numpy's file of named arrays: a zip archive whose members NAME.npy
// are npy files, stored or deflated.
//
// A member's checksum is verified when it is opened. A stored member is then read
// in place; a deflated one is inflated into memory, which its declared size,
// bounded by what deflate can make of its bytes, tells before it is allocated.
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

// Float32s opens the named array; it is valid until the file is closed. A name
// that isn't there is a *UsageError.
func (d *NPZ) Float32s(name string) (*NPY, error) {
	f := d.members[name]
	if f == nil {
		return nil, &UsageError{Op: "NPZ.Float32s", What: "array", Got: fmt.Sprintf("%q", name), Want: "an array of " + d.src.file}
	}
	what := fmt.Sprintf("member %q", f.Name)
	unsupported := func(got, want string) error {
		return &UnsupportedError{File: d.src.file, Format: formatNPZ, Offset: NoOffset, What: what, Got: got, Supported: want}
	}
	if f.Flags&1 != 0 {
		return nil, unsupported("encryption", "plain members")
	}
	r, size := io.ReaderAt(nil), int64(0)
	var err error
	switch f.Method {
	case zip.Store:
		r, size, err = d.stored(f, what)
	case zip.Deflate:
		r, size, err = d.inflated(f, what)
	default:
		return nil, unsupported(fmt.Sprintf("method %d", f.Method), "0 (stored) and 8 (deflated)")
	}
	if err != nil {
		return nil, err
	}
	return NewNPY(r, size, d.src.file+"#"+name)
}

// stored returns a member's bytes in place.
func (d *NPZ) stored(f *zip.File, what string) (io.ReaderAt, int64, error) {
	at, err := f.DataOffset()
	if err != nil {
		return nil, 0, d.src.broken(NoOffset, what, err.Error(), "a local header")
	}
	size := f.UncompressedSize64
	if f.CompressedSize64 != size || at < 0 || at > d.src.size || size > uint64(d.src.size-at) {
		return nil, 0, d.src.broken(max(at, 0), what, fmt.Sprintf("%d bytes as %d", size, f.CompressedSize64),
			fmt.Sprintf("a stored member within %d bytes", d.src.size))
	}
	r := io.NewSectionReader(d.src.r, at, int64(size))
	sum := crc32.NewIEEE()
	if n, err := io.Copy(sum, r); err != nil || n != int64(size) {
		return nil, 0, d.src.read(make([]byte, 1), at+n) // says why
	}
	if sum.Sum32() != f.CRC32 {
		return nil, 0, d.src.broken(at, "checksum of "+what, fmt.Sprintf("0x%08X", sum.Sum32()), fmt.Sprintf("0x%08X", f.CRC32))
	}
	return r, int64(size), nil
}

// inflated returns a member's bytes in memory.
func (d *NPZ) inflated(f *zip.File, what string) (io.ReaderAt, int64, error) {
	size := f.UncompressedSize64
	if f.CompressedSize64 > uint64(d.src.size) || size > deflateFactor*f.CompressedSize64 {
		return nil, 0, d.src.broken(NoOffset, what, fmt.Sprintf("%d bytes as %d", size, f.CompressedSize64),
			fmt.Sprintf("at most %d times as many, within %d bytes", deflateFactor, d.src.size))
	}
	r, err := f.Open()
	if err != nil {
		return nil, 0, d.src.broken(NoOffset, what, err.Error(), "a deflated member")
	}
	defer func() { _ = r.Close() }()
	data := make([]byte, size)
	if n, err := io.ReadFull(r, data); err != nil {
		return nil, 0, d.src.broken(NoOffset, what, fmt.Sprintf("%d bytes (%v)", n, err), fmt.Sprintf("%d", size))
	}
	// The end brings the checksum's verdict.
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, 0, d.src.broken(NoOffset, what, fmt.Sprintf("more than its size, or another checksum (%v)", err), fmt.Sprintf("%d bytes", size))
	}
	return bytes.NewReader(data), int64(size), nil
}

// Close closes the file that OpenNPZ opened.
func (d *NPZ) Close() error { return d.src.close() }
