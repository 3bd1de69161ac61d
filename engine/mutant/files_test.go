package mutant_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine/mutant"
)

func TestFileMutantsChangeOneThing(t *testing.T) {
	clean := fstest.MapFS{"a.bin": {Data: []byte{1, 2}}, "d/b.bin": {Data: []byte{3}}}
	read := func(fsys fs.FS, name string) []byte {
		b, err := fs.ReadFile(fsys, name)
		require.NoError(t, err)
		return b
	}
	flipped, err := mutant.FlipBit(clean, "a.bin", 9)
	require.NoError(t, err)
	assert.Equal(t, []byte{1, 0}, read(flipped, "a.bin"))
	assert.Equal(t, []byte{3}, read(flipped, "d/b.bin"))
	assert.Equal(t, []byte{1, 2}, read(clean, "a.bin"), "the clean folder stays")

	gone, err := mutant.WithoutFile(clean, "d/b.bin")
	require.NoError(t, err)
	_, err = fs.Stat(gone, "d/b.bin")
	require.ErrorIs(t, err, fs.ErrNotExist)

	more, err := mutant.WithFile(clean, "c.bin", []byte{9})
	require.NoError(t, err)
	assert.Equal(t, []byte{9}, read(more, "c.bin"))

	for _, bad := range []func() (fs.FS, error){
		func() (fs.FS, error) { return mutant.FlipBit(clean, "a.bin", 16) },
		func() (fs.FS, error) { return mutant.FlipBit(clean, "x.bin", 0) },
		func() (fs.FS, error) { return mutant.WithoutFile(clean, "x.bin") },
		func() (fs.FS, error) { return mutant.WithFile(clean, "a.bin", nil) },
	} {
		_, err := bad()
		require.Error(t, err)
	}
}
