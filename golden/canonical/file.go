package canonical

import (
	"fmt"
	"io"
	"os"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// ReadFile reads and parses the file at path; see [ReadBytes] and [Parse].
func ReadFile(path string, most int64) (Value, error) {
	data, err := ReadBytes(path, most)
	if err != nil {
		return Value{}, err
	}
	return Parse(path, data)
}

// ReadBytes reads the regular file at path; opening a pipe would block. One of more
// than most bytes is a [*SizeError], and isn't read.
func ReadBytes(path string, most int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("canonical: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("canonical: %s: file type: got %s, want a regular file", dumpfmt.Printable(path), st.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("canonical: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	if st, err = f.Stat(); err != nil {
		return nil, fmt.Errorf("canonical: %w", err)
	}
	if st.Size() > most {
		return nil, &SizeError{File: path, Size: st.Size(), Most: most}
	}
	data := make([]byte, 0, min(st.Size(), most)+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, fmt.Errorf("canonical: %w", err)
		}
		if int64(len(data)) > most { // it grew, or has no size
			return nil, &SizeError{File: path, Size: int64(len(data)), Most: most}
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}
