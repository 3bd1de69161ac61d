package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// recordingsOf turns a dump folder into what engine/testdata's two programs
// answer from: the ids of each case beside its dump.
func recordingsOf(t *testing.T, dir string) string {
	t.Helper()
	folder, err := dumpfmt.OpenFolder(dir)
	require.NoError(t, err)
	for _, c := range folder.Cases() {
		writeIDs(t, dir, c.Name, c.File.TokenIDs)
	}
	return dir
}

func writeIDs(t *testing.T, dir, name string, ids []int) {
	t.Helper()
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", "\n"), "[]") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+".ids"), []byte(text), 0o666))
}

// withFakes adds recordings of the two fakes, as the help describes them.
func withFakes(t *testing.T, dir string, right, wrong [][]int8) string {
	t.Helper()
	for _, f := range []struct {
		name, text string
		ids        []int
		codes      [][]int8
	}{
		{"right", "plumbline smoke: right", []int{1, 2, 3, 4, 5}, right},
		{"wrong", "plumbline smoke: wrong", []int{5, 4, 3, 2, 1}, wrong},
	} {
		w, err := dumpfmt.CreateInt8Layers(filepath.Join(dir, f.name+".layers.bin"),
			dumpfmt.LayerHeader{Rows: 2, Width: 5, Fingerprint: dumpfmt.Fingerprint(f.text), Mode: 1}, dumpfmt.WriteOptions{})
		require.NoError(t, err)
		for _, row := range f.codes {
			require.NoError(t, w.WriteRow(dumpfmt.Scale{M: 1073741824, E: -30}, row))
		}
		require.NoError(t, w.Commit())
		writeIDs(t, dir, f.name, f.ids)
	}
	return dir
}

var (
	fakeRight = [][]int8{{1, 2, 3, 4, 5}, {-1, -2, -3, -4, -5}}
	fakeWrong = [][]int8{{6, 5, 4, 3, 2}, {-4, -3, -2, -1, 0}}
)

func shellProgram(recordings string) string {
	return "sh ../../engine/testdata/exec_candidate.sh '" + recordings + "' {ids_file} {dir}"
}

// pythonProgram speaks the protocol, and says that it serves the fakes.
func pythonProgram(t *testing.T, recordings string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine: the protocol is shown by package engine's fakes in Go alone")
	}
	return "'" + python + "' ../../engine/testdata/protocol_candidate.py '" + recordings + "'"
}

// promptFile writes the cases of a dump folder as a list of prompts.
func promptFile(t *testing.T, dir string) string {
	t.Helper()
	folder, err := dumpfmt.OpenFolder(dir)
	require.NoError(t, err)
	var b bytes.Buffer
	for _, c := range folder.Cases() {
		line, err := json.Marshal(map[string]any{"name": c.Name, "text": c.File.Text, "token_ids": c.File.TokenIDs})
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	path := filepath.Join(t.TempDir(), "prompts.jsonl")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o666))
	return path
}

const notShown = "not shown: that the way between the program and Plumbline is sound (--smoke, or plumbline selftest --exec)"

// TestGateOnAProgram: a program gets the verdict that its dumps get as a folder.
func TestGateOnAProgram(t *testing.T) {
	model := modelFolder(t)
	golden := renamed(t, dumpInt8(t, 5, "", 0), "reference")
	clean := withFakes(t, recordingsOf(t, dumpInt8(t, 5, "", 0)), fakeRight, fakeWrong)
	faulty := withFakes(t, recordingsOf(t, dumpInt8(t, 5, "gate-up-swapped", 7)), fakeRight, fakeWrong)
	common := []string{"--allow-partial", "--model", model}

	rep, code, stderr := gateJSON(t, append(common, "--golden", golden, "--exec", shellProgram(clean))...)
	assert.Equal(t, exitDone, code, stderr)
	assert.Equal(t, conformance.Partial, rep.Conclusion)
	assert.Equal(t, "int8 test engine", rep.Candidate.Name)
	assert.Len(t, rep.Cases, 5)
	assert.Contains(t, rep.Power, notShown)
	assert.Contains(t, rep.Reproduce, "--exec 'sh ../../engine/testdata/exec_candidate.sh ")

	rep, code, stderr = gateJSON(t, append(common, "--prompts", promptFile(t, golden), "--smoke", "--exec", shellProgram(faulty))...)
	assert.Equal(t, exitFails, code, stderr)
	assert.Equal(t, 8, rowOf(rep))
	assert.Equal(t, "blocks.7.resid_post", sourceOf(rep))
	assert.NotContains(t, rep.Power, notShown)
	assert.Contains(t, rep.Reproduce, "--smoke")

	t.Run("protocol", func(t *testing.T) {
		rep, code, stderr := gateJSON(t, append(common, "--golden", golden, "--protocol", "--exec", pythonProgram(t, faulty))...)
		assert.Equal(t, exitFails, code, stderr)
		assert.Equal(t, 8, rowOf(rep))
		assert.NotContains(t, rep.Power, notShown, "it says that it serves the fakes, and so it is tested")
		assert.Contains(t, rep.Reproduce, "--protocol=true")
		// An adapter that can't get a wrong answer through is not to be trusted.
		deaf := withFakes(t, recordingsOf(t, dumpInt8(t, 1, "", 0)), fakeRight, [][]int8{{5, 4, 3, 2, 1}, {-5, -4, -3, -2, -1}})
		_, code, stderr = gateJSON(t, append(common, "--golden", golden, "--protocol", "--exec", pythonProgram(t, deaf))...)
		assert.Equal(t, exitBroken, code)
		assert.Contains(t, stderr, "the program failed on the fake plumbline-smoke-wrong")
	})
}

func sourceOf(r conformance.Report) string {
	if r.Source == nil {
		return ""
	}
	return string(*r.Source)
}

// TestGateOnAProgramThatFails: what the program does wrong is its fault (1), what
// keeps it from being asked is the run's (2).
func TestGateOnAProgramThatFails(t *testing.T) {
	model := modelFolder(t)
	golden := renamed(t, dumpInt8(t, 1, "", 0), "reference")
	for _, tt := range []struct {
		name, line string
		args       []string
		code       int
		reason     string
	}{
		{"crash", `sh -c 'echo "out of memory" >&2; exit 3' {ids} {dir}`, nil, exitFails, `exit code 3; its standard error ends in "out of memory\n"`},
		{"crash, declared", `sh -c 'echo "out of memory" >&2; exit 3' {ids} {dir}`, []string{"--layers", "f32"}, exitFails, "exit code 3"},
		{"late", `sh -c 'sleep 3600' {ids} {dir}`, []string{"--layers", "f32", "--timeout", "200ms"}, exitFails, "no answer within 200ms"},
		{"writes nothing", `true {ids} {dir}`, []string{"--layers", "f32"}, exitFails, "no dump was written"},
		{"declares nothing", `cp {ids_file} {layers}`, nil, exitFails, "engine.json: got none"},
		{"garbage", `cp {ids_file} {layers}`, []string{"--layers", "f32"}, exitFails, "of 32 bytes after byte 0x0"},
		{"garbage in the handshake", `echo hello`, []string{"--protocol"}, exitFails, `got no JSON object ("hello")`},
		{"ends in the handshake", `false`, []string{"--protocol"}, exitFails, "exit code 1"},
		{"unsupported", `sh -c 'echo "too long" >&2; exit 77' {ids} {dir}`, []string{"--layers", "f32"}, exitNotJudged, "too long"},
		{"another version", `sh -c 'read hello; echo "{\"plumbline\":2,\"name\":\"x\"}"'`, []string{"--protocol"}, exitBroken, "protocol version 2"},
		{"no such program", `/no/such/program {ids} {dir}`, []string{"--layers", "f32"}, exitBroken, "/no/such/program"},
		{"no such program, protocol", `/no/such/program`, []string{"--protocol"}, exitBroken, "/no/such/program"},
		{"not the fakes", `cp {ids_file} {layers}`, []string{"--layers", "f32", "--smoke"}, exitBroken, "no verdict on its engine can be trusted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rep, code, stderr := gateJSON(t, append(tt.args, "--model", model, "--golden", golden, "--exec", tt.line)...)
			assert.Equal(t, tt.code, code, stderr)
			if tt.code == exitBroken {
				assert.Contains(t, stderr, tt.reason)
				return
			}
			var reasons []string
			for _, c := range rep.Checks {
				reasons = append(reasons, c.Reason)
			}
			assert.Contains(t, strings.Join(reasons, "\n"), tt.reason)
		})
	}
}

func TestProgramUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"gate"}, "--candidate is required, or --exec"},
		{[]string{"gate", "--candidate", "x", "--protocol"}, "--protocol needs --exec"},
		{[]string{"gate", "--candidate", "x", "--timeout", "1s"}, "--timeout needs --exec"},
		{[]string{"gate", "--candidate", "x", "--smoke"}, "--smoke needs --exec"},
		{[]string{"gate", "--candidate", "x", "--prompts", "p"}, "--prompts needs --exec"},
		{[]string{"gate", "--candidate", "x", "--exec", "a {ids} {dir}"}, "got both"},
		{[]string{"gate", "--exact", "--golden", "g", "--exec", "a {ids} {dir}"}, "--exact compares two folders"},
		{[]string{"gate", "--exec", "a {ids} {dir}"}, "--golden or --prompts"},
		{[]string{"gate", "--exec", "a {ids} {dir}", "--golden", "g", "--prompts", "p"}, "--golden or --prompts"},
		{[]string{"gate", "--exec", "a {ids} {dir}", "--golden", "g", "--timeout", "0s"}, "--timeout: got 0s"},
		{[]string{"gate", "--exec", "a {ids} {dir}", "--golden", "g", "--layers", "f16"}, `--layers: got "f16"`},
		{[]string{"gate", "--exec", "a {ids} {dir}", "--golden", "g", "--logits", "f16"}, `--logits: got "f16"`},
		{[]string{"gate", "--exec", "a", "--protocol", "--golden", "g", "--layers", "f32"}, "the handshake says it"},
		{[]string{"selftest", "--shell"}, "--shell needs --exec"},
		{[]string{"selftest", "x"}, "want none"},
		{[]string{"selftest", "--exec", "go {id} {dir}"}, "got the placeholder {id}"},
		{[]string{"selftest", "--exec", "go | b {ids} {dir}"}, "needs a shell"},
		{[]string{"selftest", "--exec", "go {ids}"}, "can't know the answer's place"},
		{[]string{"selftest", "--protocol", "--exec", "go {ids}"}, "come on standard input"},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var out, errs bytes.Buffer
			assert.Equal(t, exitBroken, run(tt.args, &out, &errs))
			assert.Empty(t, out.String())
			assert.Contains(t, errs.String(), tt.want)
			assert.Contains(t, errs.String(), "--help")
		})
	}
}

func TestSelftestOfAProgram(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "engine.json"), []byte(`{"name":"x","layers":"int8-scaled"}`), 0o666))
	good := withFakes(t, dir, fakeRight, fakeWrong)
	deaf := t.TempDir()
	require.NoError(t, os.CopyFS(deaf, os.DirFS(dir)))
	require.NoError(t, os.Remove(filepath.Join(deaf, "wrong.layers.bin")))
	require.NoError(t, os.Remove(filepath.Join(deaf, "right.layers.bin")))
	withFakes(t, deaf, fakeRight, [][]int8{{5, 4, 3, 2, 1}, {-5, -4, -3, -2, -1}})

	selftest := func(args ...string) (string, int) {
		var out, errs bytes.Buffer
		code := run(append([]string{"selftest", "--quiet"}, args...), &out, &errs)
		return out.String() + errs.String(), code
	}
	text, code := selftest("--exec", shellProgram(good))
	assert.Equal(t, exitDone, code, text)
	assert.Equal(t, "the program declares\n  name         x\n  layers       int8-scaled\n\n"+
		"  fake                   want   saw    holds\n"+
		"  plumbline-smoke        right  right    yes\n"+
		"  plumbline-smoke-wrong  wrong  wrong    yes\n"+
		"  plumbline-smoke        right  right    yes\n", text)
	text, code = selftest("--exec", shellProgram(deaf))
	assert.Equal(t, exitFails, code, text)
	assert.Contains(t, text, "plumbline-smoke-wrong  wrong  right     NO  got the answer that is right, want the one that is wrong")
	text, code = selftest("--json", "--exec", `sh -c 'exit 3' {ids} {dir}`, "--layers", "f32")
	assert.Equal(t, exitFails, code, text)
	var r selftestResult
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	assert.False(t, r.Holds)
	require.Len(t, r.Fakes, 3)
	assert.Contains(t, r.Fakes[0].Why, "exit code 3")
	require.NotNil(t, r.Declares, "--layers says it")
	assert.Equal(t, "f32", r.Declares.Layers)
	text, code = selftest("--exec", "/no/such/program {ids} {dir}", "--layers", "f32")
	assert.Equal(t, exitBroken, code, text)

	t.Run("protocol", func(t *testing.T) {
		text, code := selftest("--protocol", "--exec", pythonProgram(t, good))
		assert.Equal(t, exitDone, code, text)
		text, code = selftest("--protocol", "--exec", pythonProgram(t, deaf))
		assert.Equal(t, exitFails, code, text)
	})
}

// TestSelftestTable: the table is laid out for people, and one control that does
// not hold makes the exit code 1.
func TestSelftestTable(t *testing.T) {
	proof := func(holds bool, excess, floor float64, layer int, why string) conformance.Proof {
		return conformance.Proof{Check: "LocalError", Failed: excess > 1, Excess: excess, Holds: holds, Why: why,
			Control: conformance.Control{Mutant: "rope-base", Side: conformance.SideCandidate, Layer: layer, Floor: floor}}
	}
	proofs := []conformance.Proof{
		proof(true, 4.2871, 2, 9, ""), proof(true, math.Inf(1), 0, -1, ""), proof(true, math.Inf(1), 2, 0, ""),
		proof(false, 1.5, 2, 9, "missed its bound by 1.50, want at least 2"), proof(false, 0, 2, 9, "the check passed on the planted fault"),
	}
	var out bytes.Buffer
	a := &app{stdout: &out}
	assert.Equal(t, exitFails, exitCode(a.reportProofs(proofs)))
	assert.Equal(t, "  check       side       control    at  floor  excess  holds\n"+
		"  LocalError  candidate  rope-base   9      2    4.29    yes\n"+
		"  LocalError  candidate  rope-base   -  exact  failed    yes\n"+
		"  LocalError  candidate  rope-base   0      2     inf    yes\n"+
		"  LocalError  candidate  rope-base   9      2     1.5     NO  missed its bound by 1.50, want at least 2\n"+
		"  LocalError  candidate  rope-base   9      2       -     NO  the check passed on the planted fault\n"+
		"\n3 of 5 controls hold\n", out.String())
	out.Reset()
	assert.Equal(t, exitDone, exitCode(a.reportProofs(proofs[:3])))
	out.Reset()
	assert.Equal(t, exitFails, exitCode(a.reportProofs(nil)), "nothing proven is no success")
	out.Reset()
	a.json = true
	assert.Equal(t, exitFails, exitCode(a.reportProofs(proofs)))
	var r selftestResult
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	assert.False(t, r.Holds)
	require.Len(t, r.Proofs, 5)
	assert.Nil(t, r.Proofs[1].Floor)
	assert.Nil(t, r.Proofs[1].Layer)
	require.NotNil(t, r.Proofs[2].Layer)
	assert.Zero(t, *r.Proofs[2].Layer)
	assert.True(t, math.IsInf(float64(r.Proofs[1].Excess), 1))
}

// TestSelftest: the product shows that each of its checks can fail.
func TestSelftest(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep over planted faults; run without -short")
	}
	var out, errs bytes.Buffer
	require.Equal(t, exitDone, run([]string{"selftest", "--json", "--quiet"}, &out, &errs), errs.String())
	var r selftestResult
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	require.True(t, r.Holds)
	want := 0
	for _, c := range conformance.Builtin().Checks() {
		want += len(c.Controls)
	}
	require.Len(t, r.Proofs, want)
}

// TestProgramHelp: the help describes the fakes that the suite asks for.
func TestProgramHelp(t *testing.T) {
	for _, c := range []engine.Case{engine.SmokeRight(), engine.SmokeWrong()} {
		ids := strings.ReplaceAll(strings.Trim(fmt.Sprint(c.TokenIDs), "[]"), " ", ",")
		assert.Contains(t, smokeHelp, ids+"  "+c.Name)
	}
	for _, command := range []string{"gate", "selftest"} {
		var out, errs bytes.Buffer
		require.Equal(t, exitDone, run([]string{command, "--help"}, &out, &errs))
		for _, want := range []string{"{ids_file}", "{text_file}", "{probe_names}", "{layers}", "{logits}", "{probes}", "{dir}", "Examples:", "77"} {
			assert.Contains(t, out.String(), want, command)
		}
	}
}
