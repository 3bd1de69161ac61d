package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDeclaredFeaturesArrive: from an engine.json and from a handshake.
func TestDeclaredFeaturesArrive(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), []byte(`{"name":"a","features":["logits"]}`), 0o600))
	info, err := Dir(dir).Info(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"logits"}, info.Features)

	c, err := parseCapabilities([]byte(`{"plumbline":1,"name":"a","features":["logits","layers"]}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"logits", "layers"}, c.Features)
	_, err = parseCapabilities([]byte(`{"plumbline":1,"name":"a","features":"logits"}`))
	require.ErrorContains(t, err, "features: ")
}
