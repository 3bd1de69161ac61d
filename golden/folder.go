package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// OpenFolder opens a dump folder of a trusted float engine as goldens. With a
// manifest beside it (DIR.manifest.json) it is Open, and the dumps are held to
// their hashes at once. Without one it is a user's plain recording: its float
// dumps are what the reference is held to, there is no recorded precision floor
// (LayerFloor and LogitFloor are nil) and nothing to verify it against. Each case is
// checked for form.
func OpenFolder(dir string) (*Set, error) {
	parent, base := filepath.Split(filepath.Clean(dir))
	if parent == "" {
		parent = "."
	}
	beside := os.DirFS(parent)
	if _, err := fs.Stat(beside, base+".manifest.json"); err == nil {
		set, err := Open(beside, base)
		if err != nil {
			return nil, err
		}
		problems := folder(set.fsys, set.Manifest.Goldens)
		if set.recording != nil {
			problems = set.verifyDumps()
		}
		if len(problems) > 0 {
			return nil, &problems[0]
		}
		return set, nil
	}
	return openPlain(dir)
}

func openPlain(dir string) (*Set, error) {
	dumps, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	m := &Manifest{Set: dumps.Engine().Name, Precision: Precision{Cases: map[string]RowPrecision{}}}
	m.Goldens = FolderHashes{Folder: dir, Files: map[string]FileHash{}}
	for _, c := range dumps.Cases() {
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("golden: %w", err)
		}
		for _, d := range []struct {
			path, suffix string
			float        bool
		}{
			{c.LayersPath, ".layers.bin", dumps.Engine().Layers == dumpfmt.LayersFloat32},
			{c.LogitsPath, ".logits.bin", dumps.Engine().Logits == dumpfmt.LogitsFloat32},
		} {
			if d.path == "" || !d.float {
				continue // nothing here that a float engine could be held to
			}
			hash, err := hashFile(d.path)
			if err != nil {
				return nil, fmt.Errorf("golden: %w", err)
			}
			m.Goldens.Files[c.Name+d.suffix] = hash
			if _, listed := m.Precision.Cases[c.Name]; !listed {
				m.Cases = append(m.Cases, c.Name)
				m.Precision.Cases[c.Name] = RowPrecision{}
			}
		}
	}
	return &Set{Manifest: m, fsys: os.DirFS(dir), name: dir, plain: true}, nil
}

// hashFile hashes a file without holding it.
func hashFile(path string) (FileHash, error) {
	f, err := os.Open(path)
	if err != nil {
		return FileHash{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return FileHash{Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// Engine is the name of the engine that recorded the set.
func (s *Set) Engine() string {
	switch {
	case s.plain:
		return s.Manifest.Set
	case s.recording != nil:
		return s.recording.Engine.Name
	}
	return s.Manifest.Reference.Library
}

// Plain reports whether the set is a folder without a manifest.
func (s *Set) Plain() bool { return s.plain }
