package dumpfmt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// FolderWriter writes a dump folder.
type FolderWriter struct {
	dir    string
	engine EngineFile
	o      WriteOptions
	goos   string // whose names of files count

	mu    sync.Mutex
	begun map[string]string // names of cases, by NameKey
}

// CreateFolder makes the folder dir where it doesn't exist and writes its
// engine.json. The options hold for every file of the folder.
func CreateFolder(dir string, e EngineFile, o WriteOptions) (*FolderWriter, error) {
	data, err := e.encode()
	if err != nil {
		return nil, err
	}
	if err := WriteFile(filepath.Join(dir, engineFile), data, o); err != nil {
		return nil, err
	}
	return &FolderWriter{dir: dir, engine: e, o: o, goos: runtime.GOOS, begun: map[string]string{}}, nil
}

// CaseWriter writes the files of one case. Each dump has its own writer and is
// committed on its own; Commit then writes NAME.json, without which the case
// reads as broken. A case that is being written is never taken for a whole one.
type CaseWriter struct {
	folder *FolderWriter
	name   string
	file   CaseFile
	json   []byte
	dumps  []*File
}

// Case starts the case with the given base name. Where overwriting isn't
// allowed, an existing NAME.json satisfies errors.Is(err, fs.ErrExist).
func (w *FolderWriter) Case(name string, c CaseFile) (*CaseWriter, error) {
	if name == "" || name == engineBase || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "/\\") || hasControl(name) {
		return nil, &UsageError{Op: "FolderWriter.Case", What: "name", Got: strconv.Quote(name),
			Want: `a base name, not "engine", without separators, control characters or a leading dot`}
	}
	if why := NameUnstorable(name, w.goos); why != "" {
		return nil, &UsageError{Op: "FolderWriter.Case", What: "name", Got: strconv.Quote(name), Want: "one that this system stores: " + why}
	}
	data, err := c.encode()
	if err != nil {
		return nil, err
	}
	if err := w.begin(name); err != nil {
		return nil, err
	}
	path := filepath.Join(w.dir, name+suffixCase)
	if w.o.Overwrite {
		// Without its NAME.json the old case is broken until Commit, so that
		// old and new files are never taken for one case.
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("dumpfmt: overwrite case: %w", err)
		}
	} else if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("dumpfmt: %w", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	return &CaseWriter{folder: w, name: name, file: c, json: data}, nil
}

// begin takes a name, unless the files of another case have it in other letters.
func (w *FolderWriter) begin(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := NameKey(name, w.goos)
	if other, ok := w.begun[key]; ok && other != name {
		return &UsageError{Op: "FolderWriter.Case", What: "name", Got: fmt.Sprintf("%q beside %q", name, other),
			Want: "names that differ in more than case: this system takes them for one"}
	}
	w.begun[key] = name
	return nil
}

func (w *CaseWriter) path(suffix string) string { return filepath.Join(w.folder.dir, w.name+suffix) }

func (w *CaseWriter) declared(op, got, want string) error {
	if got != want {
		return &UsageError{Op: op, What: "type that engine.json declares", Got: strconv.Quote(got), Want: strconv.Quote(want)}
	}
	return nil
}

func (w *CaseWriter) layerHeader(rows, width int) LayerHeader {
	return LayerHeader{Rows: rows, Width: width, Fingerprint: Fingerprint(w.file.Text), Mode: CaptureIncremental}
}

// FloatLayers starts NAME.layers.bin with the case's fingerprint.
func (w *CaseWriter) FloatLayers(rows, width int) (*FloatLayersWriter, error) {
	if err := w.declared("CaseWriter.FloatLayers", w.folder.engine.Layers, LayersFloat32); err != nil {
		return nil, err
	}
	d, err := CreateFloatLayers(w.path(suffixLayers), w.layerHeader(rows, width), w.folder.o)
	if err == nil {
		w.dumps = append(w.dumps, d.f)
	}
	return d, err
}

// Int8Layers starts NAME.layers.bin with the case's fingerprint.
func (w *CaseWriter) Int8Layers(rows, width int) (*Int8LayersWriter, error) {
	if err := w.declared("CaseWriter.Int8Layers", w.folder.engine.Layers, LayersInt8Scaled); err != nil {
		return nil, err
	}
	d, err := CreateInt8Layers(w.path(suffixLayers), w.layerHeader(rows, width), w.folder.o)
	if err == nil {
		w.dumps = append(w.dumps, d.f)
	}
	return d, err
}

// checkOutputs refuses what Case.OpenFloatLogits would.
func (w *CaseWriter) checkOutputs(op string, h LogitHeader) error {
	if ids := w.file.OutputIDs; ids != nil && len(ids) != h.Rows {
		return usageInt(op, "rows", h.Rows, len(ids))
	}
	return nil
}

// FloatLogits starts NAME.logits.bin, with one row for each of the case's
// output ids, if it has them.
func (w *CaseWriter) FloatLogits(h LogitHeader) (*FloatLogitsWriter, error) {
	if err := w.declared("CaseWriter.FloatLogits", w.folder.engine.Logits, LogitsFloat32); err != nil {
		return nil, err
	}
	if err := w.checkOutputs("CaseWriter.FloatLogits", h); err != nil {
		return nil, err
	}
	d, err := CreateFloatLogits(w.path(suffixLogits), h, w.folder.o)
	if err == nil {
		w.dumps = append(w.dumps, d.f)
	}
	return d, err
}

// Int32Logits starts NAME.logits.bin; see FloatLogits.
func (w *CaseWriter) Int32Logits(h LogitHeader) (*Int32LogitsWriter, error) {
	if err := w.declared("CaseWriter.Int32Logits", w.folder.engine.Logits, LogitsInt32); err != nil {
		return nil, err
	}
	if err := w.checkOutputs("CaseWriter.Int32Logits", h); err != nil {
		return nil, err
	}
	d, err := CreateInt32Logits(w.path(suffixLogits), h, w.folder.o)
	if err == nil {
		w.dumps = append(w.dumps, d.f)
	}
	return d, err
}

// Probes starts NAME.probes.safetensors: F32 tensors of shape [positions,
// width] under the names of probes.
func (w *CaseWriter) Probes(specs []TensorSpec) (*SafetensorsWriter, error) {
	d, err := CreateSafetensors(w.path(suffixProbes), specs, nil, w.folder.o)
	if err == nil {
		w.dumps = append(w.dumps, d.f)
	}
	return d, err
}

// Commit writes NAME.json; when overwriting, it removes the old dumps that
// weren't written anew. A case without a dump, or with one that isn't
// committed, is a *UsageError.
func (w *CaseWriter) Commit() error {
	done := 0
	for _, d := range w.dumps {
		if d.done {
			done++
		}
	}
	if done == 0 || done != len(w.dumps) {
		return &UsageError{Op: "CaseWriter.Commit", What: fmt.Sprintf("committed dumps of %q", w.name),
			Got: fmt.Sprint(done), Want: fmt.Sprintf("all %d, at least 1", len(w.dumps))}
	}
	if w.folder.o.Overwrite {
		for _, suffix := range []string{suffixLayers, suffixLogits, suffixProbes} {
			path := w.path(suffix)
			if slices.ContainsFunc(w.dumps, func(f *File) bool { return f.path == path }) {
				continue
			}
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("dumpfmt: overwrite case: %w", err)
			}
		}
	}
	return WriteFile(w.path(suffixCase), w.json, w.folder.o)
}
