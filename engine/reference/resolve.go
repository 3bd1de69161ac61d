package reference

import (
	"os"
	"path/filepath"
)

// Resolve returns the folder or file that Load reads for dir: the one snapshot of
// a hub cache folder, or dir itself. What else lies beside the weights is to be
// read from there. Several snapshots are a [*engine.ConfigError]; whether it holds
// a model is for Load to say.
func Resolve(dir string) (string, error) {
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return dir, nil
	}
	f, err := folder{fsys: os.DirFS(dir), dir: ".", shown: dir}.resolveSnapshot()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.FromSlash(f.dir)), nil
}
