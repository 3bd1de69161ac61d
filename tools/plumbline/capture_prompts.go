package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// maxName keeps NAME.probes.safetensors, and its name while it is being
// written, within the 255 bytes that file systems allow.
const maxName = 150

// promptRow is one line of a list of prompts.
type promptRow struct {
	line int
	name string
	file dumpfmt.CaseFile
}

// promptError is a fault in a list of prompts.
type promptError struct {
	file      string
	line      int // 1-based; 0 for the file as a whole
	what      string
	got, want string
}

func (e *promptError) Error() string {
	at := e.file
	if e.line > 0 {
		at = fmt.Sprintf("%s:%d", e.file, e.line)
	}
	return fmt.Sprintf("%s: %s: got %s, want %s", at, e.what, e.got, e.want)
}

// readPrompts reads a JSONL file: one object a line, empty lines apart. name,
// text and token_ids are required; the other keys are those of a case file, and
// what a case file says about an output is left out, for it was another run's.
func readPrompts(path string) ([]promptRow, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--prompts: %w", err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return nil, &promptError{path, 1, "prompts", "a JSON array", "one JSON object a line"}
	}
	var rows []promptRow
	seen := map[string]int{}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		row, err := parsePrompt(path, i+1, line)
		if err != nil {
			return nil, err
		}
		if first, dup := seen[row.name]; dup {
			return nil, &promptError{path, row.line, "name", fmt.Sprintf("%q, the name of line %d", row.name, first), "each name once"}
		}
		seen[row.name] = row.line
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, &promptError{path, 0, "prompts", "none", `at least one line, e.g. {"name": "hi", "text": "…", "token_ids": [1, 2]}`}
	}
	return rows, nil
}

func parsePrompt(path string, number int, line []byte) (promptRow, error) {
	row := promptRow{line: number}
	bad := func(what, got, want string) (promptRow, error) {
		return promptRow{}, &promptError{path, number, what, got, want}
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(line, &keys) == nil { // if not, the strict reader says where
		const untokenised = "the templated text and its token_ids: plumbline has no tokenizer and no chat template yet"
		_, text := keys["text"]
		_, ids := keys["token_ids"]
		_, prompt := keys["prompt"]
		switch {
		case !text && prompt:
			return bad(`key "text"`, `"prompt" alone`, untokenised)
		case text && !ids:
			return bad(`key "token_ids"`, "nothing", untokenised)
		}
	}
	var err error
	if row.file, err = dumpfmt.ParseCaseFile(fmt.Sprintf("%s:%d", path, number), line); err != nil {
		return promptRow{}, err
	}
	const wantName = `a base name for files: no separators, no control characters, no leading dot, not "engine"`
	raw, ok := row.file.Extra["name"]
	if !ok {
		return bad(`key "name"`, "nothing", wantName)
	}
	if err := json.Unmarshal(raw, &row.name); err != nil || raw[0] != '"' {
		return bad("name", string(raw), wantName)
	}
	delete(row.file.Extra, "name")
	switch n := row.name; {
	case n == "" || n == "engine" || strings.HasPrefix(n, ".") || strings.ContainsAny(n, "/\\") || strings.ContainsFunc(n, unicode.IsControl):
		return bad("name", strconv.Quote(n), wantName)
	case len(n) > maxName:
		return bad("name", fmt.Sprintf("%d bytes", len(n)), fmt.Sprintf("at most %d", maxName))
	}
	row.file.OutputIDs, row.file.Decoded = nil, nil
	return row, nil
}

// checkPrompts holds the rows to the model before any of them is run. maxNew is
// 0 where nothing is decoded.
func checkPrompts(path string, rows []promptRow, a engine.Arch, maxNew int) error {
	for _, r := range rows {
		for i, id := range r.file.TokenIDs {
			if id >= a.Vocab {
				return &promptError{path, r.line, fmt.Sprintf("token_ids[%d]", i), fmt.Sprint(id), fmt.Sprintf("0 to %d, the model's vocabulary", a.Vocab-1)}
			}
		}
		if n := len(r.file.TokenIDs); a.MaxPositions > 0 && n+max(0, maxNew-1) > a.MaxPositions {
			got := fmt.Sprintf("%d tokens", n)
			if maxNew > 0 {
				got += fmt.Sprintf(" with up to %d new ones", maxNew)
			}
			return &promptError{path, r.line, "token_ids", got, fmt.Sprintf("at most %d positions, the model's", a.MaxPositions)}
		}
	}
	return nil
}
