package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// TestDocumentedScripts runs what documents and help texts show. Beside testscript's own
// commands, and exits and tensors of TestScripts, there are
//
//	renamed FOLDER OUT NAME   a copy of a dump folder whose engine has another name
//	recordings FOLDER OUT     what the programs ./engine and serve.py answer from
//	rename OLD NEW            a file or folder gets another name
//	gguf FILE                 a GGUF file
//	waives FILE CHECK CASE    a waiver, for a month
//	client FOLDER             a copy of the example client's module
//	goes go ARGS…             the go command, offline, in the script's folder
//
// and the condition [client] for a checkout, which has that module.
//
// $MODEL is the seeded checkpoint, $TRAINED the trained one, $MOE a small mixture of
// experts, $PLAN a plan of a teacher for $MODEL.
func TestDocumentedScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/docs",
		Setup: func(env *testscript.Env) error {
			env.Setenv("MODEL", filepath.Join(root, "fixtures", "qwen2-seeded"))
			env.Setenv("TRAINED", filepath.Join(root, "fixtures", "qwen2-trained"))
			env.Setenv("PLAN", filepath.Join(root, "tools", "plumbline", "testdata", "targets", "summary.json"))
			env.Setenv("ENGINE", filepath.Join(root, "engine"))
			env.Setenv(modelEnv, "")
			moe := filepath.Join(env.WorkDir, ".moe")
			env.Setenv("MOE", moe)
			return writeMoE(moe, true)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "tensors": tensors, "renamed": renamedFolder, "recordings": writeRecordings, "rename": renameFile, "gguf": ggufFile, "waives": writeWaiver,
			"client": copyClient, "goes": goes,
		},
		Condition: func(cond string) (bool, error) {
			if cond != "client" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			_, err := os.Stat(filepath.Join(root, clientModule, "go.mod"))
			return err == nil, nil
		},
	})
}

const clientModule = "conformance/testdata/client"

func copyClient(ts *testscript.TestScript, _ bool, args []string) {
	root := filepath.Dir(ts.Getenv("ENGINE"))
	to := ts.MkAbs(args[0])
	ts.Check(os.CopyFS(to, os.DirFS(filepath.Join(root, clientModule))))
	cmd := exec.Command("go", "mod", "edit", "-replace", "github.com/plumbline-go/plumbline="+root)
	cmd.Dir = to
	text, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("%v: %s", err, text)
	}
}

// goes runs go with the environment of this test, whose caches the script's lacks.
func goes(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local", "ENGINE_FAULT=",
		conformance.ReportEnv+"="+ts.Getenv(conformance.ReportEnv))
	text, err := cmd.CombinedOutput()
	ts.Logf("%s", text)
	ts.Check(err)
}

func renamedFolder(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
	path := ts.MkAbs(filepath.Join(args[1], "engine.json"))
	data, err := os.ReadFile(path)
	ts.Check(err)
	var file map[string]any
	ts.Check(json.Unmarshal(data, &file))
	file["name"] = args[2]
	data, err = json.Marshal(file)
	ts.Check(err)
	ts.Check(os.WriteFile(path, data, 0o666))
}

func renameFile(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.Rename(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
}

func ggufFile(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), smallGGUF(), 0o666))
}

func writeWaiver(ts *testscript.TestScript, _ bool, args []string) {
	data, err := json.Marshal(map[string]any{"waivers": []any{map[string]string{
		"check": args[1], "case": args[2], "reason": "issue 12", "expires": time.Now().AddDate(0, 1, 0).Format(time.DateOnly)}}})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

// writeRecordings lays the layer dumps of a folder beside their ids, adds both fakes,
// and writes the programs.
func writeRecordings(ts *testscript.TestScript, _ bool, args []string) {
	from, to := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	folder, err := dumpfmt.OpenFolder(from)
	ts.Check(err)
	ts.Check(os.MkdirAll(to, 0o777))
	ids := func(name string, ids []int) {
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", "\n"), "[]") + "\n"
		ts.Check(os.WriteFile(filepath.Join(to, name+".ids"), []byte(text), 0o666))
	}
	for _, c := range folder.Cases() {
		data, err := os.ReadFile(c.LayersPath)
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(to, c.Name+".layers.bin"), data, 0o666))
		ids(c.Name, c.File.TokenIDs)
	}
	for _, c := range []engine.Case{engine.SmokeRight(), engine.SmokeWrong()} {
		w, err := dumpfmt.CreateFloatLayers(filepath.Join(to, c.Name+".layers.bin"),
			dumpfmt.LayerHeader{Rows: 2, Width: 5, Fingerprint: dumpfmt.Fingerprint(c.Text), Mode: 1}, dumpfmt.WriteOptions{})
		ts.Check(err)
		more := float32(0)
		if c.Name == engine.SmokeWrong().Name {
			more = 1
		}
		for _, sign := range []float32{1, -1} {
			row := make([]float32, len(c.TokenIDs))
			for i, id := range c.TokenIDs {
				row[i] = sign*float32(id) + more
			}
			ts.Check(w.WriteRow(row))
		}
		ts.Check(w.Commit())
		ids(c.Name, c.TokenIDs)
	}
	ts.Check(os.WriteFile(filepath.Join(to, "engine.json"), []byte(`{"name": "recordings", "layers": "f32"}`), 0o666))
	ts.Check(os.WriteFile(ts.MkAbs("engine"), []byte(engineScript), 0o777))
	for _, name := range []string{"protocol_candidate.py", "exec_candidate.sh"} {
		program, err := os.ReadFile(filepath.Join(ts.Getenv("ENGINE"), "testdata", name))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name), program, 0o666))
	}
}

// engineScript is called as ./engine --ids IDS --layers FILE.
const engineScript = `#!/bin/sh
set -eu
for known in rec/*.ids; do
	if [ "$(tr '\n' ',' <"$known")" = "$2," ]; then
		cp "${known%.ids}.layers.bin" "$4"
		exit 0
	fi
done
echo "no recording of this prompt" >&2
exit 77
`

// smallGGUF is a GGUF file with one key and no tensors.
func smallGGUF() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF\x03\x00\x00\x00")
	b.Write(make([]byte, 8))                  // tensors
	b.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0})   // keys
	b.Write([]byte{20, 0, 0, 0, 0, 0, 0, 0})  // the key's length
	b.WriteString("general.architecture")     //
	b.Write([]byte{8, 0, 0, 0})               // a string
	b.Write([]byte{5, 0, 0, 0, 0, 0, 0, 0})   // its length
	b.WriteString("llama")                    //
	b.Write(make([]byte, (32-b.Len()%32)%32)) // aligned
	return b.Bytes()
}
