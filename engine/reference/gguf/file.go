package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// File is an open GGUF file whose header has been checked. It is safe for
// concurrent use.
type File struct {
	name    string
	version uint32
	keys    []string
	values  map[string]any
	tensors []Tensor
	index   map[string]int
	infos   []int64 // where the infos start, for messages
	// alignmentAt is where the key of the alignment starts.
	alignmentAt int64

	mu     sync.RWMutex // held for reading while the file is read
	r      io.ReaderAt
	closer io.Closer
	closed bool
}

// Open opens the file at path and checks its header. The caller closes it.
func Open(path string) (*File, error) {
	// A pipe has no size to check against, and opening one would block.
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, &FormatError{File: path, What: "file type", Got: st.Mode().Type().String(), Want: "a regular file"}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := newFS(file, path)
	if err != nil {
		file.Close()
		return nil, err
	}
	f.closer = file
	return f, nil
}

// OpenFS is Open for a file of a file system. One without random access is read
// into memory.
func OpenFS(fsys fs.FS, path string) (*File, error) {
	file, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := newFS(file, path)
	if err != nil {
		file.Close()
		return nil, err
	}
	f.closer = file
	return f, nil
}

func newFS(file fs.File, path string) (*File, error) {
	r, ok := file.(io.ReaderAt)
	if !ok {
		data, err := io.ReadAll(file)
		if err != nil {
			return nil, fmt.Errorf("gguf: %w", err)
		}
		return New(bytes.NewReader(data), int64(len(data)), path)
	}
	st, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return New(r, st.Size(), path)
}

// New reads a file of size bytes from r; name stands in for it in errors. Close
// leaves r open.
func New(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{name: name, r: r}
	if err := f.header(newScanner(r, size, name)); err != nil {
		return nil, err
	}
	return f, nil
}

// Name is the file's name, as its errors give it.
func (f *File) Name() string { return f.name }

// Version is the format's version, 2 or 3.
func (f *File) Version() int { return int(f.version) }

// Keys are the names of the keys, in the order of the file.
func (f *File) Keys() []string { return slices.Clone(f.keys) }

// Value returns a key's value: an integer of the size that the file says, a
// float32 or float64, a bool, a string, or a slice of one of these. Slices are
// the file's own: callers must not write them.
func (f *File) Value(key string) (any, bool) {
	v, ok := f.values[key]
	return v, ok
}

// Tensors are the tensors, in the order of the file.
func (f *File) Tensors() []Tensor { return slices.Clone(f.tensors) }

// Tensor returns the named tensor, false when there is none.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// chunk is how many bytes are read at once. It stays in the cache while they are
// dequantised.
const chunk = 256 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// Float32s dequantises a tensor into dst, as long as the tensor has elements, in
// row-major order. A type that isn't read is an [*engine.UnsupportedError]; a file
// that has shrunk meanwhile a [*FormatError].
func (f *File) Float32s(name string, dst []float32) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	t, ok := f.Tensor(name)
	what := "tensor " + name
	l := layouts[t.Type]
	switch {
	case !ok:
		return fmt.Errorf("gguf: %s: %s: there is none", dumpfmt.Printable(f.name), dumpfmt.Printable(what))
	case f.closed:
		return fmt.Errorf("gguf: %s: %s: %w", dumpfmt.Printable(f.name), dumpfmt.Printable(what), fs.ErrClosed)
	case l.decode == nil:
		return f.Supported(t)
	case len(dst) != t.Elements():
		return fmt.Errorf("gguf: %s: %s: got room for %d values, want %d", dumpfmt.Printable(f.name), dumpfmt.Printable(what), len(dst), t.Elements())
	}
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	step := chunk / l.bytes * l.bytes
	for at := int64(0); at < t.Bytes; at += step {
		raw := buf[:min(step, t.Bytes-at)]
		if n, err := f.r.ReadAt(raw, t.Offset+at); n < len(raw) {
			if errors.Is(err, io.EOF) {
				return &FormatError{File: f.name, Offset: t.Offset + at, What: what, Got: fmt.Sprintf("%d bytes to the end", n), Want: fmt.Sprint(len(raw))}
			}
			return fmt.Errorf("gguf: %s: %s: %w", dumpfmt.Printable(f.name), dumpfmt.Printable(what), err)
		}
		values := int64(len(raw)) / l.bytes * l.elements
		l.decode(dst[:values], raw)
		dst = dst[values:]
	}
	return nil
}

// Supported returns an [*engine.UnsupportedError] that names the tensor and its
// type when Float32s doesn't read it.
func (f *File) Supported(t Tensor) error {
	if t.Type.Readable() {
		return nil
	}
	return unsupported(f.name, fmt.Sprintf("tensor %s: type %s", t.Name, t.Type), readable)
}

// Close closes the file that Open opened; Float32s fails afterwards.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}
