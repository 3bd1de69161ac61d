package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tinyGGUF is a llama with a tokenizer and a chat template, and what transformers
// computes with it.
const tinyGGUF = "../../engine/reference/testdata/tiny.gguf"

// A GGUF file is a model like a folder: its text, its tokens, and itself as a
// candidate.
func TestGGUFIsAModel(t *testing.T) {
	t.Setenv(modelEnv, "")
	var want struct {
		OutputIDs []int `json:"output_ids"`
	}
	data, err := os.ReadFile("../../engine/reference/testdata/tiny.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &want))

	m, err := (&app{model: tinyGGUF, dtype: "float32"}).text()
	require.NoError(t, err)
	require.NoError(t, m.err)
	system := "a"
	text, err := m.template(&system, "use the user")
	require.NoError(t, err)
	require.Equal(t, "<|im_start|>system\na<|im_end|>\n<|im_start|>user\nuse the user<|im_end|>\n<|im_start|>assistant\n", text)
	// Tokens 42 on are what the merges make: " a", "th", "the", " the", "in", "us", "use", "user".
	ids, err := m.encode("use the user a<|im_end|>")
	require.NoError(t, err)
	require.Equal(t, []int{48, 45, 38, 49, 42, 1}, ids)

	dir := t.TempDir()
	dump := filepath.Join(dir, "x.logits.bin")
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitDone, run([]string{"logits", "--ids", "0,9,43,44,30,1,17,17,5", "--model", tinyGGUF, "--max-new", "6", "--stop", "63", "--dump-logits", dump, "--json"}, &stdout, &stderr), stderr.String())
	require.Empty(t, stderr.String())
	var out struct {
		OutputIDs []int `json:"output_ids"`
	}
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &out))
	require.Equal(t, want.OutputIDs, out.OutputIDs)

	prompts, dumps := filepath.Join(dir, "p.jsonl"), filepath.Join(dir, "dumps")
	require.NoError(t, writeFile(prompts, []byte(`{"name":"a","text":"use the user"}`+"\n"+`{"name":"b","text":"in the end."}`)))
	stdout.Reset()
	require.Equal(t, exitDone, run([]string{"capture", "--model", tinyGGUF, "--prompts", prompts, "--out", dumps, "--max-new", "3", "--stop", "63"}, &stdout, &stderr), stderr.String())
	require.NoError(t, os.Remove(filepath.Join(dumps, "engine.json")))
	require.NoError(t, writeFile(filepath.Join(dumps, "engine.json"), []byte(`{"name":"another","layers":"f32","logits":"f32"}`)))
	rep, code, _ := gateJSON(t, "--model", tinyGGUF, "--candidate", dumps, "--allow-partial")
	require.Equal(t, exitDone, code, "%+v", rep)
}

// A GGUF file that can't be used is a run that broke, and says why.
func TestGGUFRefusals(t *testing.T) {
	t.Setenv(modelEnv, "")
	good, err := os.ReadFile(tinyGGUF)
	require.NoError(t, err)
	for text, data := range map[string][]byte{
		"the magic at byte 0x0":                 []byte("not a model at all, but longer than a header"),
		"tensor output_norm.weight at byte":     good[:len(good)-1],
		`general.architecture "mamba" not`:      bytes.Replace(good, []byte("llama"), []byte("mamba"), 1),
		"tokenizer.ggml.tokens: length at byte": bytes.Replace(good, []byte("tokenizer.ggml.tokens\x09\x00\x00\x00\x08\x00\x00\x00\x40"), []byte("tokenizer.ggml.tokens\x09\x00\x00\x00\x08\x00\x00\x00\x40\xff\xff"), 1),
	} {
		path := filepath.Join(t.TempDir(), "bad.gguf")
		require.NoError(t, writeFile(path, data))
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitBroken, run([]string{"layers", "a", "--templated", "--model", path, "--dump", path + ".layers.bin"}, &stdout, &stderr))
		require.Contains(t, stderr.String(), text)
		require.Contains(t, stderr.String(), "bad.gguf")
	}
}
