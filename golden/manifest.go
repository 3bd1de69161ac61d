package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// ManifestSchema is the only manifest schema that is read.
const ManifestSchema = "plumbline-golden-manifest-v1"

// FileHash is what a manifest says of one file.
type FileHash struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // 64 lower-case hex digits
}

// PathHash is a FileHash with the file's path from the repository's root.
type PathHash struct {
	Path string `json:"path"`
	FileHash
}

// FolderHashes names every file of a folder, and no more.
type FolderHashes struct {
	Folder string              `json:"folder"`
	Files  map[string]FileHash `json:"files"`
}

// Reference is the library that recorded a golden.
type Reference struct {
	Library string `json:"library"`
	// Versions of the library and of what it computes with.
	Versions map[string]string `json:"versions"`
	// Modules are the library's own source files that the forward ran through.
	Modules map[string]string `json:"modules"`
}

// Arithmetic is what the bytes of a golden depend on.
type Arithmetic struct {
	Attention     string            `json:"attention"`
	CPUCapability string            `json:"cpu_capability"`
	Device        string            `json:"device"`
	DType         string            `json:"dtype"`
	Threads       int               `json:"threads"`
	Environment   map[string]string `json:"environment"`
	// OneDNN says "off" or "on" where the recorder decides it, Experts how the
	// reference runs experts, where it has some.
	OneDNN  string `json:"onednn,omitempty"`
	Experts string `json:"experts,omitempty"`
	// Changed says what the recorder has the reference compute otherwise than it
	// does by itself.
	Changed []string `json:"changed,omitempty"`
}

// Recorder is what recorded a golden: the command, and its own modules' hashes.
type Recorder struct {
	Command string            `json:"command"`
	Sources map[string]string `json:"sources"`
}

// Precision is the floor of a golden's own values: relative L2 of its float32
// rows from a float64 run by an independent implementation.
type Precision struct {
	Measure string                  `json:"measure"`
	Cases   map[string]RowPrecision `json:"cases"`
}

// RowPrecision has one figure per dump row.
type RowPrecision struct {
	Layers []float64 `json:"layers"`
	Logits []float64 `json:"logits"`
}

// Manifest is the provenance of a golden set.
type Manifest struct {
	Schema     string       `json:"schema"`
	Set        string       `json:"set"`
	Goldens    FolderHashes `json:"goldens"`
	Checkpoint FolderHashes `json:"checkpoint"`
	Prompts    struct {
		// Source was written by hand, Written by the recorder from it.
		Source  PathHash `json:"source"`
		Written PathHash `json:"written"`
	} `json:"prompts"`
	Cases      []string   `json:"cases"`
	Reference  Reference  `json:"reference"`
	Arithmetic Arithmetic `json:"arithmetic"`
	Recorder   Recorder   `json:"recorder"`
	Passes     int        `json:"passes"`
	MaxNew     int        `json:"max_new"`
	Stop       []int      `json:"stop"`
	Precision  Precision  `json:"precision"`
}

// ManifestError says that a manifest can't be trusted.
type ManifestError struct {
	File, What, Got, Want string
}

func (e *ManifestError) Error() string {
	return fmt.Sprintf("golden: manifest %s: %s: got %s, want %s", e.File, e.What, e.Got, e.Want)
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseManifest reads a manifest; file is its name in errors. Unknown keys,
// another schema, another reference than transformers, a single pass and
// malformed hashes are refused.
func ParseManifest(file string, data []byte) (*Manifest, error) {
	var m Manifest
	if err := decodeManifest(file, ManifestSchema, data, &m); err != nil {
		return nil, err
	}
	if m.Schema != ManifestSchema {
		return nil, &ManifestError{file, "schema", m.Schema, ManifestSchema}
	}
	err := provenance{m.Reference, m.Arithmetic, m.Recorder, m.Passes, m.Cases}.check(file, "float32", m.Goldens.Files, m.Checkpoint.Files,
		map[string]FileHash{m.Prompts.Source.Path: m.Prompts.Source.FileHash, m.Prompts.Written.Path: m.Prompts.Written.FileHash})
	if err != nil {
		return nil, err
	}
	for name, p := range m.Precision.Cases {
		for _, x := range slices.Concat(p.Layers, p.Logits) {
			if !(x >= 0 && x <= maxFloor) {
				return nil, &ManifestError{file, "precision of case " + name, fmt.Sprint(x), fmt.Sprintf("0 to %g", maxFloor)}
			}
		}
	}
	return &m, nil
}

// decodeManifest reads a manifest without unknown keys or trailing bytes.
func decodeManifest(file, schema string, data []byte, m any) error {
	if dumpfmt.HasBOM(data) {
		return &ManifestError{file, "JSON", "a byte order mark", "schema " + schema}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return &ManifestError{file, "JSON", err.Error(), "schema " + schema}
	}
	if _, err := dec.Token(); err != io.EOF {
		return &ManifestError{file, "bytes after the object", "some", "none"}
	}
	return nil
}

// provenance is what all manifests say alike.
type provenance struct {
	reference  Reference
	arithmetic Arithmetic
	recorder   Recorder
	passes     int
	cases      []string
}

// check refuses what says too little, or another origin than transformers in
// dtype.
func (p provenance) check(file, dtype string, files ...map[string]FileHash) error {
	switch {
	case p.reference.Library != "transformers":
		// A golden of an engine's own making would hold that engine to itself.
		return &ManifestError{file, "reference.library", p.reference.Library, "transformers"}
	case len(p.reference.Modules) == 0:
		return &ManifestError{file, "reference.modules", "none", "the reference's own source modules"}
	case p.passes < 2:
		return &ManifestError{file, "passes", fmt.Sprint(p.passes), "at least 2, byte-identical"}
	case p.arithmetic.DType != dtype || p.arithmetic.Device != "cpu":
		return &ManifestError{file, "arithmetic", p.arithmetic.DType + " on " + p.arithmetic.Device, dtype + " on cpu"}
	case len(p.cases) == 0:
		return &ManifestError{file, "cases", "none", "at least one"}
	}
	for _, hashes := range files {
		for name, h := range hashes {
			if !hexDigest.MatchString(h.SHA256) || h.Bytes < 0 {
				return &ManifestError{file, "hash of " + name, fmt.Sprintf("%d bytes, sha256 %q", h.Bytes, h.SHA256), "a length and 64 hex digits"}
			}
		}
	}
	for _, hashes := range []map[string]string{p.reference.Modules, p.recorder.Sources} {
		for name, h := range hashes {
			if !hexDigest.MatchString(h) {
				return &ManifestError{file, "hash of " + name, fmt.Sprintf("%q", h), "64 hex digits"}
			}
		}
	}
	return nil
}

// maxFloor is the largest error from float64 that a float32 recording may claim
// for itself: bounds are multiples of what it claims. The recorded ones stay
// below 1.3e-6.
const maxFloor = 1e-5

// maxBFloat16Floor is the same for bfloat16, whose steps are 2^16 times as wide.
// The recorded ones stay below 0.15.
const maxBFloat16Floor = 0.2
