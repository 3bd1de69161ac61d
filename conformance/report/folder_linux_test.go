package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// limitedFolder makes this test binary write a report into that folder, in a process
// that may not write files of more than a few bytes.
const limitedFolder = "PLUMBLINE_TEST_LIMITED_FOLDER"

func TestWriteFolderWithinALimit(t *testing.T) {
	dir := os.Getenv(limitedFolder)
	if dir == "" {
		t.Skip("started by TestTheSystemRefusesToWrite")
	}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 512, Max: 512}))
	err := WriteFolder(dir, samples()["fails"])
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorContains(t, err, JSONFile)
}

func TestTheSystemRefusesToWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriteFolderWithinALimit$", "-test.v")
	cmd.Env = append(os.Environ(), limitedFolder+"="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.True(t, strings.Contains(string(out), "--- PASS"), string(out))
	require.Empty(t, folderFiles(t, dir), "nothing half written")
}
