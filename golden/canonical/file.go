package canonical

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads and parses the file at path. One of more than most bytes is a
// [*SizeError], and isn't read.
func ReadFile(path string, most int64) (Value, error) {
	f, err := os.Open(path)
	if err != nil {
		return Value{}, fmt.Errorf("canonical: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil {
		return Value{}, fmt.Errorf("canonical: %w", err)
	}
	if st.Size() > most {
		return Value{}, &SizeError{File: path, Size: st.Size(), Most: most}
	}
	data := make([]byte, 0, min(st.Size(), most)+1)
	for {
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return Parse(path, data)
		}
		if err != nil {
			return Value{}, fmt.Errorf("canonical: %w", err)
		}
		if int64(len(data)) > most { // it grew, or has no size
			return Value{}, &SizeError{File: path, Size: int64(len(data)), Most: most}
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}
