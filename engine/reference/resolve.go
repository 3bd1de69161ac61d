package reference

import (
	"os"
	"path/filepath"
)

// Resolve returns the folder that Load reads for dir: the one snapshot of a hub
// cache folder, or dir itself. What else lies beside the weights, a tokenizer for
// one, is to be read from there. Several snapshots are a [*engine.ConfigError];
// whether the folder holds a model is for Load to say.
func Resolve(dir string) (string, error) {
	f, err := folder{fsys: os.DirFS(dir), dir: ".", shown: dir}.resolveSnapshot()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.FromSlash(f.dir)), nil
}
