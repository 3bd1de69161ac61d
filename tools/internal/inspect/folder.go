package inspect

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// FolderReport is what a dump folder holds.
type FolderReport struct {
	Folder string       `json:"folder"`
	Side   Side         `json:"engine"`
	Cases  []CaseReport `json:"cases"`
}

// Side is what engine.json declares.
type Side struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Model   string `json:"model,omitempty"`
	Layers  string `json:"layers,omitempty"`
	Logits  string `json:"logits,omitempty"`
}

// CaseReport is one case of a folder, or one NAME.json.
type CaseReport struct {
	Name        string   `json:"name"`
	Fingerprint string   `json:"prompt_fingerprint,omitempty"`
	Tokens      int      `json:"prompt_tokens"`
	Output      int      `json:"output_tokens"`
	Files       []string `json:"files,omitempty"`
	// Error is why the case is broken.
	Error string `json:"error,omitempty"`
	// Notes say what was seen that is no fault.
	Notes []string `json:"notes,omitempty"`
}

// Folder looks at every case of a dump folder and opens every dump. The error is
// that of dumpfmt.OpenFolder; broken cases are in the report.
func Folder(dir string) (*FolderReport, error) {
	f, err := dumpfmt.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	r := &FolderReport{Folder: dir, Side: sideOf(f.Engine())}
	for _, c := range f.Cases() {
		out := caseOf(c.Name, c.File)
		for _, path := range []string{c.LayersPath, c.LogitsPath, c.ProbesPath} {
			if path != "" {
				out.Files = append(out.Files, filepath.Base(path))
			}
		}
		if err := c.Check(); err != nil {
			out.Error = err.Error()
		} else if out.Notes, err = notes(f.Engine(), c); err != nil {
			return nil, err
		}
		r.Cases = append(r.Cases, out)
	}
	return r, nil
}

// notes says what is in a case's files that is no fault.
func notes(e dumpfmt.EngineFile, c *dumpfmt.Case) ([]string, error) {
	if c.LayersPath == "" || e.Layers != dumpfmt.LayersInt8Scaled {
		return nil, nil
	}
	d, err := c.OpenInt8Layers()
	if err != nil {
		return nil, err
	}
	var out []string
	if n := d.TrailingBytes(); n > 0 {
		out = append(out, fmt.Sprintf("%s: %d bytes after the last row were not read", filepath.Base(c.LayersPath), n))
	}
	return out, d.Close()
}

// NamedLikeFile reports whether a folder has the name of a dump, and isn't a
// dump or model folder for all that.
func NamedLikeFile(path string) bool {
	for _, suffix := range []string{".layers.bin", ".logits.bin", ".safetensors", ".json"} {
		if !strings.HasSuffix(path, suffix) {
			continue
		}
		_, engine := os.Lstat(filepath.Join(path, "engine.json"))
		_, config := os.Lstat(filepath.Join(path, configFile))
		return engine != nil && config != nil
	}
	return false
}

// Broken counts the cases that are.
func (r *FolderReport) Broken() int {
	n := 0
	for _, c := range r.Cases {
		if c.Error != "" {
			n++
		}
	}
	return n
}

// EngineFile looks at the engine.json of a folder.
func EngineFile(path string) (*Side, error) {
	e, err := dumpfmt.ReadEngineFile(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	s := sideOf(e)
	return &s, nil
}

// CaseFile looks at a NAME.json.
func CaseFile(path string) (*CaseReport, error) {
	c, err := dumpfmt.ReadCaseFile(path)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	r := caseOf(base[:len(base)-len(filepath.Ext(base))], c)
	return &r, nil
}

func sideOf(e dumpfmt.EngineFile) Side {
	return Side{Name: e.Name, Version: e.Version, Model: e.Model, Layers: e.Layers, Logits: e.Logits}
}

func caseOf(name string, c dumpfmt.CaseFile) CaseReport {
	r := CaseReport{Name: name, Tokens: len(c.TokenIDs), Output: len(c.OutputIDs)}
	if c.Text != "" {
		r.Fingerprint = fingerprint(c.Text)
	}
	return r
}
