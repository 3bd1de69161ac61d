package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// Set is a golden set: recorded dumps with their manifest.
type Set struct {
	Manifest *Manifest
	fsys     fs.FS // the dump folder
	name     string
	plain    bool // a folder without a manifest
	// recording is what the manifest of a user's own recording says; nil for others.
	recording *Recording
}

// Open opens the set called name in fsys, which holds NAME.manifest.json, its
// hash in NAME.manifest.json.sha256, and the dump folder NAME. The manifest is
// held to its hash; the dumps are not read (see Verify). It is that of a set of this
// module's, or of a user's own recording (see Recording).
func Open(fsys fs.FS, name string) (*Set, error) {
	file := name + ".manifest.json"
	data, err := readManifest(fsys, file)
	if err != nil {
		return nil, err
	}
	if isRecording(data) {
		return openRecording(fsys, name, data)
	}
	m, err := ParseManifest(file, data)
	if err != nil {
		return nil, err
	}
	if m.Set != name {
		return nil, &ManifestError{file, "set", m.Set, name}
	}
	dumps, err := fs.Sub(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return &Set{Manifest: m, fsys: dumps, name: name}, nil
}

// openRecording is Open of a user's own recording.
func openRecording(fsys fs.FS, name string, data []byte) (*Set, error) {
	file := name + ".manifest.json"
	r, err := ParseRecording(file, data)
	if err != nil {
		return nil, err
	}
	if r.Set != name {
		return nil, &ManifestError{file, "set", r.Set, name}
	}
	dumps, err := fs.Sub(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return NewRecording(dumps, r)
}

// readManifest reads a manifest and holds it to the hash beside it.
func readManifest(fsys fs.FS, file string) ([]byte, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	pin, err := fs.ReadFile(fsys, file+".sha256")
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	// The form of sha256sum: digest, two spaces, name, newline.
	if got, want := hexSum(data)+"  "+file+"\n", string(pin); got != want {
		return nil, &ManifestError{file, "sha256", strings.TrimSpace(got), strings.TrimSpace(want) + " (" + file + ".sha256)"}
	}
	return data, nil
}

// Replaced returns the set with its dump folder changed and its manifest as it
// was: what a damaged or edited golden looks like.
func (s *Set) Replaced(change func(fs.FS) (fs.FS, error)) (*Set, error) {
	fsys, err := change(s.fsys)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return &Set{Manifest: s.Manifest, fsys: fsys, name: s.name, plain: s.plain, recording: s.recording}, nil
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Name returns the set's name.
func (s *Set) Name() string { return s.name }

// Has reports whether the set has the case.
func (s *Set) Has(name string) bool {
	_, ok := s.Manifest.Precision.Cases[name]
	return ok
}

// Layers opens a case's layer dump, held to its hash.
func (s *Set) Layers(name string) (*dumpfmt.FloatLayers, error) {
	file := name + ".layers.bin"
	b, err := s.read(file)
	if err != nil {
		return nil, err
	}
	return dumpfmt.NewFloatLayers(bytes.NewReader(b), int64(len(b)), s.name+"/"+file)
}

// LayerFloor returns the precision floor of each row of a case's layer dump:
// relative L2 of the recorded row from an independent float64 run. It is nil for
// a plain folder, which recorded none.
func (s *Set) LayerFloor(name string) []float64 { return s.Manifest.Precision.Cases[name].Layers }

// read reads a file of the folder and holds it to its hash.
func (s *Set) read(file string) ([]byte, error) {
	want, ok := s.Manifest.Goldens.Files[file]
	if !ok {
		return nil, &ManifestError{s.name + ".manifest.json", "goldens.files", "no " + file, "its hash"}
	}
	b, err := fs.ReadFile(s.fsys, file)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	if p := compare(s.name+"/"+file, b, want); p != nil {
		return nil, p
	}
	return b, nil
}
