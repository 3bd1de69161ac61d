package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// edit rewrites a JSON file of a model's folder.
func edit(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var v map[string]any
	require.NoError(t, json.Unmarshal(data, &v))
	change(v)
	data, err = json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path)) // a copy of an embedded file is read only
	require.NoError(t, writeFile(path, data))
}

// tryLogits runs plumbline logits and returns the exit code, what it printed and
// what it complained about.
func tryLogits(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv(modelEnv, "")
	dump := filepath.Join(t.TempDir(), "x.bin")
	var out, errs bytes.Buffer
	code = run(append([]string{"logits", "--max-new", "1", "--stop", "2002", "--dump-logits", dump}, args...), &out, &errs)
	if code != exitDone {
		require.Empty(t, out.String())
		require.NoFileExists(t, dump)
	}
	return code, out.String(), errs.String()
}

// A template that says no, or that isn't there, is told with the ways around it,
// which work.
func TestChatTemplatesThatGiveNoText(t *testing.T) {
	for _, tt := range []struct{ name, template, says string }{
		{"raises", "{{ raise_exception('no system prompts here') }}", "no system prompts here"},
		{"is none", "", "got neither chat_template.jinja nor chat_template in tokenizer_config.json"},
		{"is broken", "{% if %}", "syntax error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := trainedFolder(t)
			edit(t, filepath.Join(model, "tokenizer_config.json"), func(v map[string]any) {
				if v["chat_template"] = tt.template; tt.template == "" {
					delete(v, "chat_template")
				}
			})
			const hint = "; --templated takes PROMPT as the templated text, --ids its token ids, --case a file with both"
			code, _, stderr := tryLogits(t, "hi", "--model", model)
			require.Equal(t, exitBroken, code)
			require.Regexp(t, `(?m)^plumbline: PROMPT: tokenizer: .*`+tt.says+".*"+hint+"$", stderr)
			code, stdout, stderr := tryLogits(t, "hi", "--templated", "--model", model)
			require.Equal(t, exitDone, code, stderr)
			require.Contains(t, stdout, "prompt_tokens: ")

			dir := t.TempDir()
			prompts := filepath.Join(dir, "p.jsonl")
			require.NoError(t, writeFile(prompts, []byte(`{"name":"a","text":"x"}`+"\n"+`{"name":"b","prompt":"x"}`)))
			var out, errs bytes.Buffer
			require.Equal(t, exitBroken, run([]string{"capture", "--model", model, "--prompts", prompts, "--out", filepath.Join(dir, "out")}, &out, &errs))
			require.Regexp(t, `p\.jsonl:2: prompt: .*`+tt.says+`.*; a line may bring its templated text`, errs.String())
			require.Equal(t, []string{"p.jsonl"}, names(t, dir))
		})
	}
}

// A tokenizer with more ids than the head has is said, and is an error where such
// an id would have to be run.
func TestTokenizerLargerThanTheHead(t *testing.T) {
	model := trainedFolder(t)
	edit(t, filepath.Join(model, "tokenizer.json"), func(v map[string]any) {
		tokens := v["added_tokens"].([]any)
		for id := 2003; id <= 2048; id++ { // the head has 2048
			tokens = append(tokens, map[string]any{"id": id, "content": fmt.Sprintf("<extra %d>", id), "single_word": false,
				"lstrip": false, "rstrip": false, "normalized": false, "special": false})
		}
		v["added_tokens"] = tokens
	})
	code, _, stderr := tryLogits(t, "hi<extra 2047>", "--model", model)
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stderr, "tokenizer.json: has ids up to 2048, the model's head below 2048: text with the others can't be run\n")
	code, _, stderr = tryLogits(t, "hi<extra 2048>", "--model", model)
	require.Equal(t, exitBroken, code)
	require.Regexp(t, `PROMPT: .*tokenizer\.json: got id 2048 for token \d+ of the text, want below 2048 \(the head\)`, stderr)
}

// A tokenizer that can't be used is named, and only text needs one.
func TestTokenizerThatIsNotSupported(t *testing.T) {
	model := trainedFolder(t)
	edit(t, filepath.Join(model, "tokenizer.json"), func(v map[string]any) {
		v["model"].(map[string]any)["type"] = "WordPiece"
	})
	code, _, stderr := tryLogits(t, "hi", "--model", model)
	require.Equal(t, exitBroken, code)
	require.Contains(t, stderr, `tokenizer.json: model.type: unsupported: got "WordPiece"`)
	code, stdout, stderr := tryLogits(t, "--case", filepath.Join(goldenFolder, "one_token.json"), "--model", model)
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stderr, "one_token.json: token_ids: not held to the text: ")
	require.Contains(t, stderr, "no decoded text: ")
	require.True(t, strings.HasSuffix(stdout, "---DECODED---\n\n"))

	text, err := (&app{model: model, dtype: "float32", quiet: true}).text()
	require.NoError(t, err)
	_, err = text.encoder()("hi")
	require.ErrorContains(t, err, "WordPiece")
}

// The tokenizer of a hub cache folder is that of the snapshot whose weights run.
func TestTokenizerOfAHubCacheFolder(t *testing.T) {
	cache := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "snapshots"), 0o755))
	require.NoError(t, os.Rename(trainedFolder(t), filepath.Join(cache, "snapshots", "0123")))
	require.NoError(t, writeFile(filepath.Join(cache, "tokenizer.json"), []byte("not this one")))
	code, stdout, stderr := tryLogits(t, "func", "--templated", "--model", cache)
	require.Equal(t, exitDone, code, stderr)
	require.Contains(t, stdout, "prompt_tokens: 2\noutput_ids: 13\n") // golden/qwen2-trained/two_tokens.json
}

func TestDetokenising(t *testing.T) {
	m, err := (&app{model: trainedFolder(t), dtype: "float32"}).text()
	require.NoError(t, err)
	char, err := m.encode("ø") // two bytes, and no token of the vocabulary
	require.NoError(t, err)
	require.Len(t, char, 2)
	hi, err := m.encode("hi")
	require.NoError(t, err)
	for _, tt := range []struct {
		name         string
		output, stop []int
		text         string
		unknown      []int
	}{
		{"nothing", nil, nil, "", nil},
		{"whole", append(hi, char...), nil, "hiø", nil},
		{"half a character", append(hi, char[0]), nil, "hi\uFFFD", nil},
		{"special tokens", append([]int{2001}, hi...), nil, "hi", nil},
		{"stop ids, wherever they are", []int{char[0], hi[0], char[1]}, hi, "ø", nil},
		{"ids of a padded head", []int{2047, hi[0], 2003}, nil, mustDecode(t, m, hi[0]), []int{2047, 2003}},
	} {
		text, unknown, err := m.decode(tt.output, tt.stop)
		require.NoError(t, err, tt.name)
		assert.Equal(t, tt.text, text, tt.name)
		assert.Equal(t, tt.unknown, unknown, tt.name)
	}
}

func mustDecode(t *testing.T, m *modelText, id int) string {
	t.Helper()
	token, ok := m.tok.Token(id)
	require.True(t, ok)
	return token // letters are themselves in the byte-level alphabet
}

func TestDifferingIDsAreNamed(t *testing.T) {
	m, err := (&app{model: trainedFolder(t), dtype: "float32"}).text()
	require.NoError(t, err)
	// golden/qwen2-trained/two_tokens.json
	require.Empty(t, m.differs("func", []int{69, 700}))
	require.Equal(t, "element 1: got 7, the tokenizer makes 700 of the text", m.differs("func", []int{69, 7}))
	require.Equal(t, "got 1 id, the tokenizer makes 2 of the text", m.differs("func", []int{69}))
	require.Equal(t, "got 3 ids, the tokenizer makes 2 of the text", m.differs("func", []int{69, 700, 700}))
}

func TestUnsoundPrompts(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "é\uFFFD": "", "a\x00b": "a NUL at byte 1", "é\xffa": "0xFF at byte 2", "\xed\xa0\x80": "0xED at byte 0",
	} {
		got, bad := unsound(text)
		assert.Equal(t, want, got, "%q", text)
		assert.Equal(t, want != "", bad, "%q", text)
	}
	code, _, stderr := tryLogits(t, "a\xff", "--model", "nowhere")
	require.Equal(t, exitBroken, code)
	require.Contains(t, stderr, "PROMPT: got 0xFF at byte 1, want UTF-8 without a NUL")
	code, _, stderr = tryLogits(t, "a", "--system", "\xff", "--model", "nowhere")
	require.Equal(t, exitBroken, code)
	require.Contains(t, stderr, "--system: got 0xFF at byte 0")
}

// gate holds the ids that a dump folder brings to its texts, where the model has
// a tokenizer, and tells of the others that they weren't.
func TestGateHoldsIDsToTheText(t *testing.T) {
	slow(t)
	model, dir := trainedFolder(t), t.TempDir()
	prompts, dumps := filepath.Join(dir, "p.jsonl"), filepath.Join(dir, "dumps")
	require.NoError(t, writeFile(prompts, []byte(`{"name":"right","text":"func"}`+"\n"+`{"name":"wrong","text":"func","token_ids":[69,699]}`)))
	var stdout, stderr bytes.Buffer
	t.Setenv(modelEnv, "")
	require.Equal(t, exitDone, run([]string{"capture", "--model", model, "--prompts", prompts, "--out", dumps, "--stop", "2002"}, &stdout, &stderr), stderr.String())
	require.Contains(t, stderr.String(), "p.jsonl:2: token_ids: element 1: got 699, the tokenizer makes 700 of the text\n")

	rep, code, _ := gateJSON(t, "--model", model, "--candidate", dumps, "--allow-partial")
	require.Equal(t, exitFails, code)
	require.Equal(t, map[string]conformance.Status{"right": conformance.Pass, "wrong": conformance.Fail}, statuses(rep, "PromptTokens"))

	require.NoError(t, os.Remove(filepath.Join(model, "tokenizer.json")))
	rep, _, _ = gateJSON(t, "--model", model, "--candidate", dumps, "--allow-partial")
	require.Equal(t, map[string]conformance.Status{"right": conformance.Unsupported, "wrong": conformance.Unsupported}, statuses(rep, "PromptTokens"))
}

func statuses(r conformance.Report, id string) map[string]conformance.Status {
	out := map[string]conformance.Status{}
	for _, c := range r.Checks {
		if c.ID == id {
			out[c.Case] = c.Status
		}
	}
	return out
}

// A program's prompts may be text: it is handed the ids that the model's
// tokenizer makes.
func TestGatePromptsMayBeText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.jsonl")
	require.NoError(t, writeFile(path, []byte(`{"name":"a","text":"func","stop":[2002]}`+"\n"+
		`{"name":"b","prompt":"strings.Builder?","system":""}`+"\n"+`{"name":"c","prompt":"What does io.ReadAll do?","system":null}`+"\n"+
		`{"name":"d","prompt":"x"}`)))
	a := &app{model: trainedFolder(t), dtype: "float32", quiet: true}
	rows, err := a.readPrompts(path, "S")
	require.NoError(t, err)
	var got []engine.Case
	for _, r := range rows {
		got = append(got, r.asCase())
	}
	recorded := recordedCases(t)
	require.Equal(t, engine.Case{Name: "a", Text: "func", TokenIDs: []int{69, 700}, Stop: []int{2002}}, got[0])
	for i, name := range map[int]string{1: "empty_system", 2: "read_all"} {
		require.Equal(t, recorded[name].Text, got[i].Text)
		require.Equal(t, recorded[name].TokenIDs, got[i].TokenIDs)
	}
	require.Contains(t, got[3].Text, "system\nS<")
	require.Equal(t, "S", *rows[3].file.System)
}
