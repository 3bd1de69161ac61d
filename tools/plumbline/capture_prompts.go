package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
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
	// noText and noIDs say what the line leaves to the model's chat template and
	// to its tokenizer.
	noText, noIDs bool
	// ownSystem is true when the line says something about the system prompt, if
	// only that there is none (null).
	ownSystem bool
}

// asCase is the row as a candidate is asked for it.
func (r *promptRow) asCase() engine.Case {
	return engine.Case{Name: r.name, Text: r.file.Text, TokenIDs: r.file.TokenIDs, Stop: r.file.Stop}
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

// promptLines says what a list of prompts is, in a command's help.
const promptLines = `A line is {"name": …, "prompt": …}: the file's base name, and what a user says. The
chat template of the model's folder makes the text of it and of "system" (--system
where the line has none; null is no system prompt), the tokenizer the ids. A line may
bring the templated "text" itself, and "token_ids", which then count.`

// readPrompts reads a list of prompts and makes the texts and ids that it
// doesn't have itself; system is the system prompt of lines without one.
func (a *app) readPrompts(path, system string) ([]promptRow, error) {
	rows, err := parsePrompts(path)
	if err != nil {
		return nil, err
	}
	m, err := a.text()
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if err := rows[i].complete(a, m, path, system); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// complete makes text and ids as far as the line has none. Ids that the
// tokenizer wouldn't make of the text are run all the same; it is said on
// standard error.
func (r *promptRow) complete(a *app, m *modelText, path, system string) error {
	fail := func(what string, err error) error {
		hint := ""
		if m.err != nil {
			hint = "; a line may bring text and token_ids"
		} else if r.noText {
			hint = "; a line may bring its templated text"
		}
		return fmt.Errorf("%s:%d: %s: %w%s", path, r.line, what, err, hint)
	}
	if r.noText {
		if !r.ownSystem {
			r.file.System = &system
		}
		var err error
		if r.file.Text, err = m.template(r.file.System, *r.file.Prompt); err != nil {
			return fail("prompt", err)
		}
	}
	if r.noIDs {
		var err error
		if r.file.TokenIDs, err = m.encode(r.file.Text); err != nil {
			return fail("text", err)
		}
	} else if d := m.differs(r.file.Text, r.file.TokenIDs); d != "" {
		a.warn("%s:%d: token_ids: %s", dumpfmt.Printable(path), r.line, d)
	}
	return nil
}

// parsePrompts reads a JSONL file: one object a line, empty lines apart. name is
// required, and prompt or text; the other keys are those of a case file, and what
// a case file says about an output is left out, for it was another run's.
func parsePrompts(path string) ([]promptRow, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--prompts: %w", err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return nil, &promptError{path, 1, "prompts", "a JSON array", "one JSON object a line"}
	}
	var rows []promptRow
	seen := map[string]promptRow{}
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		row, err := parsePrompt(path, i+1, line)
		if err != nil {
			return nil, err
		}
		if err := nameTaken(path, row, seen, runtime.GOOS); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, &promptError{path, 0, "prompts", "none", `at least one line, e.g. {"name": "hi", "prompt": "Hello!"}`}
	}
	return rows, nil
}

// nameTaken refuses a name whose files a row before has, or that a system can't store.
func nameTaken(path string, row promptRow, seen map[string]promptRow, goos string) error {
	if why := dumpfmt.NameUnstorable(row.name, goos); why != "" {
		return &promptError{path, row.line, "name", strconv.Quote(row.name), "one that this system stores: " + why}
	}
	key := dumpfmt.NameKey(row.name, goos)
	r, taken := seen[key]
	switch {
	case !taken:
		seen[key] = row
		return nil
	case r.name == row.name:
		return &promptError{path, row.line, "name", fmt.Sprintf("%q, the name of line %d", row.name, r.line), "each name once"}
	}
	return &promptError{path, row.line, "name", fmt.Sprintf("%q beside %q of line %d", row.name, r.name, r.line), "names that differ in more than case: this system takes them for one"}
}

func parsePrompt(path string, number int, line []byte) (promptRow, error) {
	row := promptRow{line: number}
	bad := func(what, got, want string) (promptRow, error) {
		return promptRow{}, &promptError{path, number, what, got, want}
	}
	// What the line leaves out stands in behind it, so that one strict reader
	// reads every line, and its offsets are those of the line.
	var keys map[string]json.RawMessage
	if json.Unmarshal(line, &keys) == nil { // if not, the strict reader says where
		_, text := keys["text"]
		_, ids := keys["token_ids"]
		prompt := keys["prompt"]
		_, row.ownSystem = keys["system"]
		row.noText, row.noIDs = !text, !ids
		switch {
		case !text && (prompt == nil || string(prompt) == "null"):
			return bad(`key "prompt"`, "nothing", `a "prompt", or the templated "text"`)
		case !text && string(prompt) == `""`:
			return bad(`key "prompt"`, "an empty one", "what a user says")
		case !text:
			line = withKey(line, `"text":""`)
		}
		if !ids {
			line = withKey(line, `"token_ids":[0]`)
		}
	}
	var err error
	if row.file, err = dumpfmt.ParseCaseFile(fmt.Sprintf("%s:%d", path, number), line); err != nil {
		return promptRow{}, err
	}
	if row.noIDs {
		row.file.TokenIDs = nil
	}
	for _, s := range []struct{ what, text string }{
		{"prompt", stringOr(row.file.Prompt, "")}, {"system", stringOr(row.file.System, "")}, {"text", row.file.Text},
	} {
		if got, isBad := unsound(s.text); isBad {
			return bad(s.what, got, soundText)
		}
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

// withKey appends a key to a JSON object with at least one.
func withKey(object []byte, key string) []byte {
	end := bytes.LastIndexByte(object, '}')
	return slices.Concat(object[:end], []byte(","+key), object[end:])
}

// checkPrompts holds the rows to the model before any of them is run. maxNew is
// 0 where nothing is decoded.
func checkPrompts(path string, rows []promptRow, arch engine.Arch, maxNew int) error {
	for _, r := range rows {
		if at, got, want := misfit(r.file.TokenIDs, arch, maxNew); got != "" {
			what := "token_ids"
			if at >= 0 {
				what += fmt.Sprintf("[%d]", at)
			}
			return &promptError{path, r.line, what, got, want}
		}
		if at, got, want := stopOutside(r.file.Stop, arch.Vocab); got != "" {
			return &promptError{path, r.line, fmt.Sprintf("stop[%d]", at), got, want}
		}
	}
	return nil
}
