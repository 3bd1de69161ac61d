//go:build !unix

package dumpfmt

// readWhole fills memory() from a regular file of exactly size bytes.
func readWhole(path string, size int64, memory func() []byte) error {
	s, err := openSource(path, formatRaw)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }() // nothing was written
	if s.size != size {
		return &SizeError{File: path, Want: size, Got: s.size}
	}
	return s.read(memory(), 0)
}
