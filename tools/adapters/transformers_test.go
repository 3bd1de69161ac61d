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
func TestTransformersAdapter(t *testing.T) { unittests(t, "transformers") }

// TestAdaptersLeaveNoByteCode: a checkout stays as it is where a user runs an
// adapter out of it. What lies there from other runs is left alone.
func TestAdaptersLeaveNoByteCode(t *testing.T) {
	exe := python(t)
	require.NoError(t, os.Unsetenv("PYTHONDONTWRITEBYTECODE")) // python set it, and restores it
	for _, adapter := range []string{"transformers/plumbline_transformers.py", "llamacpp/plumbline_llamacpp.py"} {
		readSources(t, filepath.Dir(adapter))
		before := byteCode(t)
		out, err := exec.Command(exe, adapter, "--help").CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, before, byteCode(t), adapter)
	}
}

// TestTransformersAdapterServesTheFakes: the way between the adapter and the
// suite is sound, without torch, which the fakes don't need.
func TestTransformersAdapterServesTheFakes(t *testing.T) {
	readSources(t, "transformers")
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
		caps, err := c.Capabilities(t.Context())
		require.NoError(t, err)
		assert.Equal(t, conformance.StandardProbes(engine.Arch{Layers: 28}), caps.Probes, "what the gate asks for")
		require.NoError(t, c.Close())
	})
}
