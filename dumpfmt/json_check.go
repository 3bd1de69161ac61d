package dumpfmt

import "fmt"

const formatJSON = "JSON"

// CheckJSON checks that data is one JSON text as the readers of this package
// take it: no key twice in an object at any depth, valid UTF-8, nothing after
// the value. Use it before encoding/json, which lets the last of two equal keys
// win. file names the text in errors, which are *FormatError.
func CheckJSON(file string, data []byte) error {
	s := newJSONScanner(file, formatJSON, data)
	if len(data) > maxJSON {
		return s.bad(maxJSON, "size", fmt.Sprintf("%d bytes", len(data)), fmt.Sprintf("at most %d", maxJSON))
	}
	if _, err := s.skip("the value"); err != nil {
		return err
	}
	return s.end()
}
