package reference_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	got, err := reference.Resolve(dir)
	require.NoError(t, err)
	require.Equal(t, dir, got, "a plain folder is itself")

	one := filepath.Join(dir, "snapshots", "0123abc")
	require.NoError(t, os.MkdirAll(one, 0o755))
	got, err = reference.Resolve(dir)
	require.NoError(t, err)
	require.Equal(t, one, got)

	require.NoError(t, os.Mkdir(filepath.Join(dir, "snapshots", "two"), 0o755))
	_, err = reference.Resolve(dir)
	var bad *engine.ConfigError
	require.ErrorAs(t, err, &bad)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), nil, 0o644))
	got, err = reference.Resolve(dir)
	require.NoError(t, err)
	require.Equal(t, dir, got, "a folder with a config is no hub cache")
}
