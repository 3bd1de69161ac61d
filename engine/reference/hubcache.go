package reference

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

const configName = "config.json"

// resolveSnapshot follows the layout of the Hugging Face hub's cache: a folder
// without a config.json and with snapshots/REVISION/ stands for its one
// revision. With several, which one is meant is for the caller to say.
func (f folder) resolveSnapshot() (folder, error) {
	if _, err := fs.Stat(f.fsys, f.path(configName)); err == nil {
		return f, nil
	}
	entries, err := fs.ReadDir(f.fsys, f.path("snapshots"))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("reference: %s: %w", f.show("snapshots"), err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) != 1 {
		got := fmt.Sprintf("%d", len(names))
		if len(names) > 1 {
			got += " (" + strings.Join(names, ", ") + ")"
		}
		return f, &engine.ConfigError{File: f.show("snapshots"), What: "snapshots", Got: got, Want: "exactly one; else name the snapshot's folder"}
	}
	f.dir, f.shown = f.path("snapshots/"+names[0]), f.show("snapshots/"+names[0])
	return f, nil
}
