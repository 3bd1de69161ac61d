package suite

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

// Faults of a tokenizer are planted in the files of one, or in the text.
const (
	// lettersOfQwen2 and lettersOfGPT2 are what the two families' patterns say of
	// a word: Qwen2's takes a mark in front of it along, GPT-2's only a space.
	lettersOfQwen2 = `[^\\r\\n\\p{L}\\p{N}]?\\p{L}+`
	lettersOfGPT2  = ` ?\\p{L}+`
)

// plantInTokens plants a fault in how a candidate makes ids of a prompt: it runs
// them, and tells that it does. ok is false when the control is not one of these.
func plantInTokens(cfg conformance.Config, k conformance.Control) (_ conformance.Config, ok bool, err error) {
	var encode func(string) ([]int, error)
	switch k.Mutant {
	case "pre-tokeniser-rule":
		t, err := otherPattern(fixtures.Model())
		if err != nil {
			return cfg, true, err
		}
		encode = t.Encode
	case "template-whitespace":
		t, err := tokenizer.LoadFS(fixtures.Model(), ".")
		if err != nil {
			return cfg, true, err
		}
		encode = func(text string) ([]int, error) { return t.Encode(text + "\n") }
	default:
		return cfg, false, nil
	}
	cfg.Candidate = tokenises{cfg.Candidate, encode}
	return cfg, true, nil
}

// otherPattern is the checkpoint's tokenizer with one rule of its pattern taken
// from another family.
func otherPattern(model fs.FS) (*tokenizer.Tokenizer, error) {
	data, err := fs.ReadFile(model, "tokenizer.json")
	if err != nil {
		return nil, err
	}
	changed := bytes.Replace(data, []byte(lettersOfQwen2), []byte(lettersOfGPT2), 1)
	if bytes.Equal(changed, data) {
		return nil, fmt.Errorf("suite: tokenizer.json: got no %s to change", lettersOfQwen2)
	}
	return tokenizer.LoadFS(fstest.MapFS{"tokenizer.json": {Data: changed}}, ".")
}

// tokenises is a candidate that makes its own ids of a prompt's text.
type tokenises struct {
	engine.Candidate
	encode func(string) ([]int, error)
}

func (t tokenises) Run(ctx context.Context, req engine.Request) (*engine.Response, error) {
	ids, err := t.encode(req.Case.Text)
	if err != nil {
		return nil, err
	}
	req.Case.TokenIDs = ids
	resp, err := t.Candidate.Run(ctx, req)
	if err != nil {
		return nil, err
	}
	resp.PromptIDs = ids
	return resp, nil
}
