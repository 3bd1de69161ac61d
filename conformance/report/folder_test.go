package report

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// folderFiles are the names in a folder, sorted.
func folderFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// reportFiles are those that a report folder has.
func reportFiles() []string {
	out := []string{JSONFile}
	for _, x := range renderings {
		out = append(out, x.file)
	}
	slices.Sort(out)
	return out
}

func TestWriteFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "report")
	want := samples()["fails"]
	require.NoError(t, WriteFolder(dir, want))
	require.Equal(t, reportFiles(), folderFiles(t, dir))
	got, err := ReadFile(filepath.Join(dir, JSONFile))
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, x := range renderings {
		b, err := os.ReadFile(filepath.Join(dir, x.file))
		require.NoError(t, err)
		require.Contains(t, string(b), "blocks.7.resid_post", x.file)
	}

	err = WriteFolder(dir, base())
	require.ErrorIs(t, err, ErrNotEmpty)
	require.ErrorContains(t, err, dir)
	got, err = ReadFile(filepath.Join(dir, JSONFile))
	require.NoError(t, err)
	require.Equal(t, conformance.Fails, got.Conclusion, "nothing was changed")

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, WriteFolder(file, want))
}

func TestOverwriteFolderKeepsWhatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, OverwriteFolder(dir, base()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600))
	require.NoError(t, OverwriteFolder(dir, samples()["fails"]))
	require.ElementsMatch(t, append(reportFiles(), "notes.txt"), folderFiles(t, dir))
	for _, x := range renderings {
		b, err := os.ReadFile(filepath.Join(dir, x.file))
		require.NoError(t, err)
		require.Contains(t, string(b), "blocks.7.resid_post", x.file)
	}
}

// filling is a disk that fills up while one file is written.
func filling(name string) func(string, dumpfmt.WriteOptions) (file, error) {
	return func(path string, o dumpfmt.WriteOptions) (file, error) {
		f, err := create(path, o)
		if err == nil && filepath.Base(path) == name {
			return &fillingFile{file: f, left: 50}, nil
		}
		return f, err
	}
}

type fillingFile struct {
	file
	left int
}

func (f *fillingFile) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, syscall.ENOSPC
	}
	return f.file.Write(p)
}

func (f *fillingFile) Commit() error { return syscall.ENOSPC }

// When a disk fills up, what was written before stays, the file is named, and nothing is
// half there.
func TestAFullDiskLeavesTheVerdict(t *testing.T) {
	for _, name := range reportFiles() {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "report")
			err := writeFolder(dir, samples()["fails"], dumpfmt.WriteOptions{}, filling(name))
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorContains(t, err, filepath.Join(dir, name))
			if name == JSONFile {
				require.Empty(t, folderFiles(t, dir), "without report.json there is no report")
				return
			}
			want := slices.DeleteFunc(reportFiles(), func(s string) bool { return s == name })
			require.Equal(t, want, folderFiles(t, dir), "the others are whole")
			got, err := ReadFile(filepath.Join(dir, JSONFile))
			require.NoError(t, err)
			require.Equal(t, conformance.Fails, got.Conclusion)
		})
	}
}

// An earlier, better report is nowhere left beside a new report.json.
func TestAFullDiskLeavesNoEarlierReport(t *testing.T) {
	for _, name := range reportFiles() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, OverwriteFolder(dir, base()))
			err := writeFolder(dir, samples()["fails"], dumpfmt.WriteOptions{Overwrite: true}, filling(name))
			require.ErrorIs(t, err, syscall.ENOSPC)
			verdicts := map[bool]int{}
			for _, f := range folderFiles(t, dir) {
				b, err := os.ReadFile(filepath.Join(dir, f))
				require.NoError(t, err)
				verdicts[strings.Contains(string(b), "blocks.7.resid_post")]++
			}
			if name == JSONFile {
				require.Equal(t, map[bool]int{false: len(reportFiles())}, verdicts, "all of the earlier one, none of the new one")
			} else {
				require.Equal(t, map[bool]int{true: len(reportFiles()) - 1}, verdicts)
			}
		})
	}
}

func TestAFolderThatCantBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := filepath.Join(t.TempDir(), "report")
	require.NoError(t, os.Mkdir(dir, 0o500))
	err := WriteFolder(dir, base())
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, JSONFile)
	require.NoError(t, os.Chmod(dir, 0o700))
	require.Empty(t, folderFiles(t, dir))
}

func TestNoFileForAFolder(t *testing.T) {
	refused := errors.New("refused")
	err := writeFolder(t.TempDir(), base(), dumpfmt.WriteOptions{}, func(string, dumpfmt.WriteOptions) (file, error) { return nil, refused })
	require.ErrorIs(t, err, refused)
}
