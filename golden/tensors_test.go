package golden_test

import (
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

func TestTheRecordedTensorsVerify(t *testing.T) {
	set, err := golden.Gemma4()
	require.NoError(t, err)
	assert.Empty(t, set.Verify(fixtures.Gemma4Model()))
	for _, name := range set.Manifest.Cases {
		c, err := set.Case(name)
		require.NoError(t, err)
		assert.Len(t, c.Tensors, 1+30*5+1)
		assert.Len(t, c.Tensors["logits"], len(c.OutputIDs))
		last := len(c.TokenIDs) + len(c.ForcedIDs) - 2
		for tensor, rows := range c.Tensors {
			// What it says of its own precision: no float32 recording is exact, but
			// for the embedding's, which is one product.
			floor, ok := set.Manifest.Precision.Cases[name][tensor]
			assert.True(t, ok && floor > 0 && floor < 1e-5, "%s %s: %v", name, tensor, floor)
			if tensor != "logits" {
				assert.Len(t, rows, len(c.Positions), tensor)
			}
		}
		assert.LessOrEqual(t, c.Positions[len(c.Positions)-1], last)
	}
}

func TestAnyFlippedBitOfTheTensorsIsNamed(t *testing.T) {
	set, err := golden.Gemma4()
	require.NoError(t, err)
	for name, h := range set.Manifest.Goldens.Files {
		bit := int(rand.Int64N(8 * h.Bytes))
		damaged, err := set.Replaced(func(f fs.FS) (fs.FS, error) { return mutant.FlipBit(f, name, bit) })
		require.NoError(t, err)
		problems := damaged.Verify(fixtures.Gemma4Model())
		require.Len(t, problems, 1, "%s bit %d", name, bit)
		assert.Equal(t, "golden/gemma4-window/"+name, problems[0].File)
		base, _, _ := strings.Cut(name, ".")
		_, err = damaged.Case(base)
		require.Error(t, err)
	}
	for name, h := range set.Manifest.Checkpoint.Files {
		model, err := mutant.FlipBit(fixtures.Gemma4Model(), name, int(rand.Int64N(8*h.Bytes)))
		require.NoError(t, err)
		problems := set.Verify(model)
		require.Len(t, problems, 1)
		assert.Equal(t, "fixtures/gemma4-window/"+name, problems[0].File)
	}
}

func TestTensorManifestsThatSayTooLittleAreRefused(t *testing.T) {
	read := func(name string) string {
		data, err := golden.RecordedTensors().ReadFile(name)
		require.NoError(t, err)
		return string(data)
	}
	whole := read("gemma4-window.manifest.json")
	for _, c := range []struct{ name, old, new, want string }{
		{"schema", golden.TensorSchema, golden.ManifestSchema, "schema and set"},
		{"library", `"library": "transformers"`, `"library": "plumbline"`, "reference.library"},
		{"one pass", `"passes": 2`, `"passes": 1`, "passes"},
		{"unknown key", `"passes": 2`, `"passes": 2, "more": 1`, "JSON"},
		{"dtype", `"dtype": "float32"`, `"dtype": "bfloat16"`, "arithmetic"},
		{"set", `"set": "gemma4-window"`, `"set": "other"`, "schema and set"},
	} {
		changed := strings.Replace(whole, c.old, c.new, 1)
		require.NotEqual(t, whole, changed, c.name)
		fsys := fstest.MapFS{
			"gemma4-window.manifest.json":        {Data: []byte(changed)},
			"gemma4-window.manifest.json.sha256": {Data: []byte(golden.HexSum([]byte(changed)) + "  gemma4-window.manifest.json\n")},
		}
		_, err := golden.OpenTensors(fsys, "gemma4-window")
		var bad *golden.ManifestError
		require.ErrorAs(t, err, &bad, c.name)
		assert.Equal(t, c.want, bad.What, c.name)
	}
	fsys := fstest.MapFS{
		"gemma4-window.manifest.json":        {Data: []byte(whole + " ")},
		"gemma4-window.manifest.json.sha256": {Data: []byte(read("gemma4-window.manifest.json.sha256"))},
	}
	_, err := golden.OpenTensors(fsys, "gemma4-window")
	require.ErrorContains(t, err, "sha256")
}
