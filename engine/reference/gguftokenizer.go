package reference

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"
	"testing/fstest"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

// Types of tokens, the numbers in tokenizer.ggml.token_type.
const (
	tokenNormal      = 1
	tokenUnknown     = 2
	tokenControl     = 3
	tokenUserDefined = 4
	tokenUnused      = 5
)

// ggufTokenizer makes the tokenizer that the keys of a GGUF file describe, as
// llama.cpp reads them: byte-level BPE with the pre-tokeniser that
// tokenizer.ggml.pre names, no normalisation, and the control and user-defined
// tokens recognised in the text. It is written as the files of a Hugging Face
// folder, so that one implementation reads both. An UnsupportedError says which
// key has a value that isn't known.
func ggufTokenizer(f *gguf.File) (*tokenizer.Tokenizer, error) {
	files, err := ggufTextFiles(f)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.LoadFS(files, ".")
	if err != nil {
		return nil, fmt.Errorf("%s: tokenizer.ggml keys, as a Hugging Face folder: %w", f.Name(), err)
	}
	return t, nil
}

// ggufTextFiles writes the files.
func ggufTextFiles(f *gguf.File) (fstest.MapFS, error) {
	k := &textKeys{file: f}
	model := k.optionalText("tokenizer.ggml.model", "none")
	if model == "none" || model == "no_vocab" { // as without a tokenizer.json
		return nil, fmt.Errorf("%s: key tokenizer.ggml.model: %w", f.Name(), fs.ErrNotExist)
	}
	if k.err == nil && model != "gpt2" {
		k.refuse("tokenizer.ggml.model", model, `of tokenizers only "gpt2", byte-level BPE, is read`)
	}
	for _, key := range []string{"tokenizer.ggml.add_space_prefix", "tokenizer.ggml.remove_extra_whitespaces"} {
		if v, ok := f.Value(key); ok && v != false {
			k.refuse(key, v, "text is encoded as it stands")
		}
	}
	pre, ok := preTokenizers[k.optionalText("tokenizer.ggml.pre", "default")]
	if !ok {
		k.refuse("tokenizer.ggml.pre", k.optionalText("tokenizer.ggml.pre", "default"), "its pre-tokeniser isn't known here")
	}
	tokens := k.tokens()
	merges := k.list("tokenizer.ggml.merges")
	config := k.config(tokens)
	if k.err != nil {
		return nil, k.err
	}
	return fstest.MapFS{
		tokenizerName:           {Data: tokenizerJSON(pre, tokens, merges)},
		"tokenizer_config.json": {Data: config},
	}, nil
}

// token is a token of the vocabulary, at its id.
type token struct {
	text string
	kind int64
}

// textKeys reads the keys of a tokenizer. The first error sticks.
type textKeys struct {
	file *gguf.File
	err  error
}

func (k *textKeys) fail(key, got, want string) {
	if k.err == nil {
		k.err = &engine.ConfigError{File: k.file.Name(), What: "key " + key, Got: got, Want: want}
	}
}

func (k *textKeys) refuse(key string, value any, why string) {
	if k.err == nil {
		k.err = &engine.UnsupportedError{What: fmt.Sprintf("%s: key %s %s", k.file.Name(), key, show(value)), Why: why}
	}
}

func (k *textKeys) text(key string) string {
	v, ok := k.file.Value(key)
	s, isText := v.(string)
	switch {
	case !ok:
		k.fail(key, "nothing", "a string")
	case !isText:
		k.fail(key, show(v), "a string")
	case !utf8.ValidString(s):
		k.fail(key, "invalid UTF-8", "a string")
	}
	return s
}

func (k *textKeys) optionalText(key, def string) string {
	if _, ok := k.file.Value(key); !ok {
		return def
	}
	return k.text(key)
}

func (k *textKeys) list(key string) []string {
	v, ok := k.file.Value(key)
	list, isList := v.([]string)
	switch {
	case !ok:
		k.fail(key, "nothing", "a list of strings")
	case !isList:
		k.fail(key, show(v), "a list of strings")
	}
	for i, s := range list {
		if !utf8.ValidString(s) {
			k.fail(fmt.Sprintf("%s: element %d", key, i), "invalid UTF-8", "a string")
		}
	}
	return list
}

// tokens reads the vocabulary with the tokens' types. Without types all are
// normal.
func (k *textKeys) tokens() []token {
	const key = "tokenizer.ggml.token_type"
	texts := k.list("tokenizer.ggml.tokens")
	v, ok := k.file.Value(key)
	kinds, isList := toIntegers(v)
	if ok && (!isList || len(kinds) != len(texts)) {
		k.fail(key, fmt.Sprintf("%d whole numbers", len(kinds)), fmt.Sprintf("one per token, %d", len(texts)))
		return nil
	}
	all := make([]token, len(texts))
	for i, text := range texts {
		all[i] = token{text, tokenNormal}
		if !ok {
			continue
		}
		all[i].kind = kinds[i]
		switch kinds[i] {
		case tokenNormal, tokenUnknown, tokenControl, tokenUserDefined, tokenUnused:
		default:
			k.refuse(fmt.Sprintf("%s: element %d:", key, i), kinds[i], "of byte-level BPE tokens there are normal, unknown, control, user-defined and unused ones")
		}
	}
	return all
}

// config is a tokenizer_config.json: the chat template and the names of special
// tokens that it uses.
func (k *textKeys) config(tokens []token) []byte {
	// A class without tokens or habits of its own.
	config := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast"}
	for _, name := range []struct{ key, hf string }{{"bos", "bos_token"}, {"eos", "eos_token"}, {"unknown", "unk_token"}, {"padding", "pad_token"},
		{"seperator", "sep_token"}, {"mask", "mask_token"}} { // the format's spelling
		key := "tokenizer.ggml." + name.key + "_token_id"
		v, ok := k.file.Value(key)
		if !ok {
			continue
		}
		id, whole := toInteger(v)
		if !whole || id < 0 || id >= int64(len(tokens)) {
			k.fail(key, show(v), fmt.Sprintf("a token's id, 0 to %d", len(tokens)-1))
			continue
		}
		config[name.hf] = tokens[id].text
	}
	if _, ok := k.file.Value("tokenizer.chat_template"); ok {
		config["chat_template"] = k.text("tokenizer.chat_template")
	}
	data, err := json.Marshal(config)
	if err != nil {
		k.fail("tokenizer.chat_template", err.Error(), "text")
	}
	return data
}

// tokenizerJSON writes a tokenizer.json.
func tokenizerJSON(pre preTokenizer, tokens []token, merges []string) []byte {
	b := []byte(`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[`)
	first := true
	for id, t := range tokens {
		if t.kind == tokenNormal || t.kind == tokenUnused {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(strconv.AppendInt(append(b, `{"id":`...), int64(id), 10), `,"content":`...)
		b = appendJSON(b, t.text)
		b = append(b, `,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":`...)
		b = append(strconv.AppendBool(b, t.kind != tokenUserDefined), '}')
	}
	b = append(append(b, `],"normalizer":null,"pre_tokenizer":`...), pre.json()...)
	b = append(b, `,"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false},`...)
	b = append(b, `"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,`...)
	b = strconv.AppendBool(append(b, `"fuse_unk":false,"byte_fallback":false,"ignore_merges":`...), pre.ignoreMerges)
	b = append(b, `,"vocab":{`...)
	for id, t := range tokens {
		if id > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(appendJSON(b, t.text), ':'), int64(id), 10)
	}
	b = append(b, `},"merges":[`...)
	for i, m := range merges {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, m)
	}
	return append(b, "]}}"...)
}

// appendJSON writes valid UTF-8 as a JSON string.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
