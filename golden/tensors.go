package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TensorSchema is the manifest schema of a set of tensors.
const TensorSchema = "plumbline-golden-tensors-v1"

// TensorManifest is the provenance of a set of tensors.
type TensorManifest struct {
	Schema     string       `json:"schema"`
	Set        string       `json:"set"`
	Goldens    FolderHashes `json:"goldens"`
	Checkpoint FolderHashes `json:"checkpoint"`
	Cases      []string     `json:"cases"`
	Reference  Reference    `json:"reference"`
	Arithmetic Arithmetic   `json:"arithmetic"`
	Recorder   Recorder     `json:"recorder"`
	Passes     int          `json:"passes"`
	Precision  struct {
		Measure string `json:"measure"`
		// Cases has, per case and tensor, the error of its worst row.
		Cases map[string]map[string]float64 `json:"cases"`
	} `json:"precision"`
}

// TensorSet is a golden set of places inside a model at some positions: per case
// NAME.json, which says which, and NAME.safetensors.
type TensorSet struct {
	Manifest *TensorManifest
	fsys     fs.FS
}

// TensorCase is one prompt of a TensorSet.
type TensorCase struct {
	TokenIDs []int `json:"token_ids"`
	// ForcedIDs are the tokens that the run went on with; its last was not run.
	// OutputIDs are those that the reference would have chosen in their place.
	ForcedIDs []int `json:"forced_ids"`
	OutputIDs []int `json:"output_ids"`
	// Positions are those of the tensors' rows, in the prompt followed by the
	// forced tokens. "logits" has one row per forced token instead, and routes
	// (blocks.N.router_logits, route_ids, route_weights) have one per position run:
	// what another run has to be forced to.
	Positions []int `json:"positions"`
	// Start is how many masked pads lay before the prompt, and the position of its
	// first token; Batch names the cases that ran together.
	Start int    `json:"start,omitempty"`
	Batch string `json:"batch,omitempty"`
	Why   string `json:"why"`
	// Tensors are [rows][width] by the name of a probe.
	Tensors map[string][][]float32 `json:"-"`
}

// OpenTensors opens the float32 set called name in fsys, as [Open] does a set of
// dumps.
func OpenTensors(fsys fs.FS, name string) (*TensorSet, error) {
	return openTensors(fsys, name, "float32", maxFloor)
}

// OpenBFloat16Tensors opens a set that was computed in bfloat16 and is no golden
// of float32: its tensors are float32 copies.
func OpenBFloat16Tensors(fsys fs.FS, name string) (*TensorSet, error) {
	return openTensors(fsys, name, "bfloat16", maxBFloat16Floor)
}

func openTensors(fsys fs.FS, name, dtype string, limit float64) (*TensorSet, error) {
	file := name + ".manifest.json"
	data, err := readManifest(fsys, file)
	if err != nil {
		return nil, err
	}
	var m TensorManifest
	if err := decodeManifest(file, TensorSchema, data, &m); err != nil {
		return nil, err
	}
	if m.Schema != TensorSchema || m.Set != name {
		return nil, &ManifestError{file, "schema and set", m.Schema + " " + m.Set, TensorSchema + " " + name}
	}
	if err := (provenance{m.Reference, m.Arithmetic, m.Recorder, m.Passes, m.Cases}).check(file, dtype, m.Goldens.Files, m.Checkpoint.Files); err != nil {
		return nil, err
	}
	for c, tensors := range m.Precision.Cases {
		for tensor, x := range tensors {
			if !(x >= 0 && x <= limit) {
				return nil, &ManifestError{file, "precision of case " + c, fmt.Sprintf("%g for %s", x, tensor), fmt.Sprintf("0 to %g", limit)}
			}
		}
	}
	dumps, err := fs.Sub(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return &TensorSet{Manifest: &m, fsys: dumps}, nil
}

// Verify holds every golden and the checkpoint to the manifest, orphans and
// missing files included, and reads each case.
func (s *TensorSet) Verify(checkpoint fs.FS) []Problem {
	out := folder(s.fsys, s.Manifest.Goldens)
	out = append(out, folder(checkpoint, s.Manifest.Checkpoint)...)
	var want []string
	for _, c := range s.Manifest.Cases {
		want = append(want, c+".json", c+".safetensors")
	}
	for _, name := range sortedKeys(s.Manifest.Goldens.Files) {
		if !slices.Contains(want, name) {
			out = append(out, Problem{s.Manifest.Goldens.Folder + "/" + name, "goldens.files", "no case's file", "files of the manifest's cases only"})
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, name := range s.Manifest.Cases {
		path := s.Manifest.Goldens.Folder + "/" + name
		c, err := s.Case(name)
		if err != nil {
			out = append(out, Problem{path, "case", err.Error(), "a readable one"})
			continue
		}
		floors := s.Manifest.Precision.Cases[name]
		for _, tensor := range sortedKeys(c.Tensors) {
			if _, ok := floors[tensor]; !ok {
				out = append(out, Problem{path, "precision of " + tensor, "none", "its figure in the manifest"})
			}
		}
		if len(floors) > len(c.Tensors) {
			out = append(out, Problem{path, "precision", fmt.Sprintf("figures of %d tensors", len(floors)), fmt.Sprintf("those of its %d", len(c.Tensors))})
		}
	}
	return out
}

// Replaced returns the set with its folder changed and its manifest as it was.
func (s *TensorSet) Replaced(change func(fs.FS) (fs.FS, error)) (*TensorSet, error) {
	fsys, err := change(s.fsys)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	return &TensorSet{Manifest: s.Manifest, fsys: fsys}, nil
}

// Case reads a case, held to its hashes.
func (s *TensorSet) Case(name string) (TensorCase, error) {
	var c TensorCase
	data, err := s.read(name + ".json")
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("golden: %s.json: %w", name, err)
	}
	if data, err = s.read(name + ".safetensors"); err != nil {
		return c, err
	}
	file, err := dumpfmt.NewSafetensors(bytes.NewReader(data), int64(len(data)), name+".safetensors")
	if err != nil {
		return c, fmt.Errorf("golden: %w", err)
	}
	if len(c.ForcedIDs) != len(c.OutputIDs) {
		return c, fmt.Errorf("golden: %s.json: got %d forced tokens, want one per output token, %d", name, len(c.ForcedIDs), len(c.OutputIDs))
	}
	c.Tensors = map[string][][]float32{}
	for _, t := range file.Tensors() {
		rows := len(c.Positions)
		switch {
		case t.Name == "logits":
			rows = len(c.OutputIDs)
		case routed(t.Name):
			rows = len(c.TokenIDs) + len(c.ForcedIDs) - 1
		}
		if len(t.Shape) != 2 || t.Shape[0] != rows || t.Shape[1] < 1 {
			return c, fmt.Errorf("golden: %s: tensor %s: got shape %v, want %d rows", file.File(), t.Name, t.Shape, rows)
		}
		flat, err := file.Float32s(t.Name)
		if err != nil {
			return c, fmt.Errorf("golden: %w", err)
		}
		all := make([]float32, rows*t.Shape[1])
		if _, err := flat.ReadValues(all, 0); err != nil {
			return c, fmt.Errorf("golden: %w", err)
		}
		c.Tensors[t.Name] = slices.Collect(slices.Chunk(all, t.Shape[1]))
	}
	return c, nil
}

// routed reports whether a tensor is a layer's router's.
func routed(tensor string) bool {
	layer, part, ok := strings.Cut(strings.TrimPrefix(tensor, "blocks."), ".")
	return ok && layer != tensor && (part == "router_logits" || part == "route_ids" || part == "route_weights")
}

func (s *TensorSet) read(file string) ([]byte, error) {
	return readHeld(s.fsys, s.Manifest.Goldens, file)
}

// readHeld reads a file of a folder and holds it to its hash.
func readHeld(fsys fs.FS, want FolderHashes, file string) ([]byte, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("golden: %w", err)
	}
	if p := compare(want.Folder+"/"+file, data, want.Files[file]); p != nil {
		return nil, p
	}
	return data, nil
}
