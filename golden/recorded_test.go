package golden_test

import (
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

func trained(t *testing.T) (*golden.Set, golden.Inputs) {
	t.Helper()
	set, err := golden.Trained()
	require.NoError(t, err)
	return set, golden.Inputs{Checkpoint: fixtures.Model(), Prompts: fixtures.PromptsFile()}
}

func TestTheRecordedGoldensVerify(t *testing.T) {
	set, in := trained(t)
	assert.Empty(t, set.Verify(in))
	cases, err := fixtures.Prompts()
	require.NoError(t, err)
	assert.Len(t, set.Manifest.Cases, len(cases))
	for _, c := range cases {
		assert.True(t, set.Has(c.Name), c.Name)
		d, err := set.Layers(c.Name)
		require.NoError(t, err)
		assert.Len(t, set.LayerFloor(c.Name), d.Header().Rows, c.Name)
	}
}

// TestAnyFlippedBitIsNamed flips one bit of every golden and of every file of
// the checkpoint, at a place that changes from run to run.
func TestAnyFlippedBitIsNamed(t *testing.T) {
	set, in := trained(t)
	bitOf := func(size int64) int { return int(rand.Int64N(8 * size)) }
	for name, h := range set.Manifest.Goldens.Files {
		bit := bitOf(h.Bytes)
		damaged, err := set.Replaced(func(f fs.FS) (fs.FS, error) { return mutant.FlipBit(f, name, bit) })
		require.NoError(t, err)
		problems := damaged.Verify(in)
		require.Len(t, problems, 1, "%s bit %d", name, bit)
		assert.Equal(t, "golden/qwen2-trained/"+name, problems[0].File, "bit %d", bit)
	}
	for name, h := range set.Manifest.Checkpoint.Files {
		bit := bitOf(h.Bytes)
		model, err := mutant.FlipBit(in.Checkpoint, name, bit)
		require.NoError(t, err)
		problems := set.Verify(golden.Inputs{Checkpoint: model, Prompts: in.Prompts})
		require.Len(t, problems, 1, "%s bit %d", name, bit)
		assert.Equal(t, "fixtures/qwen2-trained/"+name, problems[0].File, "bit %d", bit)
	}
}

// TestAnyFlippedBitOfTheManifestIsNamed does so for the manifest and its hash.
func TestAnyFlippedBitOfTheManifestIsNamed(t *testing.T) {
	here := os.DirFS(".")
	for _, name := range []string{"qwen2-trained.manifest.json", "qwen2-trained.manifest.json.sha256"} {
		info, err := fs.Stat(here, name)
		require.NoError(t, err)
		for range 8 {
			bit := int(rand.Int64N(8 * info.Size()))
			damaged, err := mutant.FlipBit(here, name, bit)
			require.NoError(t, err)
			_, err = golden.Open(damaged, "qwen2-trained")
			require.Error(t, err, "%s bit %d", name, bit)
			assert.Contains(t, err.Error(), "qwen2-trained.manifest.json")
		}
	}
}

// TestTheHandWrittenPromptsAreThoseRecorded holds tools/goldens to the manifest.
func TestTheHandWrittenPromptsAreThoseRecorded(t *testing.T) {
	set, _ := trained(t)
	src := set.Manifest.Prompts.Source
	data, err := os.ReadFile("../" + src.Path)
	require.NoError(t, err)
	assert.Equal(t, src.SHA256, sum(data), src.Path)
	for path, want := range set.Manifest.Recorder.Sources {
		data, err := os.ReadFile("../" + path)
		require.NoError(t, err)
		assert.Equal(t, want, sum(data), "%s was changed since the goldens were recorded: make goldens ACCEPT=1", path)
	}
}

// TestThePinsAreThoseRecordedWith holds the recorder's pins to the manifest.
func TestThePinsAreThoseRecordedWith(t *testing.T) {
	set, _ := trained(t)
	data, err := os.ReadFile("../tools/goldens/pins.json")
	require.NoError(t, err)
	var pins golden.Reference
	require.NoError(t, json.Unmarshal(data, &pins))
	assert.Equal(t, set.Manifest.Reference, pins, "tools/goldens/pins.json")
}
