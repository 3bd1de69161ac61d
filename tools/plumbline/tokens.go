package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

// defaultSystem is the system prompt of whoever gives none.
const defaultSystem = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

// modelText turns prompts into text, text into ids and ids into text as the
// model that --model names does.
type modelText struct {
	tok *tokenizer.Tokenizer // nil when there is none that can be used
	err error                // why
	// missing tells a folder without a tokenizer from one whose tokenizer can't
	// be used.
	missing    bool
	toldNoText bool
	// file is the tokenizer's, for messages.
	file string
	// vocab is the head's: ids from there on can't be run.
	vocab int
}

// text opens the tokenizer of the model, once. A model without one is no error
// here: ids can be run without.
func (a *app) text() (*modelText, error) {
	if a.words != nil {
		return a.words, nil
	}
	ckpt, err := a.checkpoint()
	if err != nil {
		return nil, err
	}
	m := &modelText{file: dumpfmt.Printable(ckpt.TokenizerFile()), vocab: ckpt.Arch().Vocab}
	m.tok, m.err = ckpt.Tokenizer()
	m.missing = errors.Is(m.err, fs.ErrNotExist)
	switch {
	case m.missing && filepath.Base(ckpt.TokenizerFile()) == "tokenizer.json":
		m.err = fmt.Errorf("%s: got no such file, want the model's tokenizer", m.file)
	case m.missing:
		m.err = fmt.Errorf("%s: got no keys of a tokenizer, want the model's", m.file)
	case m.err != nil:
		m.err = fmt.Errorf("%s: %w", m.file, m.err)
	case m.tok.Vocab() > m.vocab:
		a.warn("%s: has ids up to %d, the model's head below %d: text with the others can't be run", m.file, m.tok.Vocab()-1, m.vocab)
	}
	a.words = m
	return m, nil
}

// template is the text of one exchange: what system and prompt say, and the
// beginning of the answer. Without a system prompt the template may have its own.
func (m *modelText) template(system *string, prompt string) (string, error) {
	if m.err != nil {
		return "", m.err
	}
	var messages []tokenizer.Message
	if system != nil {
		messages = append(messages, tokenizer.Message{Role: "system", Content: *system})
	}
	return m.tok.Chat(append(messages, tokenizer.Message{Role: "user", Content: prompt}), true)
}

// encode gives the ids of a text, at least one, each one that the head has.
func (m *modelText) encode(text string) ([]int, error) {
	if m.err != nil {
		return nil, m.err
	}
	ids, err := m.tok.Encode(text)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("the text: got no tokens, want at least 1")
	}
	for i, id := range ids {
		if id >= m.vocab {
			return nil, fmt.Errorf("%s: got id %d for token %d of the text, want below %d (the head)", m.file, id, i, m.vocab)
		}
	}
	return ids, nil
}

// differs names the first difference between ids and what the tokenizer makes of
// their text. It is empty when there is none, and without a tokenizer.
func (m *modelText) differs(text string, ids []int) string {
	switch {
	case m.missing:
		return ""
	case m.err != nil:
		return fmt.Sprintf("not held to the text: %v", m.err)
	}
	want, err := m.tok.Encode(text)
	if err != nil {
		return fmt.Sprintf("not held to the text: %v", err)
	}
	i := 0
	for i < len(ids) && i < len(want) && ids[i] == want[i] {
		i++
	}
	switch {
	case i < len(ids) && i < len(want):
		return fmt.Sprintf("element %d: got %d, the tokenizer makes %d of the text", i, ids[i], want[i])
	case len(ids) != len(want):
		return fmt.Sprintf("got %s, the tokenizer makes %d of the text", plural(len(ids), "id"), len(want))
	}
	return ""
}

// decode is the text of an output without stop ids and special tokens. An id
// that the tokenizer has no token for, as a head padded to a round size may
// produce, has no text; unknown lists those.
func (m *modelText) decode(output, stop []int) (text string, unknown []int, err error) {
	if m.err != nil {
		return "", nil, m.err
	}
	var ids []int
	for _, id := range output {
		if slices.Contains(stop, id) {
			continue
		}
		if _, ok := m.tok.Token(id); !ok {
			unknown = append(unknown, id)
			continue
		}
		ids = append(ids, id)
	}
	text, err = m.tok.Decode(ids, true)
	return text, unknown, err
}

// detokenise is the text of an output, nil when there is no tokenizer for it,
// which is said on standard error, once.
func (a *app) detokenise(output, stop []int) (*string, error) {
	m, err := a.text()
	if err != nil {
		return nil, err
	}
	if len(output) == 0 {
		return new(string), nil
	}
	if m.err != nil {
		if !m.toldNoText {
			a.warn("no decoded text: %v", m.err)
		}
		m.toldNoText = true
		return nil, nil
	}
	text, unknown, err := m.decode(output, stop)
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		a.warn("%s: has no token for %s of the output, which the decoded text leaves out", m.file, strings.Trim(fmt.Sprint(unknown), "[]"))
	}
	return &text, nil
}

// encoder is what conformance tokenises texts with; nil for a model without a
// tokenizer.
func (m *modelText) encoder() func(string) ([]int, error) {
	switch {
	case m.missing:
		return nil
	case m.err != nil:
		return func(string) ([]int, error) { return nil, m.err }
	}
	return m.tok.Encode
}

// unsound says what keeps a string from being a prompt: a NUL ends it for
// programs behind a C interface, and invalid UTF-8 becomes other text.
func unsound(s string) (got string, bad bool) {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return fmt.Sprintf("a NUL at byte %d", i), true
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Sprintf("0x%02X at byte %d", s[i], i), true
		}
		i += n
	}
	return "", false
}

const soundText = "UTF-8 without a NUL"
