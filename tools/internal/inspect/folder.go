package inspect

import (
	"path/filepath"

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
		}
		r.Cases = append(r.Cases, out)
	}
	return r, nil
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
