package golden

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// RecordingSchema is the schema of the manifest of a user's own recording.
const RecordingSchema = "plumbline-recording-v1"

// Recording is the provenance of goldens that were recorded from a user's own
// checkpoint: by a trusted float engine, whose folder the reference was held to, or by
// the reference itself, whose recording shows change and not truth.
type Recording struct {
	Schema string `json:"schema"`
	// Set is the name of the folder.
	Set string `json:"set"`
	// Engine is what computed the values.
	Engine RecordedEngine `json:"engine"`
	// Reference is the float engine that an imported recording was held to, nil where
	// Engine is that engine itself.
	Reference *RecordedEngine `json:"reference,omitempty"`
	Tool      RecordingTool   `json:"tool"`
	Goldens   FolderHashes    `json:"goldens"`
	// Checkpoint is the model's files: see CheckpointFiles.
	Checkpoint FolderHashes `json:"checkpoint"`
	// Prompts is the list that was recorded, nil for an import.
	Prompts *PathHash `json:"prompts,omitempty"`
	Cases   []string  `json:"cases"`
	// MaxNew is the most tokens that were decoded, 0 where it isn't known.
	MaxNew    int       `json:"max_new,omitempty"`
	Precision Precision `json:"precision"`
}

// RecordedEngine is an engine with its arithmetic, as its engine.json says.
type RecordedEngine struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	DType   string `json:"dtype"`
}

// RecordingTool is the program that wrote the manifest.
type RecordingTool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// maxRecordedFloor is the largest error from float64 that a user's float32 recording
// may claim for itself: bounds are multiples of it.
var maxRecordedFloor = ByHand(1e-4, "float32 engines of large models were seen 1e-6 to 1e-5 from float64; more is a fault, or no float32", "2027-12-31")

// ParseRecording reads the manifest of a recording; file is its name in errors.
// Unknown keys, another schema, malformed hashes, a case without its files or its
// precision are refused.
func ParseRecording(file string, data []byte) (*Recording, error) {
	var r Recording
	if err := decodeManifest(file, RecordingSchema, data, &r); err != nil {
		return nil, err
	}
	return &r, r.check(file)
}

func (r *Recording) check(file string) error {
	bad := func(what, got, want string) error { return &ManifestError{file, what, got, want} }
	switch {
	case r.Schema != RecordingSchema:
		return bad("schema", r.Schema, RecordingSchema)
	case r.Engine.Name == "":
		return bad("engine.name", "none", "what computed the values")
	case r.Engine.DType != "float32":
		return bad("engine.dtype", fmt.Sprintf("%q", r.Engine.DType), "float32")
	case len(r.Cases) == 0:
		return bad("cases", "none", "at least one")
	case len(r.Checkpoint.Files) == 0:
		return bad("checkpoint.files", "none", "the model's files")
	case len(r.Precision.Cases) != len(r.Cases):
		return bad("precision.cases", fmt.Sprint(len(r.Precision.Cases)), fmt.Sprintf("%d, one per case", len(r.Cases)))
	}
	hashes := []map[string]FileHash{r.Goldens.Files, r.Checkpoint.Files}
	if r.Prompts != nil {
		hashes = append(hashes, map[string]FileHash{r.Prompts.Path: r.Prompts.FileHash})
	}
	for _, files := range hashes {
		for name, h := range files {
			if !hexDigest.MatchString(h.SHA256) || h.Bytes < 0 || strings.ContainsAny(name, "/\\") {
				return bad("hash of "+name, fmt.Sprintf("%d bytes, sha256 %q", h.Bytes, h.SHA256), "a base name, a length and 64 hex digits")
			}
		}
	}
	known := map[string]bool{"engine.json": true}
	for i, name := range r.Cases {
		if slices.Contains(r.Cases[:i], name) {
			return bad("cases", name+" twice", "each once")
		}
		p, ok := r.Precision.Cases[name]
		if !ok || len(p.Layers) == 0 {
			return bad("precision of case "+name, "none", "a figure per row")
		}
		for _, x := range slices.Concat(p.Layers, p.Logits) {
			if !(x >= 0 && maxRecordedFloor.Holds(x)) {
				return bad("precision of case "+name, fmt.Sprint(x), fmt.Sprintf("0 to %g", maxRecordedFloor.Value))
			}
		}
		for _, suffix := range []string{".json", ".layers.bin", ".logits.bin"} {
			known[name+suffix] = true
			_, has := r.Goldens.Files[name+suffix]
			switch {
			case !has && suffix != ".logits.bin":
				return bad("goldens.files", "no "+name+suffix, "its hash")
			case suffix == ".logits.bin" && has != (len(p.Logits) > 0):
				return bad("precision of case "+name, fmt.Sprintf("%d rows of logits", len(p.Logits)), "some just where "+name+suffix+" is")
			}
		}
	}
	for _, name := range sortedKeys(r.Goldens.Files) {
		if !known[name] {
			return bad("goldens.files", name, "files of the cases")
		}
	}
	return nil
}

// NewRecording is the set of a dump folder with a manifest that may not have been
// written yet. The manifest is checked for form; see Verify for the rest.
func NewRecording(folder fs.FS, r *Recording) (*Set, error) {
	if err := r.check(r.Set + ".manifest.json"); err != nil {
		return nil, err
	}
	return &Set{name: r.Set, fsys: folder, recording: r, Manifest: &Manifest{
		Schema: r.Schema, Set: r.Set, Goldens: r.Goldens, Checkpoint: r.Checkpoint, Cases: r.Cases, MaxNew: r.MaxNew, Precision: r.Precision,
	}}, nil
}

// Recording is the provenance of a user's own recording, nil for every other set.
func (s *Set) Recording() *Recording { return s.recording }

// isRecording looks at a manifest's schema alone, whatever its version.
func isRecording(data []byte) bool {
	var head struct{ Schema string }
	return json.Unmarshal(data, &head) == nil && strings.HasPrefix(head.Schema, "plumbline-recording-")
}

// CheckpointFiles lists what a recording holds a checkpoint to, in the order of their
// names: the files of a Hugging Face folder that say what the model computes and what
// its tokens are. Of a folder with none of them, the GGUF files.
func CheckpointFiles(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("golden: checkpoint: %w", err)
	}
	var files, gguf []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case e.IsDir():
		case strings.HasSuffix(name, ".gguf"):
			gguf = append(gguf, name)
		case strings.HasSuffix(name, ".safetensors"), strings.HasSuffix(name, ".safetensors.index.json"),
			slices.Contains([]string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json"}, name):
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		files = gguf
	}
	return files, nil
}

// HashFiles hashes files of a folder, called name in the manifest, without holding them.
func HashFiles(fsys fs.FS, name string, files []string) (FolderHashes, error) {
	out := FolderHashes{Folder: name, Files: map[string]FileHash{}}
	for _, f := range files {
		h, err := hashIn(fsys, f)
		if err != nil {
			return out, fmt.Errorf("golden: %w", err)
		}
		out.Files[f] = h
	}
	return out, nil
}
