package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// hashIn hashes a file of a file system without holding it.
func hashIn(fsys fs.FS, name string) (FileHash, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return FileHash{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return FileHash{Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, err
}

// verifyRecording is Verify of a user's own recording.
func (s *Set) verifyRecording(in Inputs) []Problem {
	out := s.verifyDumps()
	if in.Checkpoint == nil {
		return append(out, Problem{s.recording.Checkpoint.Folder, "checkpoint", "none", "the folder"})
	}
	return append(out, s.verifyCheckpoint(in.Checkpoint)...)
}

// verifyDumps holds the folder to its hashes, and then its files to each other.
func (s *Set) verifyDumps() []Problem {
	if out := folder(s.fsys, s.recording.Goldens); len(out) > 0 {
		return out
	}
	return s.recordedContent()
}

// verifyCheckpoint holds the model's files to those that were recorded from, both
// ways.
func (s *Set) verifyCheckpoint(model fs.FS) []Problem {
	want := s.recording.Checkpoint
	var out []Problem
	for _, name := range sortedKeys(want.Files) {
		path := want.Folder + "/" + name
		got, err := hashIn(model, name)
		switch {
		case err != nil:
			out = append(out, Problem{path, "file", err.Error(), "the file that was recorded from"})
		case got.Bytes != want.Files[name].Bytes:
			out = append(out, Problem{path, "length", fmt.Sprintf("%d bytes", got.Bytes), fmt.Sprintf("%d bytes", want.Files[name].Bytes)})
		case got != want.Files[name]:
			out = append(out, Problem{path, "sha256", got.SHA256, want.Files[name].SHA256})
		}
	}
	now, err := CheckpointFiles(model)
	if err != nil {
		return append(out, Problem{want.Folder, "checkpoint", err.Error(), "a readable folder"})
	}
	for _, name := range now {
		if _, ok := want.Files[name]; !ok {
			out = append(out, Problem{want.Folder + "/" + name, "orphan", "a file that wasn't there when the goldens were recorded", "none"})
		}
	}
	return out
}

// recordedContent checks what the hashes can't: that whoever changed a file and its
// hash alike made the files agree.
func (s *Set) recordedContent() []Problem {
	var out []Problem
	add := func(file, what, got, want string) {
		out = append(out, Problem{s.recording.Goldens.Folder + "/" + file, what, got, want})
	}
	var engine RecordedEngine
	if data, err := fs.ReadFile(s.fsys, "engine.json"); err != nil || json.Unmarshal(data, &engine) != nil || engine != s.recording.Engine {
		add("engine.json", "engine", fmt.Sprintf("%s %s in %q", engine.Name, engine.Version, engine.DType),
			fmt.Sprintf("%s %s in %q, as the manifest says", s.recording.Engine.Name, s.recording.Engine.Version, s.recording.Engine.DType))
	}
	for _, name := range s.recording.Cases {
		data, err := fs.ReadFile(s.fsys, name+".json")
		if err != nil {
			add(name+".json", "case file", err.Error(), "a readable one")
			continue
		}
		c, err := dumpfmt.ParseCaseFile(name+".json", data)
		if err != nil {
			add(name+".json", "case file", err.Error(), "a readable one")
			continue
		}
		if what, got, want := s.recordedRows(name, c); what != "" {
			add(name+".layers.bin", what, got, want)
		}
		if what, got, want := s.logits(name, c); what != "" {
			add(name+".logits.bin", what, got, want)
		}
	}
	return out
}

// recordedRows holds a case's layer dump to its text and to the manifest.
func (s *Set) recordedRows(name string, c dumpfmt.CaseFile) (what, got, want string) {
	data, err := s.read(name + ".layers.bin")
	if err != nil {
		return "layer dump", err.Error(), "a readable one"
	}
	d, err := dumpfmt.NewFloatLayers(bytes.NewReader(data), int64(len(data)), name+".layers.bin")
	if err != nil {
		return "layer dump", err.Error(), "a readable one"
	}
	h, ofText := d.Header(), dumpfmt.Fingerprint(c.Text)
	switch floors := s.LayerFloor(name); {
	case h.Fingerprint != ofText:
		return "fingerprint", fmt.Sprintf("0x%016X", h.Fingerprint), fmt.Sprintf("0x%016X, the text's", ofText)
	case h.Rows != len(floors):
		return "rows", fmt.Sprint(h.Rows), fmt.Sprintf("%d, as the manifest's precision", len(floors))
	}
	return "", "", ""
}

// ShowsChangeOnly reports whether the set is a recording by this very engine, with its
// manifest: good for what another version of it computes, and no evidence that it
// computes the model. A folder without a manifest is no such recording.
func (s *Set) ShowsChangeOnly(engine string) bool {
	return s.recording != nil && s.recording.Engine.Name == engine
}
