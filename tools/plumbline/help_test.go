package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/internal/checkpages"
)

// says runs a command line and returns both outputs.
func says(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	require.Equal(t, code, run(args, &out, &errs), "%v: %s", args, errs.String())
	return out.String(), errs.String()
}

func TestVersion(t *testing.T) {
	want := conformance.Tool()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		out, _ := says(t, exitDone, args...)
		require.Equal(t, "plumbline "+want.Version+", "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+"\n", out)
	}
	for _, args := range [][]string{{"version", "--json"}, {"--version", "--json"}} {
		out, _ := says(t, exitDone, args...)
		var got conformance.ToolInfo
		require.NoError(t, json.Unmarshal([]byte(out), &got))
		require.Equal(t, want, got)
	}
	require.Equal(t, "plumbline v1.2.3, commit 0123abcd with changes, go1.99, plan9/arm\n",
		versionText(conformance.ToolInfo{Version: "v1.2.3", Revision: "0123abcd", Modified: true, Go: "go1.99", OS: "plan9", Arch: "arm"}))
	says(t, exitBroken, "version", "extra")
}

func TestExplain(t *testing.T) {
	p, err := checkpages.Of(conformance.Builtin().Lookup("LocalError"))
	require.NoError(t, err)
	for _, args := range [][]string{{"explain", "LocalError"}, {"help", "check", "LocalError"}, {"help", "LocalError"}} {
		out, _ := says(t, exitDone, args...)
		require.Equal(t, string(p.Text()), out)
	}
	out, _ := says(t, exitDone, "explain", "LocalError", "--json")
	var got checkpages.Page
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, p, got)

	out, _ = says(t, exitDone, "explain")
	for _, id := range checkIDs() {
		require.Contains(t, out, id+" ")
	}
	out, _ = says(t, exitDone, "explain", "--json")
	var all []checkpages.Page
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all, len(checkIDs())+3)
	for _, id := range []string{"Features", "Baseline", "Repeat"} {
		require.Contains(t, out, `"ID": "`+id+`"`)
		page, _ := says(t, exitDone, "explain", id)
		require.Contains(t, page, "\n  None of its own: it judges the results of checks.", id)
		list, _ := says(t, exitDone, "explain")
		require.Contains(t, list, "\n"+id+" ")
	}

	for arg, want := range map[string]string{
		"localerror": "did you mean LocalError?",
		"baseline":   "did you mean Baseline?",
		"LocalEror":  "did you mean LocalError?",
		"Residual":   "did you mean ResidualShape or ResidualGolden or ResidualCandidate?",
		"xyz":        "`plumbline explain` lists them",
		"":           "`plumbline explain` lists them",
	} {
		_, errs := says(t, exitBroken, "explain", arg)
		require.Contains(t, errs, want, arg)
	}
	says(t, exitBroken, "explain", "LocalError", "LogitCandidate")
}

func TestHelpTopics(t *testing.T) {
	for _, topic := range []string{"verdicts", "dumps", "ci", "checks"} {
		out, _ := says(t, exitDone, "help", topic)
		require.Greater(t, strings.Count(out, "\n"), 10, topic)
		for _, line := range strings.Split(out, "\n") {
			if !strings.HasPrefix(line, "  plumbline ") { // a command stays in one line
				require.LessOrEqual(t, len([]rune(line)), 100, topic)
			}
		}
		root, _ := says(t, exitDone, "--help")
		require.Contains(t, root, "plumbline "+topic)
	}
	whole, _ := says(t, exitDone, "--help")
	out, _ := says(t, exitDone, "help")
	require.Equal(t, whole, out)
	gate, _ := says(t, exitDone, "gate", "--help")
	out, _ = says(t, exitDone, "help", "gate")
	require.Equal(t, gate, out)
	verify, _ := says(t, exitDone, "targets", "verify", "--help")
	out, _ = says(t, exitDone, "help", "targets", "verify")
	require.Equal(t, verify, out)

	for arg, want := range map[string]string{
		"chekcs":         "did you mean check or checks?",
		"verdict":        "did you mean verdicts?",
		"TensorInventry": "did you mean check TensorInventory?",
		"nonsense":       "plumbline --help lists",
	} {
		_, errs := says(t, exitBroken, "help", arg)
		require.Contains(t, errs, want)
	}
	_, errs := says(t, exitBroken, "help", "check")
	require.Contains(t, errs, "got 0 arguments, want one ID")
	_, errs = says(t, exitBroken, "help", "gate", "extra")
	require.Contains(t, errs, `unknown topic "gate extra"`)
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, _ := says(t, exitDone, "completion", shell)
		require.Contains(t, out, "__complete", shell)
		out, _ = says(t, exitDone, "completion", shell, "--help")
		require.Contains(t, out, "for every new session", shell)
	}
	_, errs := says(t, exitBroken, "completion")
	require.Contains(t, errs, "got no shell")
	_, errs = says(t, exitBroken, "completion", "tcsh")
	require.Contains(t, errs, `got the shell "tcsh"`)

	for _, tt := range []struct {
		args      []string
		want      []string
		directive string // cobra's: 4 no files, 8 files by ending, 16 folders
	}{
		{[]string{"gate", "--dtype", ""}, []string{"float32", "float64"}, ":4"},
		{[]string{"capture", "--dtype", ""}, []string{"float32", "float64", "bfloat16"}, ":4"},
		{[]string{"gate", "--candidate", ""}, nil, ":16"},
		{[]string{"gate", "--prompts", ""}, []string{"jsonl"}, ":8"},
		{[]string{"gate", "--layers", ""}, []string{"f32", "int8-scaled"}, ":4"},
		{[]string{"trace", "--attention", ""}, []string{"fused", "eager"}, ":4"},
		{[]string{"explain", ""}, explained(), ":4"},
		{[]string{"explain", "LocalError", ""}, nil, ":4"},
		{[]string{"help", "check", ""}, explained(), ":4"},
	} {
		out, _ := says(t, exitDone, append([]string{"__completeNoDesc"}, tt.args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.Equal(t, append(append([]string{}, tt.want...), tt.directive), lines, tt.args)
	}
	out, _ := says(t, exitDone, "__completeNoDesc", "help", "")
	for _, name := range []string{"check", "verdicts", "gate"} {
		require.Contains(t, strings.Split(out, "\n"), name)
	}
}

// The script for bash is one that bash reads.
func TestCompletionScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	out, _ := says(t, exitDone, "completion", "bash")
	path := filepath.Join(t.TempDir(), "plumbline.bash")
	require.NoError(t, writeFile(path, []byte(out)))
	text, err := exec.Command(bash, "-n", path).CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.NoError(t, writeFile(path, []byte(out+"\nif then\n")))
	require.Error(t, exec.Command(bash, "-n", path).Run(), "bash -n passes whatever it is given")
}
