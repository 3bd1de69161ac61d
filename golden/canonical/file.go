package canonical

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads and parses the file at path; see [ReadBytes] and [Parse].
func ReadFile(path string, most int64) (Value, error) {
	data, err := ReadBytes(path, most)
	if err != nil {
		return Value{}, err
	}
	return Parse(path, data)
}

// ReadBytes reads the file at path. One of more than most bytes is a [*SizeError],
// and isn't read.
func ReadBytes(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("canonical: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	st, err := f.Stat()
	if err != nil {
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
