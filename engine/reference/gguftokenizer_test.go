package reference_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/engine/reference/internal/ggufbuild"
	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

const tokenizerFixtures = "../../fixtures/tokenizer/testdata"

// tinyTokenizer is one whose 50 tokens are letters and what they merge into.
func tinyTokenizer() []ggufbuild.Key {
	tokens := []string{"<|im_start|>", "<|im_end|>", "<think>", "[PAD]"}
	types := []int32{3, 3, 4, 5}
	for _, letter := range "abcdefghijklmnopqrstuvwxyz0123456789Ċ\"\\Ġ" {
		tokens, types = append(tokens, string(letter)), append(types, 1)
	}
	for len(tokens) < 48 {
		tokens, types = append(tokens, fmt.Sprintf("<unused%d>", len(tokens))), append(types, 5)
	}
	tokens, types = append(tokens, "Ġb", "ab"), append(types, 1, 1)
	return []ggufbuild.Key{
		{Name: "tokenizer.ggml.model", Value: "gpt2"},
		{Name: "tokenizer.ggml.pre", Value: "gpt-2"},
		{Name: "tokenizer.ggml.tokens", Value: tokens},
		{Name: "tokenizer.ggml.token_type", Value: types},
		{Name: "tokenizer.ggml.merges", Value: []string{"Ġ b", "a b"}},
		{Name: "tokenizer.ggml.bos_token_id", Value: uint32(0)},
		{Name: "tokenizer.ggml.eos_token_id", Value: uint32(1)},
		{Name: "tokenizer.ggml.padding_token_id", Value: uint32(3)},
		{Name: "tokenizer.ggml.add_bos_token", Value: true},
		{Name: "tokenizer.ggml.add_space_prefix", Value: false},
		{Name: "tokenizer.chat_template", Value: "{{ bos_token }}{% for m in messages %}{{ m['role'] + '\n' + m['content'] + eos_token }}{% endfor %}{% if add_generation_prompt %}a\"\\{% endif %}{{ unk_token }}"},
	}
}

// textModel is a tiny llama with a tokenizer's keys.
func textModel(t *testing.T, keys []ggufbuild.Key) (*reference.Checkpoint, error) {
	t.Helper()
	f := ggufModel(ggufWeights("llama", false, true))
	f.Keys = append(f.Keys, keys...)
	for _, k := range keys {
		tokens, ok := k.Value.([]string)
		if !ok || k.Name != "tokenizer.ggml.tokens" {
			continue
		}
		// An embedding table for so many tokens.
		f.Set("llama.vocab_size", uint32(len(tokens)))
		table := f.Tensor("token_embd.weight")
		table.Dims[1] = uint64(len(tokens))
		table.Data = make([]byte, 4*24*len(tokens))
	}
	return reference.LoadFS(fstest.MapFS{"text.gguf": {Data: f.Bytes()}}, "text.gguf")
}

func TestGGUFTokenizer(t *testing.T) {
	c, err := textModel(t, tinyTokenizer())
	require.NoError(t, err)
	require.Equal(t, "text.gguf", c.TokenizerFile())
	for text, want := range map[string][]int{
		"a b":                       {4, 48},
		"ab ab":                     {49, 43, 49},  // " b" was never there to merge
		"<|im_start|>a<|im_end|>\n": {0, 4, 1, 40}, // control tokens, and no BOS but the text's
		"a<think>b":                 {4, 2, 5},     // user-defined ones
		"\"\\":                      {41, 42},      // what JSON escapes
		"z9":                        {29, 39},
	} {
		got, err := c.Encode(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	// Unused tokens aren't found in a text. That of a byte without a token is
	// left out, as in the library and in llama.cpp.
	got, err := c.Encode("<unused44>")
	require.NoError(t, err)
	require.Equal(t, []int{24, 17, 24, 22, 8, 7, 34, 34}, got)
	tok, err := c.Tokenizer()
	require.NoError(t, err)
	text, err := tok.Decode([]int{0, 4, 48, 2, 1}, true)
	require.NoError(t, err)
	require.Equal(t, "a b<think>", text)
	require.True(t, tok.IsSpecial(0))
	require.False(t, tok.IsSpecial(2))
	token, ok := tok.Token(3)
	require.True(t, ok)
	require.Equal(t, "[PAD]", token)
	require.Equal(t, 50, tok.Vocab())
	chat, err := tok.Chat([]tokenizer.Message{{Role: "user", Content: "x"}}, true)
	require.NoError(t, err)
	require.Equal(t, "<|im_start|>user\nx<|im_end|>a\"\\", chat)
}

// TestGGUFWordsThatAreTokens: whole, where the pre-tokeniser's name says so,
// although no merge leads there.
func TestGGUFWordsThatAreTokens(t *testing.T) {
	for pre, want := range map[string][]int{"llama-bpe": {2}, "smaug-bpe": {0, 1}, "gpt-2": {0, 1}} {
		c, err := textModel(t, []ggufbuild.Key{{Name: "tokenizer.ggml.model", Value: "gpt2"}, {Name: "tokenizer.ggml.pre", Value: pre},
			{Name: "tokenizer.ggml.tokens", Value: []string{"a", "b", "ab"}}, {Name: "tokenizer.ggml.merges", Value: []string{}}})
		require.NoError(t, err)
		got, err := c.Encode("ab")
		require.NoError(t, err)
		require.Equal(t, want, got, pre)
	}
}

// recordedTexts are the texts and ids that a recorder wrote.
type recordedTexts struct {
	Texts      []string
	Vocabulary map[string]string
	IDs        map[string][][]int `json:"ids"`
}

// jsonTokenizer is a tokenizer.json as the keys of a GGUF file.
func jsonTokenizer(t *testing.T, name, pre string) []ggufbuild.Key {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(tokenizerFixtures, "tokenizers", name+".json"))
	require.NoError(t, err)
	var file struct {
		Added []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int
			Merges []any
		}
	}
	require.NoError(t, json.Unmarshal(data, &file))
	tokens := make([]string, len(file.Model.Vocab)+len(file.Added))
	types := make([]int32, len(tokens))
	for token, id := range file.Model.Vocab {
		tokens[id], types[id] = token, 1
	}
	for _, a := range file.Added {
		tokens[a.ID], types[a.ID] = a.Content, 4
		if a.Special {
			types[a.ID] = 3
		}
	}
	var merges []string
	for _, m := range file.Model.Merges {
		if pair, ok := m.([]any); ok {
			m = pair[0].(string) + " " + pair[1].(string)
		}
		merges = append(merges, m.(string))
	}
	return []ggufbuild.Key{{Name: "tokenizer.ggml.model", Value: "gpt2"}, {Name: "tokenizer.ggml.pre", Value: pre},
		{Name: "tokenizer.ggml.tokens", Value: tokens}, {Name: "tokenizer.ggml.token_type", Value: types}, {Name: "tokenizer.ggml.merges", Value: merges}}
}

// TestGGUFPreTokenizersAreLlamaCpps: the ids that llama.cpp's own code leads to,
// see testdata/record_gguf_tokens.py.
func TestGGUFPreTokenizersAreLlamaCpps(t *testing.T) {
	var want recordedTexts
	data, err := os.ReadFile("testdata/gguf_tokens.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))
	require.Len(t, want.IDs, 6)
	require.Greater(t, len(want.Texts), 100)
	for pre, ids := range want.IDs {
		t.Run(pre, func(t *testing.T) {
			keys := jsonTokenizer(t, want.Vocabulary[pre], pre)
			if pre == "default" { // also that of files from before the key
				keys = append(keys[:1:1], keys[2:]...)
			}
			c, err := textModel(t, keys)
			require.NoError(t, err)
			require.Len(t, ids, len(want.Texts))
			for i, text := range want.Texts {
				got, err := c.Encode(text)
				require.NoError(t, err)
				require.Equal(t, ids[i], got, "%q", text)
			}
		})
	}
}

// TestGGUFTokenizersAreTheirModels: the ids that the Python package makes with the
// tokenizer.json that the keys stand for, special tokens in the text included.
func TestGGUFTokenizersAreTheirModels(t *testing.T) {
	var all struct {
		Fixed []string
		Cases map[string]struct{ Fixed [][]int }
	}
	data, err := os.ReadFile(filepath.Join(tokenizerFixtures, "cases.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &all))
	// llama.cpp's classes know no number that Unicode has had for a year, and its
	// contractions no long s.
	differs := func(text string) bool {
		return strings.ContainsAny(text, "\U00011de0\u017f")
	}
	for name, pre := range map[string]string{"smollm2": "smollm", "gpt2": "gpt-2", "llama3": "llama-bpe"} {
		c, err := textModel(t, jsonTokenizer(t, name, pre))
		require.NoError(t, err)
		judged := 0
		for i, text := range all.Fixed {
			if differs(text) {
				continue
			}
			judged++
			got, err := c.Encode(text)
			require.NoError(t, err)
			require.Equal(t, all.Cases[name].Fixed[i], got, "%s: %q", name, text)
		}
		require.Greater(t, judged, 60)
	}
}

func TestGGUFTokenizerRefusals(t *testing.T) {
	for _, c := range []struct {
		key         string
		value       any  // nil drops the key
		unsupported bool // else an *engine.ConfigError
		text        string
	}{
		{"tokenizer.ggml.model", "llama", true, `text.gguf: key tokenizer.ggml.model "llama" not supported: of tokenizers only "gpt2"`},
		{"tokenizer.ggml.model", uint32(1), false, "text.gguf: key tokenizer.ggml.model: got 1, want a string"},
		{"tokenizer.ggml.pre", "tekken", true, `text.gguf: key tokenizer.ggml.pre "tekken" not supported: its pre-tokeniser isn't known here`},
		{"tokenizer.ggml.pre", uint32(1), false, "key tokenizer.ggml.pre: got 1, want a string"},
		{"tokenizer.ggml.tokens", nil, false, "key tokenizer.ggml.tokens: got nothing, want a list of strings"},
		{"tokenizer.ggml.tokens", []int32{1}, false, "key tokenizer.ggml.tokens: got [1], want a list of strings"},
		{"tokenizer.ggml.merges", nil, false, "key tokenizer.ggml.merges: got nothing"},
		{"tokenizer.ggml.merges", []string{"\xff a"}, false, "key tokenizer.ggml.merges: element 0: got invalid UTF-8"},
		{"tokenizer.ggml.token_type", []int32{1}, false, "key tokenizer.ggml.token_type: got 1 whole numbers, want one per token, 50"},
		{"tokenizer.ggml.token_type", "1", false, "key tokenizer.ggml.token_type: got 0 whole numbers"},
		{"tokenizer.ggml.token_type", append([]int32{6}, make([]int32, 49)...), true, "key tokenizer.ggml.token_type: element 0: 6 not supported"},
		{"tokenizer.ggml.bos_token_id", uint32(50), false, "key tokenizer.ggml.bos_token_id: got 50, want a token's id, 0 to 49"},
		{"tokenizer.ggml.eos_token_id", int32(-1), false, "key tokenizer.ggml.eos_token_id: got -1"},
		{"tokenizer.ggml.add_space_prefix", true, true, "key tokenizer.ggml.add_space_prefix true not supported: text is encoded as it stands"},
		{"tokenizer.ggml.remove_extra_whitespaces", true, true, "key tokenizer.ggml.remove_extra_whitespaces true not supported"},
		{"tokenizer.chat_template", "\xff", false, "key tokenizer.chat_template: got invalid UTF-8"},
	} {
		t.Run(fmt.Sprintf("%s %v", c.key, c.value), func(t *testing.T) {
			f := ggufbuild.File{Keys: tinyTokenizer()}
			f.Drop(c.key)
			if c.value != nil {
				f.Set(c.key, c.value)
			}
			model, err := textModel(t, f.Keys)
			require.NoError(t, err, "ids can be run without a tokenizer")
			_, err = model.Encode("a")
			if c.unsupported {
				var unsupported *engine.UnsupportedError
				require.ErrorAs(t, err, &unsupported)
			} else {
				var bad *engine.ConfigError
				require.ErrorAs(t, err, &bad)
			}
			require.ErrorContains(t, err, c.text)
		})
	}
	// What the tokenizer's own rules forbid.
	f := ggufbuild.File{Keys: tinyTokenizer()}
	f.Set("tokenizer.ggml.merges", []string{"a z"})
	model, err := textModel(t, f.Keys)
	require.NoError(t, err)
	_, err = model.Tokenizer()
	var broken *tokenizer.FormatError
	require.ErrorAs(t, err, &broken)
	require.ErrorContains(t, err, "reference: text.gguf: tokenizer.ggml keys, as a Hugging Face folder: ")
	// None at all is what a folder without a tokenizer.json is.
	for _, keys := range [][]ggufbuild.Key{nil, {{Name: "tokenizer.ggml.model", Value: "none"}}, {{Name: "tokenizer.ggml.model", Value: "no_vocab"}}} {
		model, err := textModel(t, keys)
		require.NoError(t, err)
		_, err = model.Tokenizer()
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = model.Encode("a")
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}
