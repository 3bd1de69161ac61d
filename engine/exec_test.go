package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// fakeArgs are the arguments of every fake of fakeExec.
const fakeArgs = " {ids_file} {text_file} {dir} "

// execFake returns the fake as a candidate, and the folder in which it may leave
// nothing.
func execFake(t *testing.T, mode string, o engine.ProgramOptions) (*engine.ExecCandidate, string) {
	t.Helper()
	o.TempDir, o.Env = t.TempDir(), quickEnd
	name, arg, _ := strings.Cut(mode, ":")
	e, err := engine.Exec(fakeLine("exec", "'"+name+"'"+fakeArgs+arg), o)
	require.NoError(t, err)
	return e, o.TempDir
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "the case's folder is to be removed")
}

var float32Side = &engine.Info{Name: "declared", Layers: engine.LayersFloat32, Logits: engine.LogitsInt32}

func TestExecAnswers(t *testing.T) {
	e, temp := execFake(t, "right", engine.ProgramOptions{})
	info, err := e.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.Info{Name: "fake", Layers: "f32", Logits: "i32", KVCache: "int8"}, info)
	requireEmpty(t, temp)
	r, err := e.Run(t.Context(), request("any/name"))
	require.NoError(t, err)
	require.Nil(t, r.Logits)
	require.Nil(t, r.OutputIDs)
	require.Equal(t, []int{4, 5}, r.PromptIDs)
	require.Equal(t, engine.ResponseFiles{Layers: "{dir}/case.layers.bin"}, r.Files)
	require.Equal(t, engine.CaptureHeader{Rows: 2, Width: 2, Fingerprint: textPrint, Mode: 1}, r.Layers.Header())
	wantRow(t, r.Layers, 0, 0, 4, 5)
	wantRow(t, r.Layers, 1, 0, -4, -5)
	require.NoError(t, r.Close())
	requireEmpty(t, temp)
}

func TestExecAnswersWithLogitsAndTokens(t *testing.T) {
	e, temp := execFake(t, "output ids", engine.ProgramOptions{})
	r, err := e.Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.Equal(t, []int{6}, r.OutputIDs)
	row := make([]float64, 3)
	require.NoError(t, r.Logits.Row(0, row))
	if row[0] != 5 || row[1] != -7 || row[2] != 0 {
		t.Errorf("logits: got %v, want [5 -7 0]", row)
	}
	require.NoError(t, r.Close())
	requireEmpty(t, temp)
}

// TestExecPromptIDs: a program that was handed ids ran them unless it says
// otherwise; of one that was handed the text only what it says is known.
func TestExecPromptIDs(t *testing.T) {
	answer := "cp '" + folder(t, map[string]string{"layers": floatLayers}) + "/layers' \"$1/case.layers.bin\"; "
	tell := "printf %s \"$2\" > \"$1/case.json\"; "
	const told = `'{"text":"foobar","token_ids":[4,4,5]}'`
	for _, tt := range []struct {
		script, args string
		want         []int
	}{
		{answer, "{ids}", []int{4, 5}},
		{answer, "{ids_file}", []int{4, 5}},
		{answer, "{text_file} {ids}", []int{4, 5}},
		{answer, "{text_file}", nil},
		{answer, "{text_file} {{ids}}", nil},
		{answer + tell, told + " {ids}", []int{4, 4, 5}},
		{answer + tell, told + " {text_file}", []int{4, 4, 5}},
	} {
		e, err := engine.Exec("sh -c '"+strings.ReplaceAll(tt.script, "'", `'\''`)+"' sh {dir} "+tt.args, engine.ProgramOptions{Info: float32Side})
		require.NoError(t, err)
		r, err := e.Run(t.Context(), request("x"))
		require.NoError(t, err, tt.args)
		require.Equal(t, tt.want, r.PromptIDs, tt.args)
		require.NoError(t, r.Close())
	}
}

// TestExecLogitsWithoutTokens: a program need not tell its tokens to have its
// logits read.
func TestExecLogitsWithoutTokens(t *testing.T) {
	logits := filepath.Join(folder(t, map[string]string{"logits": int32Logits}), "logits")
	e, err := engine.Exec("cp '"+logits+"' {logits} {{ids}}", engine.ProgramOptions{Info: float32Side})
	require.Error(t, err, "the prompt is nowhere")
	require.Nil(t, e)
	e, err = engine.Exec(`sh -c 'cp "$1" "$2"' sh '`+logits+"' {logits} {ids}", engine.ProgramOptions{Info: float32Side})
	require.NoError(t, err)
	r, err := e.Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.Nil(t, r.OutputIDs)
	require.Equal(t, []int{4, 5}, r.PromptIDs)
	rows, vocab := r.Logits.Shape()
	require.Equal(t, []int{1, 3}, []int{rows, vocab})
	require.NoError(t, r.Close())
}

// wantIDProbes demands the probes of idProbes for the ids of request.
func wantIDProbes(t *testing.T, r *engine.Response) {
	t.Helper()
	require.NotNil(t, r.Probes)
	require.Equal(t, []engine.Probe{engine.ProbeEmbed, engine.ProbeFinalNorm}, r.Probes.Probes())
	for p, want := range map[engine.Probe][]float32{engine.ProbeEmbed: {4, 5}, engine.ProbeFinalNorm: {-4}} {
		m, err := r.Probes.Matrix(p)
		require.NoError(t, err)
		require.Equal(t, engine.Matrix{Rows: len(want), Width: 1, Data: want}, m, p)
	}
}

// TestExecAnswersWithProbes: probes alone are an answer.
func TestExecAnswersWithProbes(t *testing.T) {
	e, temp := execFake(t, "probes", engine.ProgramOptions{})
	r, err := e.Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.Nil(t, r.Layers)
	require.Equal(t, engine.ResponseFiles{Probes: "{dir}/case.probes.safetensors"}, r.Files)
	wantIDProbes(t, r)
	require.NoError(t, r.Close())
	requireEmpty(t, temp)
	requireClosed(t, temp)
}

// TestExecProbePlaceholders: {probes} is a place for an answer, {probe_names} are
// the names that the request wants.
func TestExecProbePlaceholders(t *testing.T) {
	probes := filepath.Join(folder(t, map[string]string{"p": idProbes([]int{4, 5})}), "p")
	wanted := []engine.Probe{engine.ProbeEmbed, engine.Block(3, engine.PartQRope)}
	for _, tt := range []struct {
		line   string
		shell  bool
		probes []engine.Probe
		want   string
	}{
		{`sh -c 'cp "$1" "$2"; printf %s "$# $3" > "$4"' sh FILE {probes} {probe_names} SEEN {ids}`, false, wanted, "5 embed,blocks.3.q_rope"},
		{`sh -c 'cp "$1" "$2"; printf %s "$# $3" > "$4"' sh FILE {probes} {probe_names} SEEN {ids}`, false, nil, "5 "},
		{`cp FILE {probes}; printf %s {ids}_'{probe_names}' > SEEN`, true, wanted, "4,5_embed,blocks.3.q_rope"},
		{`cp FILE {probes}; printf %s {ids}_'{probe_names}' > SEEN`, true, nil, "4,5_"},
	} {
		seen := filepath.Join(t.TempDir(), "seen")
		line := strings.NewReplacer("FILE", "'"+probes+"'", "SEEN", "'"+seen+"'").Replace(tt.line)
		e, err := engine.Exec(line, engine.ProgramOptions{Info: float32Side, Shell: tt.shell})
		require.NoError(t, err)
		req := request("x")
		req.Probes = tt.probes
		r, err := e.Run(t.Context(), req)
		require.NoError(t, err, line)
		wantIDProbes(t, r)
		require.NoError(t, r.Close())
		got, err := os.ReadFile(seen)
		require.NoError(t, err)
		require.Equal(t, tt.want, string(got), line)
	}
	e, err := engine.Exec("true {probes} {probe_names} {ids}", engine.ProgramOptions{Info: float32Side})
	require.NoError(t, err)
	req := request("x")
	req.Probes = make([]engine.Probe, 200_000)
	_, err = e.Run(t.Context(), req)
	var bad *engine.CommandError
	require.ErrorAs(t, err, &bad)
	require.Contains(t, err.Error(), "{probe_names}: got 199999 bytes, want at most 126976 in one argument")
	require.NotContains(t, err.Error(), "{ids_file}")
}

func TestExecNotes(t *testing.T) {
	e, _ := execFake(t, "trailer", engine.ProgramOptions{})
	r, err := e.Run(t.Context(), request("x"))
	require.NoError(t, err)
	wantRow(t, r.Layers, 1, 16, 127*16, 0)
	require.Equal(t, []string{"{dir}/case.layers.bin: 7 bytes after the last row were not read"}, r.Notes)
	require.NoError(t, r.Close())
}

func TestExecTakesWhatTheOptionsDeclare(t *testing.T) {
	e, _ := execFake(t, "undeclared", engine.ProgramOptions{Info: float32Side})
	info, err := e.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, *float32Side, info)
	r, err := e.Run(t.Context(), request("x"))
	require.NoError(t, err)
	wantRow(t, r.Layers, 0, 0, 4, 5)
	require.NoError(t, r.Close())
}

func TestExecBrokenAnswers(t *testing.T) {
	for _, tt := range []struct {
		mode       string
		info       *engine.Info
		file       string
		provenance bool
		want       string
	}{
		{"half", nil, "case.layers.bin", false, "11 of 16 bytes after byte 0x20"},
		{"garbage", nil, "case.layers.bin", false, "capture mode at byte 0x18"},
		{"another prompt", nil, "case.layers.bin", true, "want 0x85944171F73967E8"},
		{"another text", nil, "case.json", true, "text: got one of fingerprint 0xAF63DC4C8601EC8C, want 0x85944171F73967E8"},
		{"undeclared", nil, "engine.json", false, "got none"},
		{"undeclared", &engine.Info{Name: "no types"}, "engine.json", false, `key "layers"`},
		{"other types", float32Side, "engine.json", false, `layers: got "int8-scaled", want "f32"`},
		{"broken engine.json", nil, "engine.json", false, "got the end"},
		{"probes of no model", nil, "case.probes.safetensors", false, `engine: probe file {dir}/case.probes.safetensors: name of a tensor: got "hidden", want embed`},
		{"device", nil, "case.layers.bin", false, "file type"},
		{"folder", nil, "case.layers.bin", false, "file type"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			e, temp := execFake(t, tt.mode, engine.ProgramOptions{Info: tt.info})
			r, err := e.Run(t.Context(), request("x"))
			require.Nil(t, r)
			var bad *engine.MalformedError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "{dir}/"+tt.file, bad.File)
			require.Equal(t, tt.provenance, bad.Provenance)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), temp, "the folder is gone when the message is read")
			requireEmpty(t, temp)
		})
	}
}

func TestExecAnswersMustAgree(t *testing.T) {
	// The first answer declares; a later one that declares something else is
	// broken, whichever came first.
	dir := t.TempDir()
	script := filepath.Join(dir, "s.sh")
	require.NoError(t, os.WriteFile(script, []byte(`echo '{"name":"e","layers":"'$(cat "$1")'"}' > "$2/engine.json"; printf x > "$2/case.layers.bin"`), 0o666))
	kind := filepath.Join(dir, "kind")
	require.NoError(t, os.WriteFile(kind, []byte("f32"), 0o666))
	e, err := engine.Exec("sh "+script+" "+kind+" {dir} {ids}", engine.ProgramOptions{})
	require.NoError(t, err)
	_, err = e.Info(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(kind, []byte("int8-scaled"), 0o666))
	_, err = e.Run(t.Context(), request("x"))
	require.ErrorContains(t, err, `engine.json: layers: got "int8-scaled", want "f32" as declared before`)
}

func TestExecNoAnswer(t *testing.T) {
	for _, tt := range []struct {
		mode           string
		code           int
		signal         string
		timedOut       bool
		stderr, wanted string
	}{
		{"crash", 3, "", false, "out of memory in layer 7\n", `exit code 3; its standard error ends in "out of memory in layer 7\n"`},
		{"silent crash", 3, "", false, "", "exit code 3; nothing on its standard error"},
		{"talkative crash", 3, "", false, "", `exit code 3; its standard output ends in "assertion failed\n"`},
		{"nothing", 0, "", false, "forgot the dump\n", "exit code 0, and no dump was written"},
		{"folder gone", 0, "", false, "", "no dump was written"},
		{"hang", -1, "terminated", true, "", "no answer within 500ms"},
		{"no such mode", 4, "", false, "fake: no such mode: no such mode\n", "exit code 4"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			o := engine.ProgramOptions{Info: float32Side}
			if tt.timedOut {
				o.Timeout = 500 * time.Millisecond
			}
			e, temp := execFake(t, tt.mode, o)
			r, err := e.Run(t.Context(), request("x"))
			require.Nil(t, r)
			var dead *engine.ProcessError
			require.ErrorAs(t, err, &dead)
			require.Equal(t, "x", dead.Case)
			require.Equal(t, tt.code, dead.ExitCode)
			require.Equal(t, tt.signal, dead.Signal)
			require.Equal(t, tt.timedOut, dead.TimedOut)
			require.Equal(t, tt.stderr, dead.Stderr)
			require.ErrorContains(t, err, tt.wanted)
			requireEmpty(t, temp)
		})
	}
}

func TestExecInfoOfAProgramThatFails(t *testing.T) {
	e, temp := execFake(t, "crash", engine.ProgramOptions{})
	_, err := e.Info(t.Context())
	var dead *engine.ProcessError
	require.ErrorAs(t, err, &dead)
	requireEmpty(t, temp)
	// One that doesn't know the fake prompt can still say what it is.
	e, _ = execFake(t, "unsupported", engine.ProgramOptions{})
	info, err := e.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "fake", info.Name)
}

func TestExecUnsupported(t *testing.T) {
	e, temp := execFake(t, "unsupported", engine.ProgramOptions{})
	_, err := e.Run(t.Context(), request("x"))
	var un *engine.UnsupportedError
	require.ErrorAs(t, err, &un)
	require.Equal(t, &engine.UnsupportedError{What: `case "x"`, Why: "prompts of this length are not supported"}, un)
	requireEmpty(t, temp)
}

func TestExecKeepsTheEndOfAFlood(t *testing.T) {
	e, _ := execFake(t, "flood:pass", engine.ProgramOptions{})
	r, err := e.Run(t.Context(), request("x"))
	require.NoError(t, err)
	require.NoError(t, r.Close())

	e, _ = execFake(t, "flood:fail", engine.ProgramOptions{})
	_, err = e.Run(t.Context(), request("x"))
	var dead *engine.ProcessError
	require.ErrorAs(t, err, &dead)
	require.Equal(t, 5, dead.ExitCode)
	require.Len(t, dead.Stderr, 64<<10)
	require.True(t, strings.HasSuffix(dead.Stderr, "the last words\n"))
	require.Less(t, len(err.Error()), 4096, "a message stays readable")
}

func TestExecThatCantRun(t *testing.T) {
	e, err := engine.Exec("/no/such/program {ids} {dir}", engine.ProgramOptions{Info: float32Side})
	require.NoError(t, err)
	var setup *engine.SetupError
	_, err = e.Info(t.Context())
	require.ErrorAs(t, err, &setup)
	require.Equal(t, "/no/such/program", setup.Path)
	_, err = e.Run(t.Context(), request("x"))
	require.ErrorAs(t, err, &setup)

	e, temp := execFake(t, "right", engine.ProgramOptions{Info: float32Side})
	require.NoError(t, os.Remove(temp))
	_, err = e.Run(t.Context(), request("x"))
	require.ErrorAs(t, err, &setup)
	require.Equal(t, temp, setup.Path)
}

func TestExecRunsOneAtATime(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	e, temp := execFake(t, "alone:'"+lock+"'", engine.ProgramOptions{Info: float32Side})
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			r, err := e.Run(t.Context(), request("x"))
			if err != nil {
				t.Error(err)
				return
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	requireEmpty(t, temp)
}

func TestExecInParallel(t *testing.T) {
	e, temp := execFake(t, "right", engine.ProgramOptions{Parallel: 3})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			// Each has its own folder: the answers don't mix.
			ids := []int{i, 2 * i, 3}
			r, err := e.Run(t.Context(), engine.Request{Case: engine.Case{Name: "x", Text: text, TokenIDs: ids}})
			if err != nil {
				t.Error(err)
				return
			}
			row := make([]float64, 3)
			if _, err := r.Layers.Row(0, row); err != nil || row[0] != float64(i) || row[1] != float64(2*i) {
				t.Errorf("row 0: got %v, %v, want %v", row, err, ids)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	requireEmpty(t, temp)
}

func TestExecHonoursContext(t *testing.T) {
	e, temp := execFake(t, "hang", engine.ProgramOptions{Info: float32Side})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 2 { // one that runs, one that waits for its turn
		wg.Go(func() {
			if _, err := e.Run(ctx, request("x")); err != context.DeadlineExceeded {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
		})
	}
	wg.Wait()
	requireEmpty(t, temp)
	_, err := e.Info(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestExecPassesTheEnvironmentAndAShell(t *testing.T) {
	line := `test "$KIND" = x && printf '{"name":"e","layers":"f32"}' > {dir}/engine.json && head -c 3 {text_file} > {layers}`
	_, err := engine.Exec(line, engine.ProgramOptions{})
	var bad *engine.CommandError
	require.ErrorAs(t, err, &bad)
	e, err := engine.Exec(line, engine.ProgramOptions{Shell: true, Env: []string{"KIND=x"}})
	require.NoError(t, err)
	_, err = e.Info(t.Context())
	require.NoError(t, err)
	_, err = e.Run(t.Context(), request("x"))
	require.ErrorContains(t, err, "3 of 32 bytes")

	temp := filepath.Join(t.TempDir(), "a b")
	require.NoError(t, os.Mkdir(temp, 0o777))
	e, err = engine.Exec(line, engine.ProgramOptions{Shell: true, TempDir: temp, Info: float32Side})
	require.NoError(t, err)
	_, err = e.Run(t.Context(), request("x"))
	require.ErrorContains(t, err, "a shell would take apart")
	requireEmpty(t, temp)
}

func TestExecInputs(t *testing.T) {
	// {ids} and the two files, byte for byte.
	out := t.TempDir()
	script := `printf %s "$1" > "$4/ids"; cp "$2" "$4/ids_file"; cp "$3" "$4/text_file"; cp "$2" "$5/case.layers.bin"`
	e, err := engine.Exec("sh -c '"+script+"' sh x{ids}y {ids_file} {text_file} '"+out+"' {dir}", engine.ProgramOptions{Info: float32Side})
	require.NoError(t, err)
	_, err = e.Run(t.Context(), engine.Request{Case: engine.Case{Name: "x", Text: "täxt\n{ids}", TokenIDs: []int{4, 5, 1000000}}})
	require.Error(t, err) // the dump is none
	for name, want := range map[string]string{"ids": "x4,5,1000000y", "ids_file": "4\n5\n1000000\n", "text_file": "täxt\n{ids}"} {
		got, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
	_, err = e.Run(t.Context(), engine.Request{Case: engine.Case{Name: "x", Text: text, TokenIDs: make([]int, 100_000)}})
	require.ErrorContains(t, err, "use {ids_file}")
	_, err = e.Run(t.Context(), engine.Request{Case: engine.Case{Name: "x", Text: "\xff", TokenIDs: []int{1}}})
	require.ErrorContains(t, err, "UTF-8")
}
