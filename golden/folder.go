package golden

import (
	"fmt"
	"os"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// OpenFolder opens a plain dump folder of a trusted float engine as goldens: a
// user's own recording, without a manifest. Its float layer dumps are what the
// reference is held to. It has no recorded precision floor (LayerFloor is nil)
// and nothing to verify it against; each case is checked for form here.
func OpenFolder(dir string) (*Set, error) {
	folder, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	m := &Manifest{Set: folder.Engine().Name, Precision: Precision{Cases: map[string]RowPrecision{}}}
	m.Goldens = FolderHashes{Folder: dir, Files: map[string]FileHash{}}
	for _, c := range folder.Cases() {
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("golden: %w", err)
		}
		if c.LayersPath == "" || folder.Engine().Layers != dumpfmt.LayersFloat32 {
			continue // nothing here that a float engine could be held to
		}
		data, err := os.ReadFile(c.LayersPath)
		if err != nil {
			return nil, fmt.Errorf("golden: %w", err)
		}
		m.Cases = append(m.Cases, c.Name)
		m.Precision.Cases[c.Name] = RowPrecision{}
		m.Goldens.Files[c.Name+".layers.bin"] = FileHash{Bytes: int64(len(data)), SHA256: hexSum(data)}
	}
	return &Set{Manifest: m, fsys: os.DirFS(dir), name: dir, plain: true}, nil
}

// Plain reports whether the set is a folder without a manifest.
func (s *Set) Plain() bool { return s.plain }
