package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// answerName is the base name of the files that a program answers with.
const answerName = "case"

// answerDir is the temporary folder of one request: what the program reads in
// one folder, what it writes in another, which is a dump folder of one case.
type answerDir struct {
	root, out string
}

// newAnswerDir makes the folder, with the ids and the text in it.
func newAnswerDir(parent string, c Case) (*answerDir, error) {
	if !utf8.ValidString(c.Name) || !utf8.ValidString(c.Text) {
		return nil, &SetupError{Path: strconv.Quote(c.Name), Err: errors.New("name or text of the case: got invalid UTF-8")}
	}
	if parent == "" {
		parent = os.TempDir()
	}
	root, err := os.MkdirTemp(parent, "plumbline-")
	if err != nil {
		return nil, &SetupError{Path: parent, Err: err}
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, &SetupError{Path: parent, Err: err}
	}
	d := &answerDir{root: root, out: filepath.Join(root, "out")}
	err = os.Mkdir(d.out, 0o777)
	if err == nil {
		err = os.WriteFile(d.idsFile(), []byte(joinIDs(c.TokenIDs, "\n")+"\n"), 0o666)
	}
	if err == nil {
		err = os.WriteFile(d.textFile(), []byte(c.Text), 0o666)
	}
	if err != nil {
		d.remove()
		return nil, &SetupError{Path: root, Err: err}
	}
	return d, nil
}

func (d *answerDir) idsFile() string  { return filepath.Join(d.root, "ids.txt") }
func (d *answerDir) textFile() string { return filepath.Join(d.root, "text.txt") }
func (d *answerDir) layers() string   { return filepath.Join(d.out, answerName+".layers.bin") }
func (d *answerDir) logits() string   { return filepath.Join(d.out, answerName+".logits.bin") }
func (d *answerDir) probes() string   { return filepath.Join(d.out, answerName+".probes.safetensors") }

// remove removes the folder. What can't be removed is the system's to clean.
func (d *answerDir) remove() { _ = os.RemoveAll(d.root) }

func joinIDs(ids []int, sep string) string {
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = strconv.Itoa(id)
	}
	return strings.Join(s, sep)
}

func joinProbes(probes []Probe) string {
	s := make([]string, len(probes))
	for i, p := range probes {
		s[i] = string(p)
	}
	return strings.Join(s, ",")
}

// empty is true when the program wrote no dump.
func (d *answerDir) empty() bool {
	for _, path := range []string{d.layers(), d.logits(), d.probes()} {
		if _, err := os.Lstat(path); err == nil {
			return false
		}
	}
	return true
}

// engineFile is what the program's engine.json says, nil without one.
func (d *answerDir) engineFile() (*dumpfmt.EngineFile, error) {
	e, err := dumpfmt.ReadEngineFile(d.out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, d.placed(fromDump(err))
	}
	return &e, nil
}

// read reads the answer as the dump folder of one case. info is what the side
// declares, by whichever way it said so; handed is true for a program that was
// given the ids, and so ran them unless its case.json tells others. The folder is
// removed when the response is closed, or at once on an error.
func (d *answerDir) read(ctx context.Context, c Case, info Info, handed bool) (resp *Response, err error) {
	defer func() {
		if err != nil {
			err = d.placed(err)
			d.remove()
		}
	}()
	_, err = dumpfmt.CreateFolder(d.out, dumpfmt.EngineFile{Name: cmpOr(info.Name, "program"), Layers: info.Layers, Logits: info.Logits},
		dumpfmt.WriteOptions{Overwrite: true})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.out, answerName+".json")
	_, err = os.Lstat(path)
	told := !errors.Is(err, fs.ErrNotExist)
	if !told {
		// A program that has nothing more to say of the case need not write it.
		data, err := json.Marshal(map[string]any{"text": c.Text, "token_ids": c.TokenIDs})
		if err != nil {
			return nil, err
		}
		if err := dumpfmt.WriteFile(path, data, dumpfmt.WriteOptions{}); err != nil {
			return nil, err
		}
	}
	c.Name = answerName
	resp, err = Dir(d.out).Run(ctx, Request{Case: c})
	if err != nil {
		return nil, err
	}
	for _, f := range []*string{&resp.Files.Layers, &resp.Files.Logits, &resp.Files.Probes} {
		*f = d.inMessage(*f)
	}
	for i, n := range resp.Notes {
		resp.Notes[i] = d.inMessage(n)
	}
	if !told && !handed {
		resp.PromptIDs = nil // those of the file above are ours
	}
	resp.release = sync.OnceFunc(d.remove)
	return resp, nil
}

func cmpOr(a, b string) string {
	if strings.TrimSpace(a) == "" {
		return b
	}
	return a
}

// placed names the answer's files as the command line does: the folder will be
// gone when a message about it is read.
func (d *answerDir) placed(err error) error {
	var bad *MalformedError
	if errors.As(err, &bad) {
		return &MalformedError{File: d.inMessage(bad.File), Provenance: bad.Provenance, Err: placedError{bad.Err, d}}
	}
	return err
}

func (d *answerDir) inMessage(s string) string {
	return strings.ReplaceAll(s, d.out, "{"+placeDir+"}")
}

type placedError struct {
	err error
	dir *answerDir
}

func (e placedError) Error() string { return e.dir.inMessage(e.err.Error()) }

func (e placedError) Unwrap() error { return e.err }

// infoOf is what an engine.json declares.
func infoOf(e dumpfmt.EngineFile) Info {
	return Info{
		Name: e.Name, Version: e.Version, Layers: e.Layers, Logits: e.Logits,
		Weights: e.Weights, Activations: e.Activations, KVCache: e.KVCache,
		DType: e.DType, Model: e.Model, Features: e.Features,
	}
}

// sameTypes says how an answer's declaration differs from the side's in what its
// files are read by.
func sameTypes(side, got Info) error {
	for _, f := range [][3]string{{"layers", got.Layers, side.Layers}, {"logits", got.Logits, side.Logits}} {
		if f[1] != f[2] {
			return fmt.Errorf("engine: {%s}/engine.json: %s: got %q, want %q as declared before", placeDir, f[0], f[1], f[2])
		}
	}
	return nil
}
