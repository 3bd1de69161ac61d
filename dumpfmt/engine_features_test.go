package dumpfmt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TestFeaturesOfAnEngineFile: a list of strings, kept in order; anything else is refused
// with its place.
func TestFeaturesOfAnEngineFile(t *testing.T) {
	dir := t.TempDir()
	read := func(text string) (dumpfmt.EngineFile, error) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), []byte(text), 0o600))
		return dumpfmt.ReadEngineFile(dir)
	}
	for text, want := range map[string][]string{
		`{"name":"a","features":["logits","layers"]}`: {"logits", "layers"},
		`{"name":"a","features":[]}`:                  nil,
		`{"name":"a","features":null}`:                nil,
		`{"name":"a"}`:                                nil,
	} {
		e, err := read(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, e.Features, text)
		assert.Empty(t, e.Extra, text)
	}
	for text, want := range map[string]string{
		`{"name":"a","features":"logits"}`:         `features at byte 0x17: got '"', want '['`,
		`{"name":"a","features":["logits",3]}`:     "features[1] at byte 0x21: got '3'",
		`{"name":"a","features":["logits"`:         "element of features at byte 0x20: got the end",
		`{"name":"a","features":[],"features":[]}`: `key "features" twice`,
	} {
		_, err := read(text)
		if assert.Error(t, err, text) {
			assert.Contains(t, err.Error(), want)
		}
	}

	// What is written is what is read.
	out := filepath.Join(t.TempDir(), "dumps")
	_, err := dumpfmt.CreateFolder(out, dumpfmt.EngineFile{Name: "a", Features: []string{"lo\"gits", "layers"}}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	e, err := dumpfmt.ReadEngineFile(out)
	require.NoError(t, err)
	assert.Equal(t, []string{"lo\"gits", "layers"}, e.Features)
}
