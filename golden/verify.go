package golden

import (
	"fmt"
	"io/fs"
	"slices"
)

// Problem is one thing that is not as the manifest says.
type Problem struct {
	// File is the file at fault.
	File, What, Got, Want string
}

func (p *Problem) Error() string {
	return fmt.Sprintf("golden: %s: %s: got %s, want %s", p.File, p.What, p.Got, p.Want)
}

// Inputs are what a set was recorded from, and lies outside its folder.
type Inputs struct {
	// Checkpoint is the folder of the checkpoint, which may hold the written
	// prompts as well.
	Checkpoint fs.FS
	// Prompts is the written prompts file.
	Prompts []byte
}

// Verify holds every golden, the checkpoint and the prompts to the manifest.
// It returns every problem, orphans and missing files included, in the order
// of their names. Files whose hashes are right still have to agree with each
// other.
func (s *Set) Verify(in Inputs) []Problem {
	if s.recording != nil {
		return s.verifyRecording(in)
	}
	var out []Problem
	out = append(out, folder(s.fsys, s.Manifest.Goldens)...)
	if in.Checkpoint == nil {
		out = append(out, Problem{s.Manifest.Checkpoint.Folder, "checkpoint", "none", "the folder"})
	} else {
		out = append(out, folder(in.Checkpoint, s.Manifest.Checkpoint, "prompts.json")...)
	}
	written := s.Manifest.Prompts.Written
	if p := compare(written.Path, in.Prompts, written.FileHash); p != nil {
		out = append(out, *p)
	}
	if out = append(out, s.cases()...); len(out) > 0 {
		return out
	}
	return s.content(in.Prompts)
}

// cases checks that each case of the manifest has its files and a floor, and
// that no floor or file is without a case.
func (s *Set) cases() []Problem {
	var out []Problem
	file := s.name + ".manifest.json"
	want := []string{"engine.json"}
	for _, c := range s.Manifest.Cases {
		for _, ext := range []string{".json", ".layers.bin", ".logits.bin"} {
			want = append(want, c+ext)
			if _, ok := s.Manifest.Goldens.Files[c+ext]; !ok {
				out = append(out, Problem{file, "case " + c, "no " + c + ext, "its hash"})
			}
		}
		if len(s.Manifest.Precision.Cases[c].Layers) == 0 {
			out = append(out, Problem{file, "precision of case " + c, "none", "one figure per row"})
		}
	}
	for _, c := range sortedKeys(s.Manifest.Precision.Cases) {
		if !slices.Contains(s.Manifest.Cases, c) {
			out = append(out, Problem{file, "precision of case " + c, "a figure", "none: there is no such case"})
		}
	}
	for _, name := range sortedKeys(s.Manifest.Goldens.Files) {
		if !slices.Contains(want, name) {
			out = append(out, Problem{file, "goldens.files", name, "files of the manifest's cases only"})
		}
	}
	return out
}

// folder holds a folder's files to their hashes, both ways.
func folder(fsys fs.FS, want FolderHashes, except ...string) []Problem {
	var out []Problem
	for _, name := range sortedKeys(want.Files) {
		path := want.Folder + "/" + name
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			out = append(out, Problem{path, "file", err.Error(), "a file with the manifest's hash"})
			continue
		}
		if p := compare(path, b, want.Files[name]); p != nil {
			out = append(out, *p)
		}
	}
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return append(out, Problem{want.Folder, "folder", err.Error(), "a readable folder"})
	}
	for _, e := range entries {
		if _, ok := want.Files[e.Name()]; !ok && !slices.Contains(except, e.Name()) {
			out = append(out, Problem{want.Folder + "/" + e.Name(), "orphan", "a file without a hash in the manifest", "none"})
		}
	}
	return out
}

func compare(path string, b []byte, want FileHash) *Problem {
	if int64(len(b)) != want.Bytes {
		return &Problem{path, "length", fmt.Sprintf("%d bytes", len(b)), fmt.Sprintf("%d bytes", want.Bytes)}
	}
	if got := hexSum(b); got != want.SHA256 {
		return &Problem{path, "sha256", got, want.SHA256}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
