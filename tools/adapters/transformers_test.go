package adapters_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// TestTransformersAdapter runs the adapter's tests that need no torch.
func TestTransformersAdapter(t *testing.T) {
	for _, pattern := range []string{"transformers/*.py", "transformers/*/*.py", "python/*.py"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files { // the go command's cache knows what a test read, not what its children did
			_, err := os.ReadFile(f)
			require.NoError(t, err)
		}
	}
	cmd := exec.Command(python(t), "-m", "unittest", "discover")
	cmd.Dir = "transformers"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Regexp(t, `Ran [1-9]\d+ tests`, string(out), "discovery found them")
	_, err = os.Stat("transformers/plumbline_hf/__pycache__")
	require.ErrorIs(t, err, os.ErrNotExist, "the tests leave no byte code behind")
}

// TestTransformersAdapterServesTheFakes: the way between the adapter and the
// suite is sound, without torch, which the fakes don't need.
func TestTransformersAdapterServesTheFakes(t *testing.T) {
	model, err := filepath.Abs("../../fixtures/qwen2-trained")
	require.NoError(t, err)
	adapter := "'" + python(t) + "' transformers/plumbline_transformers.py --model '" + model + "'"
	holds := func(t *testing.T, c engine.Candidate) {
		info, err := c.Info(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"transformers", engine.LayersFloat32, engine.LogitsFloat32, "float32", "qwen2-trained"},
			[]string{info.Name, info.Layers, info.Logits, info.DType, info.Model})
		results, err := conformance.Smoke(t.Context(), c)
		require.NoError(t, err)
		for _, r := range results {
			assert.True(t, r.Holds, "%s: %s", r.Case, r.Why)
		}
	}
	t.Run("exec", func(t *testing.T) {
		c, err := engine.Exec(adapter+" --ids-file {ids_file} --text-file {text_file} --dir {dir}", engine.ProgramOptions{})
		require.NoError(t, err)
		holds(t, c)
	})
	t.Run("protocol", func(t *testing.T) {
		c, err := engine.Protocol(adapter+" --protocol", engine.ProgramOptions{})
		require.NoError(t, err)
		holds(t, c)
		require.NoError(t, c.Close())
	})
}
