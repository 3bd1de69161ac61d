package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	plumb "github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"

	"example.com/tinyllm/tinyllm"
)

// shared is the folder of what the tests make once: the checkpoint and the program.
var shared string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if shared, err = os.MkdirTemp("", "tinyllm"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(shared)
		return m.Run()
	}())
}

// writeModel writes the small trained Qwen2 that Plumbline brings. A team has a
// checkpoint of its own, and its folder here.
var writeModel = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(shared, "model")
	return dir, os.CopyFS(dir, fixtures.Model())
})

func modelDir(t *testing.T) string { return once(t, writeModel) }

// openReference opens the float engine that judges. It imports none of ours.
var openReference = sync.OnceValues(func() (*plumb.Engine, error) {
	dir, err := writeModel()
	if err != nil {
		return nil, err
	}
	return plumb.Open(dir)
})

func reference(t *testing.T) *plumb.Engine { return once(t, openReference) }

// load opens the engine under test.
func load(t *testing.T) *tinyllm.Model {
	t.Helper()
	m, err := tinyllm.Load(modelDir(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.Fault, err = tinyllm.FaultFromEnv(); err != nil {
		t.Fatal(err)
	}
	return m
}

// cases are five short prompts: from five on, medians over them are judged.
func cases(t *testing.T) []engine.Case {
	all := once(t, fixtures.Prompts)
	var out []engine.Case
	for _, c := range all {
		switch c.Name {
		case "digits", "code", "read_all", "mutex_lock", "empty_system":
			out = append(out, c)
		}
	}
	return out
}

// dumps writes a dump folder.
func dumps(t *testing.T) string {
	t.Helper()
	m, dir := load(t), t.TempDir()
	w, err := dumpfmt.CreateFolder(dir, tinyllm.Side, dumpfmt.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases(t) {
		out, err := m.Run(c.TokenIDs, engine.DefaultMaxNew, c.Stop)
		if err == nil {
			err = tinyllm.WriteCase(w, c.Name, c.Text, c.TokenIDs, c.Stop, out)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// respond answers in memory.
func respond(m *tinyllm.Model, req engine.Request) (*engine.Response, error) {
	steps := req.DecodeSteps
	if steps == 0 {
		steps = engine.DefaultMaxNew
	}
	out, err := m.Run(req.Case.TokenIDs, steps, req.Case.Stop)
	if err != nil {
		return nil, err
	}
	resp := &engine.Response{OutputIDs: out.IDs, PromptIDs: req.Case.TokenIDs}
	if resp.Layers, err = engine.FloatRows(req.Case.Text, out.Rows); err != nil {
		return nil, err
	}
	resp.Logits, err = engine.LogitRows(out.Logits)
	return resp, err
}

// buildProgram builds the engine's command.
var buildProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(shared, "tinyllm")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", "build", "-o", path, "./cmd/tinyllm")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

func build(t *testing.T) string { return once(t, buildProgram) }

func once[T any](t *testing.T, get func() (T, error)) T {
	t.Helper()
	v, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
