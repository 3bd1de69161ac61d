package reference

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
	"github.com/plumbline-go/plumbline/engine/reference/internal/ggufbuild"
)

// FuzzGGUFTextKeys: whatever the keys of a tokenizer are, what is written from
// them is JSON that says the same, or an error. That the tokenizer then reads it or
// not is fuzzed where it is.
func FuzzGGUFTextKeys(f *testing.F) {
	f.Add("gpt2", "smollm", "a\"\\\x00", "b\u2028", int32(3), "a b", "{{ x }}", uint32(1))
	f.Add("none", "default", "", "\xff", int32(6), " ", "\xff", uint32(9))
	f.Fuzz(func(t *testing.T, model, pre, first, second string, kind int32, merge, template string, bos uint32) {
		data := (&ggufbuild.File{Keys: []ggufbuild.Key{
			{Name: "tokenizer.ggml.model", Value: model}, {Name: "tokenizer.ggml.pre", Value: pre},
			{Name: "tokenizer.ggml.tokens", Value: []string{first, second}}, {Name: "tokenizer.ggml.token_type", Value: []int32{kind, 1}},
			{Name: "tokenizer.ggml.merges", Value: []string{merge}}, {Name: "tokenizer.ggml.bos_token_id", Value: bos},
			{Name: "tokenizer.chat_template", Value: template}}}).Bytes()
		file, err := gguf.New(bytes.NewReader(data), int64(len(data)), "m.gguf")
		if err != nil {
			t.Fatal(err)
		}
		files, err := ggufTextFiles(file)
		if err != nil {
			var bad *engine.ConfigError
			var unsupported *engine.UnsupportedError
			if !errors.As(err, &bad) && !errors.As(err, &unsupported) && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%v (%T)", err, err)
			}
			return
		}
		var tok struct {
			Added []struct{ Content string } `json:"added_tokens"`
			Model struct {
				Vocab  map[string]int
				Merges []string
			}
		}
		var config struct {
			Bos      string `json:"bos_token"`
			Template string `json:"chat_template"`
		}
		if err := errors.Join(json.Unmarshal(files[tokenizerName].Data, &tok), json.Unmarshal(files["tokenizer_config.json"].Data, &config)); err != nil {
			t.Fatal(err)
		}
		id, ok := tok.Model.Vocab[second]
		if !ok || id != 1 || tok.Model.Merges[0] != merge || config.Template != template || config.Bos != [2]string{first, second}[bos] {
			t.Fatalf("%s\n%s", files[tokenizerName].Data, files["tokenizer_config.json"].Data)
		}
		if added := kind != tokenNormal && kind != tokenUnused; added != (len(tok.Added) == 1) || added && tok.Added[0].Content != first {
			t.Fatalf("added tokens %q of type %d", tok.Added, kind)
		}
	})
}
