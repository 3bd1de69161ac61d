package dumpfmt

import (
	"encoding/json"
	"fmt"
	"math"
)

// CaseFile is NAME.json: one prompt of a dump folder, and what came out.
type CaseFile struct {
	// Text is the whole chat-templated prompt; required.
	Text string
	// TokenIDs are the prompt's ids, at least one, each in [0, 2^31).
	TokenIDs []int
	// Prompt, System and Decoded are nil when absent: no system prompt and an
	// empty one are two things.
	Prompt, System, Decoded *string
	// OutputIDs are the tokens that were produced, Stop the ids that end the
	// output. nil means not told, an empty slice none.
	OutputIDs, Stop []int
	// Extra holds the other keys, each with the bytes of its value.
	Extra map[string]json.RawMessage
}

// ReadCaseFile reads the NAME.json at path.
func ReadCaseFile(path string) (CaseFile, error) {
	data, err := readJSONFile(path, formatCaseFile)
	if err != nil {
		return CaseFile{}, err
	}
	return parseCaseFile(path, data)
}

// ParseCaseFile reads the JSON text of a case, e.g. one line of a list of
// prompts. file names it in errors, whose offsets count from the start of data.
func ParseCaseFile(file string, data []byte) (CaseFile, error) {
	if len(data) > maxJSON {
		return CaseFile{}, newJSONScanner(file, formatCaseFile, data).bad(maxJSON, "size", fmt.Sprintf("%d bytes", len(data)), fmt.Sprintf("at most %d", maxJSON))
	}
	return parseCaseFile(file, data)
}

func parseCaseFile(path string, data []byte) (CaseFile, error) {
	var c CaseFile
	s := newJSONScanner(path, formatCaseFile, data)
	hasText := false
	err := s.object("the case", func(key string, _ int) (err error) {
		switch key {
		case "text":
			hasText = true
			c.Text, err = s.str(key)
		case "token_ids":
			at := s.pos
			if c.TokenIDs, err = s.ids(key); err == nil && len(c.TokenIDs) == 0 {
				err = s.bad(at, key, "none", "at least 1")
			}
		case "output_ids":
			c.OutputIDs, err = s.optionalIDs(key)
		case "stop":
			c.Stop, err = s.optionalIDs(key)
		case "prompt":
			c.Prompt, err = s.optionalStr(key)
		case "system":
			c.System, err = s.optionalStr(key)
		case "decoded":
			c.Decoded, err = s.optionalStr(key)
		default:
			var v json.RawMessage
			if v, err = s.skip(key); err == nil {
				setExtra(&c.Extra, key, v)
			}
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
	case !hasText:
		err = s.src.broken(NoOffset, `key "text"`, "nothing", "the templated prompt")
	case len(c.TokenIDs) == 0:
		err = s.src.broken(NoOffset, `key "token_ids"`, "nothing", "the prompt's ids")
	}
	if err != nil {
		return CaseFile{}, err
	}
	return c, nil
}

// ids reads a list of token ids.
func (s *jsonScanner) ids(what string) ([]int, error) {
	ids := []int{}
	err := s.array(what, func(i int) error {
		n, err := s.uint(fmt.Sprintf("%s[%d]", what, i), math.MaxInt32)
		ids = append(ids, int(n))
		return err
	})
	return ids, err
}

func (s *jsonScanner) optionalIDs(what string) ([]int, error) {
	if s.null() {
		return nil, nil
	}
	return s.ids(what)
}

func (s *jsonScanner) optionalStr(what string) (*string, error) {
	if s.null() {
		return nil, nil
	}
	v, err := s.str(what)
	return &v, err
}

// encode checks what the reader would refuse.
func (c CaseFile) encode() ([]byte, error) {
	var w jsonWriter
	str := func(key string, v *string) {
		if v != nil {
			w.str(key, *v)
		}
	}
	ints := func(key string, v []int) {
		if v != nil {
			w.ints(key, v)
		}
	}
	str("prompt", c.Prompt)
	str("system", c.System)
	w.str("text", c.Text)
	ints("token_ids", c.TokenIDs)
	ints("output_ids", c.OutputIDs)
	str("decoded", c.Decoded)
	ints("stop", c.Stop)
	w.extra(c.Extra)
	data, err := w.finish("CaseFile")
	if err != nil {
		return nil, err
	}
	if _, err := parseCaseFile("NAME.json", data); err != nil {
		return nil, &UsageError{Op: "CaseFile", What: "case", Got: err.Error(), Want: "one that its reader accepts"}
	}
	return data, nil
}
