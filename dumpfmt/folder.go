package dumpfmt

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	suffixCase   = ".json"
	suffixLayers = ".layers.bin"
	suffixLogits = ".logits.bin"
	suffixProbes = ".probes.safetensors"
)

// Folder is a dump folder: engine.json and the cases, a case being the files
// with one base name. Files with other endings, and hidden ones, are not part
// of it.
type Folder struct {
	dir    string
	engine EngineFile
	cases  []*Case
}

// Case is one case of a folder.
type Case struct {
	// Name is the files' base name.
	Name string
	// File is what NAME.json holds; empty when Err says that it can't be read.
	File CaseFile
	// Err is nil, or why the case is broken as far as NAME.json, the set of
	// files and engine.json's declarations go. The dumps are checked when they
	// are opened.
	Err error
	// Paths of the files that are there.
	JSONPath, LayersPath, LogitsPath, ProbesPath string

	engine     EngineFile
	enginePath string
}

// OpenFolder reads engine.json and every NAME.json. A broken case has its own
// Err and costs none of the others. A folder without engine.json, or with a
// broken one, is a *FormatError; one without a case a *NoCasesError; one that
// can't be read an error of the system's.
func OpenFolder(dir string) (*Folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("dumpfmt: dump folder: %w", err)
	}
	f := &Folder{dir: dir}
	byName := map[string]*Case{}
	hasEngine := false
	for _, e := range entries {
		if e.Name() == engineFile {
			hasEngine = true
			continue
		}
		name, slot := f.slot(byName, e.Name())
		if slot != nil {
			*slot = filepath.Join(dir, e.Name())
			byName[name].Name = name
		}
	}
	if !hasEngine {
		return nil, &FormatError{File: dir, Format: formatFolder, Offset: NoOffset,
			What: engineFile, Got: "no such file", Want: "the description of the side"}
	}
	if f.engine, err = ReadEngineFile(dir); err != nil {
		return nil, err
	}
	if len(byName) == 0 {
		return nil, &NoCasesError{Folder: dir}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		c := byName[name]
		c.engine, c.enginePath = f.engine, filepath.Join(dir, engineFile)
		c.load(dir)
		f.cases = append(f.cases, c)
	}
	return f, nil
}

// slot returns the case that a file belongs to and where its path goes, nil
// when it is no file of a case.
func (f *Folder) slot(cases map[string]*Case, file string) (string, *string) {
	if strings.HasPrefix(file, ".") {
		return "", nil
	}
	for _, s := range []struct {
		suffix string
		path   func(*Case) *string
	}{
		{suffixLayers, func(c *Case) *string { return &c.LayersPath }},
		{suffixLogits, func(c *Case) *string { return &c.LogitsPath }},
		{suffixProbes, func(c *Case) *string { return &c.ProbesPath }},
		{suffixCase, func(c *Case) *string { return &c.JSONPath }},
	} {
		if name, ok := strings.CutSuffix(file, s.suffix); ok && name != "" {
			if cases[name] == nil {
				cases[name] = &Case{}
			}
			return name, s.path(cases[name])
		}
	}
	return "", nil
}

// load fills File and Err.
func (c *Case) load(dir string) {
	switch {
	case hasControl(c.Name):
		c.Err = c.broken(filepath.Join(dir, c.Name+suffixCase), "name of the case", strconv.Quote(c.Name), "one without control characters, in UTF-8")
	case c.Name == engineBase:
		c.Err = c.broken(filepath.Join(dir, engineBase), "name of the case", `"engine"`, "another: engine.json describes the side")
	case c.JSONPath == "":
		c.Err = c.broken(filepath.Join(dir, c.Name+suffixCase), "case file", "no such file", "one beside the dumps of that name")
	default:
		if c.File, c.Err = ReadCaseFile(c.JSONPath); c.Err == nil {
			c.Err = c.checkFiles()
		}
	}
}

// checkFiles checks that there is a dump, and that its type is declared.
func (c *Case) checkFiles() error {
	if c.LayersPath == "" && c.LogitsPath == "" && c.ProbesPath == "" {
		return c.broken(c.JSONPath, "dumps of the case", "none",
			"at least one of "+c.Name+suffixLayers+", "+c.Name+suffixLogits+", "+c.Name+suffixProbes)
	}
	undeclared := func(key, path, want string) error {
		return &FormatError{File: c.enginePath, Format: formatEngineFile, Offset: NoOffset,
			What: fmt.Sprintf("key %q", key), Got: "nothing", Want: want, Note: filepath.Base(path) + " is there"}
	}
	if c.LayersPath != "" && c.engine.Layers == "" {
		return undeclared("layers", c.LayersPath, `"f32" or "int8-scaled"`)
	}
	if c.LogitsPath != "" && c.engine.Logits == "" {
		return undeclared("logits", c.LogitsPath, `"f32" or "i32"`)
	}
	return nil
}

func (c *Case) broken(path, what, got, want string) error {
	return &FormatError{File: path, Format: formatFolder, Offset: NoOffset, What: what, Got: got, Want: want}
}

// Engine returns what engine.json declares.
func (f *Folder) Engine() EngineFile { return f.engine }

// Dir returns the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Cases returns the cases, broken ones too, in the order of their names.
func (f *Folder) Cases() []*Case { return slices.Clone(f.cases) }

// Case returns the named case; errors.Is(err, fs.ErrNotExist) when the folder
// has none.
func (f *Folder) Case(name string) (*Case, error) {
	i, ok := slices.BinarySearchFunc(f.cases, name, func(c *Case, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return nil, fmt.Errorf("dumpfmt: dump folder %s: case %q: %w", f.dir, name, fs.ErrNotExist)
	}
	return f.cases[i], nil
}
