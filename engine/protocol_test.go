package engine_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// talker is a fake behind the protocol.
type talker struct {
	*engine.ProtocolCandidate
	t       *testing.T
	log     string
	tempDir string
}

func protocolFake(t *testing.T, start string, o engine.ProgramOptions) *talker {
	t.Helper()
	f := &talker{t: t, log: filepath.Join(t.TempDir(), "log"), tempDir: t.TempDir()}
	o.TempDir, o.Env = f.tempDir, quickEnd
	p, err := engine.Protocol(fakeLine("protocol", "'"+start+"' '"+f.log+"'"), o)
	require.NoError(t, err)
	f.ProtocolCandidate = p
	return f
}

// starts is how many times the program was started.
func (f *talker) starts() int {
	data, err := os.ReadFile(f.log)
	if !os.IsNotExist(err) {
		require.NoError(f.t, err)
	}
	return strings.Count(string(data), "start\n")
}

// ask runs the case and demands that nothing is left of it.
func (f *talker) ask(name string) error {
	f.t.Helper()
	r, err := f.Run(f.t.Context(), request(name))
	if err == nil {
		wantRow(f.t, r.Layers, 0, 0, 4, 5)
		require.NoError(f.t, r.Close())
	}
	requireEmpty(f.t, f.tempDir)
	return err
}

// plainName keeps braces out of the names of temporary folders: in a command
// line they are placeholders.
func plainName(s string) string { return strings.NewReplacer("{", "(", "}", ")").Replace(s) }

func TestProtocolAnswers(t *testing.T) {
	f := protocolFake(t, "good", engine.ProgramOptions{})
	require.Zero(t, f.starts(), "nothing runs before the first call")
	caps, err := f.Capabilities(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.Capabilities{
		Info:   engine.Info{Name: "fake", Layers: "f32", Logits: "i32"},
		Probes: []engine.Probe{engine.ProbeEmbed}, Smoke: true,
	}, caps)
	info, err := f.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, caps.Info, info)
	for _, name := range []string{"good", "echo", "good:again", "echo:\"<ä>\"", "flood"} {
		require.NoError(t, f.ask(name))
	}
	require.Equal(t, 1, f.starts(), "one process answers them all")
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, err = f.Run(t.Context(), request("good"))
	require.ErrorIs(t, err, fs.ErrClosed)
}

func TestProtocolRequest(t *testing.T) {
	f := protocolFake(t, "good", engine.ProgramOptions{})
	seen := filepath.Join(t.TempDir(), "seen")
	req := request("request:" + seen)
	req.DecodeSteps, req.Probes, req.Case.Stop = 8, []engine.Probe{engine.ProbeEmbed}, []int{7, 2}
	r, err := f.Run(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []int{4, 5}, r.PromptIDs, "a program is handed ids and runs them")
	require.NoError(t, r.Close())
	var got map[string]any
	data, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &got))
	out := got["out"].(map[string]any)
	dir := out["dir"].(string)
	require.True(t, filepath.IsAbs(dir))
	require.Equal(t, map[string]any{
		"case": "request:" + seen, "token_ids": []any{4.0, 5.0}, "text": "foobar", "decode_steps": 8.0, "probes": []any{"embed"},
		"stop": []any{7.0, 2.0},
		"out": map[string]any{"dir": dir, "layers": filepath.Join(dir, "case.layers.bin"), "logits": filepath.Join(dir, "case.logits.bin"),
			"probes": filepath.Join(dir, "case.probes.safetensors")},
	}, got)

	// What there is none of is an empty list, which a program can walk.
	r, err = f.Run(t.Context(), request("request:"+seen))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	data, err = os.ReadFile(seen)
	require.NoError(t, err)
	require.Contains(t, string(data), `"decode_steps":0,"stop":[],"probes":[]`)

	r, err = f.Run(t.Context(), request("told"))
	require.NoError(t, err)
	require.Equal(t, []int{5}, r.PromptIDs, "unless it tells others")
	require.NoError(t, r.Close())

	r, err = f.Run(t.Context(), request("probes"))
	require.NoError(t, err)
	require.Equal(t, engine.ResponseFiles{Layers: "{dir}/case.layers.bin", Probes: "{dir}/case.probes.safetensors"}, r.Files)
	wantIDProbes(t, r)
	require.NoError(t, r.Close())
	requireClosed(t, f.tempDir)
	require.NoError(t, f.Close())
}

// TestProtocolBadAnswers: each is an error that says what is wrong, and the next
// case has a right answer, from a new process where the old one can't be trusted.
func TestProtocolBadAnswers(t *testing.T) {
	const malformed, process = "malformed", "process"
	for _, tt := range []struct {
		name      string
		kind      string
		restarted bool
		want      string
	}{
		{"late", process, true, "no answer within"},
		{"exit", process, true, `it ended in place of an answer: exit code 3; its standard error ends in "fatal: lost the device\n"`},
		{"half line", process, true, `after half a line, "{\"ok\":tr": exit code 3`},
		{"long", malformed, true, "line of more than 1048576 bytes"},
		{"endless", malformed, true, "line of more than 1048576 bytes"},
		{"nothing", malformed, true, "got ok, and no dump was written"},
		{"half file", malformed, false, "8 of 16 bytes after byte 0x20"},
		{"probes of no model", malformed, false, `got "hidden", want embed`},
		{"other types", malformed, false, `layers: got "int8-scaled", want "f32"`},
		{"reply:loading the model", malformed, true, `got no JSON object ("loading the model"); standard output is for answers alone`},
		{"reply:", malformed, true, "got no JSON object"},
		{"reply:[]", malformed, true, "got no JSON object"},
		{"reply:null", malformed, true, "got no JSON object"},
		{`reply:{}`, malformed, true, "got 0 of ok, unsupported and error"},
		{`reply:{"ok":true,"error":"x"}`, malformed, true, "got 2 of ok, unsupported and error"},
		{`reply:{"ok":false}`, malformed, true, "ok: got false, want true"},
		{`reply:{"ok":1}`, malformed, true, "ok: got 1, want true"},
		{`reply:{"ok":true,"ok":true}`, malformed, true, `got the key "ok" twice`},
		{`reply:{"ok":true} {"ok":true}`, malformed, true, "got something behind the object"},
		{`reply:{"ok":true`, malformed, true, "EOF"},
		{`reply:{"unsuported":"x"}`, malformed, true, `got the key "unsuported"`},
		{`reply:{"OK":true}`, malformed, true, `got the key "OK"`},
		{`reply:{"ok":true,"output_ids":[1]}`, malformed, true, `got the key "output_ids"`},
		{`reply:{"unsupported":1}`, malformed, true, "unsupported: got 1, want a string"},
		{`reply:{"error":null}`, malformed, true, "error: got null, want a string"},
		{`reply:{"ok":true,"case":"another"}`, malformed, true, `got the answer to case "another"`},
		{`reply:{"ok":true,"case":7}`, malformed, true, "case: got 7, want a string"},
		{"bad utf-8", malformed, true, "byte 10: got 0xFF, invalid UTF-8"},
		{`reply:{"ok":tru}`, malformed, true, "byte 6: ok: invalid character"},
	} {
		t.Run(plainName(tt.name), func(t *testing.T) {
			t.Parallel() // one of them waits for a deadline, which leaves a slow machine time to start
			o := engine.ProgramOptions{}
			if tt.name == "late" {
				o.Timeout = 3 * time.Second
			}
			f := protocolFake(t, "good", o)
			require.NoError(t, f.ask("good"))
			err := f.ask(tt.name)
			var bad *engine.MalformedError
			var dead *engine.ProcessError
			switch tt.kind {
			case malformed:
				require.ErrorAs(t, err, &bad)
			case process:
				require.ErrorAs(t, err, &dead)
				require.Equal(t, tt.name, dead.Case)
				require.Equal(t, tt.name == "late", dead.TimedOut)
			}
			require.ErrorContains(t, err, tt.want)
			if tt.restarted && tt.kind == malformed {
				require.ErrorContains(t, err, "case ")
			}
			require.NoError(t, f.ask("good"))
			want := 1
			if tt.restarted {
				want = 2
			}
			require.Equal(t, want, f.starts())
			require.NoError(t, f.Close())
		})
	}
}

func TestProtocolVerdicts(t *testing.T) {
	f := protocolFake(t, "good", engine.ProgramOptions{})
	err := f.ask(`reply:{"unsupported":"no MoE"}`)
	var un *engine.UnsupportedError
	require.ErrorAs(t, err, &un)
	require.Equal(t, "no MoE", un.Why)
	err = f.ask(`reply:{"error":"out of memory"}`)
	var none *engine.NoAnswerError
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, "out of memory")
	require.NoError(t, f.ask("good"))
	require.Equal(t, 1, f.starts())
	require.NoError(t, f.Close())
}

// TestProtocolTwice: the second of two answers is never the next case's.
func TestProtocolTwice(t *testing.T) {
	f := protocolFake(t, "good", engine.ProgramOptions{})
	require.NoError(t, f.ask("twice"))
	err := f.ask("good")
	// Seen before the request was sent, or in place of the answer to it.
	var bad *engine.MalformedError
	require.ErrorAs(t, err, &bad)
	require.Regexp(t, "got a line that nothing asked for|got ok, and no dump was written", err.Error())
	require.NoError(t, f.ask("good"))
	require.Equal(t, 2, f.starts())
	require.NoError(t, f.Close())

	f = protocolFake(t, "good", engine.ProgramOptions{})
	require.NoError(t, f.ask("twice"))
	require.ErrorContains(t, f.Close(), "got a line that nothing asked for")
}

func TestProtocolRestartsAreCounted(t *testing.T) {
	for _, tt := range []struct{ restarts, starts int }{{0, 4}, {1, 2}, {-1, 1}} {
		f := protocolFake(t, "good", engine.ProgramOptions{Restarts: tt.restarts})
		for range tt.starts {
			require.ErrorContains(t, f.ask("exit"), "exit code 3")
		}
		var dead *engine.ProcessError
		err := f.ask("good")
		require.ErrorAs(t, err, &dead)
		require.ErrorContains(t, err, "not started again")
		require.ErrorContains(t, err, "fatal: lost the device")
		require.Equal(t, tt.starts, f.starts())
		require.NoError(t, f.Close())
	}
}

func TestProtocolHandshake(t *testing.T) {
	for start, want := range map[string]string{
		`{"plumbline":2,"name":"x"}`:                                      "protocol version 2 not supported: this side speaks version 1",
		`{"plumbline":"1","name":"x"}`:                                    `protocol version "1" not supported`,
		`{"plumbline":1.0,"name":"x"}`:                                    "protocol version 1.0 not supported",
		`{"name":"x"}`:                                                    `handshake: program`,
		`{"plumbline":1}`:                                                 `the key "name": got nothing`,
		`{"plumbline":1,"name":""}`:                                       `name: got "", want a name`,
		`{"plumbline":1,"name":"x","layers":"f16"}`:                       `layers: got "f16", want "f32" or "int8-scaled"`,
		`{"plumbline":1,"name":"x","logits":"f64"}`:                       `logits: got "f64", want "f32" or "i32"`,
		`{"plumbline":1,"name":"x","probes":"embed"}`:                     `probes: got "embed", want a list of strings`,
		`{"plumbline":1,"name":"x","probes":["embed","blocks.0.hidden"]}`: `probes[1]: got "blocks.0.hidden", want embed`,
		`{"plumbline":1,"name":"x","smoke":"yes"}`:                        `smoke: got "yes", want true or false`,
		`{"plumbline":1,"name":"x","features":{}}`:                        `features: got {}, want a list of strings`,
		`{"plumbline":1,"name":"x","features":["a",1]}`:                   `features[1]: got 1, want a string`,
		`{"plumbline":1,"name":"x","features":["a"," "]}`:                 `features[1]: got " ", want a name`,
		`{"plumbline":1,"name":"x","features":["a","a"]}`:                 `features[1]: got "a" twice`,
		`{"plumbline":1,"name":"x","name":"x"}`:                           `got the key "name" twice`,
		"loading the model":                                               "got no JSON object",
		"crash":                                                           "exit code 3; its standard error ends in \"no such model\\n\"",
		"silent":                                                          "no answer within 1s",
	} {
		t.Run(plainName(start), func(t *testing.T) {
			o := engine.ProgramOptions{}
			if start == "silent" {
				o.Timeout = time.Second
			}
			f := protocolFake(t, start, o)
			_, err := f.Info(t.Context())
			require.ErrorContains(t, err, want)
			require.NoError(t, f.Close())
		})
	}
	p, err := engine.Protocol("/no/such/program", engine.ProgramOptions{})
	require.NoError(t, err)
	_, err = p.Info(t.Context())
	var setup *engine.SetupError
	require.ErrorAs(t, err, &setup)
}

func TestProtocolCapabilitiesMustStay(t *testing.T) {
	f := protocolFake(t, "changing", engine.ProgramOptions{})
	info, err := f.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "start 1", info.Name)
	require.ErrorContains(t, f.ask("exit"), "exit code 3")
	require.ErrorContains(t, f.ask("good"), "got other capabilities than at the first start")
	require.NoError(t, f.Close())
}

func TestProtocolUndeclaredDump(t *testing.T) {
	f := protocolFake(t, `{"plumbline":1,"name":"x"}`, engine.ProgramOptions{})
	require.ErrorContains(t, f.ask("good"), `key "layers": got nothing`)
	require.NoError(t, f.Close())
}

func TestProtocolClose(t *testing.T) {
	for start, want := range map[string]string{
		"stubborn":   "it did not end when its input did",
		"last words": "got a line that nothing asked for",
		"bad end":    "it failed at the end: exit code 6",
	} {
		t.Run(start, func(t *testing.T) {
			t.Parallel()
			f := protocolFake(t, start, engine.ProgramOptions{Grace: 2 * time.Second})
			require.NoError(t, f.ask("good"))
			require.ErrorContains(t, f.Close(), want)
		})
	}
}

func TestProtocolHonoursContext(t *testing.T) {
	f := protocolFake(t, "good", engine.ProgramOptions{})
	require.NoError(t, f.ask("good"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 2 { // one that is asked, one that waits for its turn
		wg.Go(func() {
			if _, err := f.Run(ctx, request("late")); err != context.DeadlineExceeded {
				t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
			}
		})
	}
	wg.Wait()
	requireEmpty(t, f.tempDir)
	// What it might still answer goes to nobody.
	require.NoError(t, f.ask("good"))
	require.Equal(t, 2, f.starts())
	require.NoError(t, f.Close())
}

func TestProtocolConcurrently(t *testing.T) {
	f := protocolFake(t, "good", engine.ProgramOptions{Restarts: 100})
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			name := []string{"good", "echo", "half file", `reply:{"error":"x"}`}[i%4]
			ids := []int{i, 3}
			r, err := f.Run(t.Context(), engine.Request{Case: engine.Case{Name: name, Text: text, TokenIDs: ids}})
			if i%4 > 1 {
				if err == nil {
					t.Errorf("case %s: got no error", name)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			row := make([]float64, 2)
			if _, err := r.Layers.Row(0, row); err != nil || row[0] != float64(i) {
				t.Errorf("row 0: got %v, %v, want %v", row, err, ids)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, f.starts())
	require.NoError(t, f.Close())
	requireEmpty(t, f.tempDir)
}

// TestProtocolAProgramThatDoesntRead: a request larger than a pipe holds.
func TestProtocolAProgramThatDoesntRead(t *testing.T) {
	t.Parallel()
	p, err := engine.Protocol(`sh -c 'read hello; echo "{\"plumbline\":1,\"name\":\"x\",\"layers\":\"f32\"}"; exec sleep 3600'`,
		engine.ProgramOptions{Timeout: 2 * time.Second})
	require.NoError(t, err)
	_, err = p.Info(t.Context())
	require.NoError(t, err)
	_, err = p.Run(t.Context(), engine.Request{Case: engine.Case{Name: "x", Text: strings.Repeat("x", 1<<20), TokenIDs: []int{1}}})
	var dead *engine.ProcessError
	require.ErrorAs(t, err, &dead)
	require.True(t, dead.TimedOut)
	require.NoError(t, p.Close())
}

// TestProtocolEagerGreeting: a program that greets before it is asked to.
func TestProtocolEagerGreeting(t *testing.T) {
	p, err := engine.Protocol(`sh -c 'echo "{\"plumbline\":1,\"name\":\"x\"}"; read hello; while read r; do echo "{\"unsupported\":\"no\"}"; done'`,
		engine.ProgramOptions{})
	require.NoError(t, err)
	info, err := p.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "x", info.Name)
	var un *engine.UnsupportedError
	_, err = p.Run(t.Context(), request("a"))
	require.ErrorAs(t, err, &un)
	require.NoError(t, p.Close())
}

// TestProtocolAnswerWithoutReading: a verdict on a request of which only a part
// was read is none.
func TestProtocolAnswerWithoutReading(t *testing.T) {
	p, err := engine.Protocol(`sh -c 'read hello; echo "{\"plumbline\":1,\"name\":\"x\"}"; head -c 10 > /dev/null; exec 0<&-; echo "{\"unsupported\":\"no\"}"; sleep 3600'`,
		engine.ProgramOptions{})
	require.NoError(t, err)
	_, err = p.Run(t.Context(), engine.Request{Case: engine.Case{Name: "x", Text: strings.Repeat("x", 1<<20), TokenIDs: []int{1}}})
	require.ErrorContains(t, err, "got an answer to a request that was not read")
	require.NoError(t, p.Close())
}
