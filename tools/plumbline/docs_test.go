package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/tools/internal/checkpages"
)

// Why commands of Python aren't run.
const (
	notHere   = "not run: makes a virtual environment"
	compiles  = "not run: compiles llama.cpp; make real judges what this adapter recorded"
	gigabytes = "not run: installs packages of gigabytes; make test-adapters-torch runs the adapter in those of the recorder"
)

// elsewhere are documented commands that testdata/docs doesn't run, and what does: a test
// of this package ("TestX"), a test of another ("package TestX"), a make target that
// .ci/run runs ("make X"), or "not run: " and why not.
var elsewhere = map[string]string{
	// The suite and the build.
	"go test ./conformance":                                           "make test",
	"go build -o plumbline ./tools/plumbline":                         "TestBuildsAsDocumented",
	"go get github.com/plumbline-go/plumbline@latest":                 "not run: needs a module proxy, and a version that is published",
	"go run ./fixtures/internal/makemodel -out fixtures/qwen2-seeded": "fixtures/internal/makemodel TestCommittedCheckpointIsReproduced",

	// Sweeps, each run once by a test of its own.
	"plumbline selftest":        "TestSelftest",
	"plumbline selftest --json": "TestSelftest",

	// What needs more than small files.
	"plumbline diff --ref dense --cand tq --inventory model/config.json --steps 1-64 --first-pos 100 --plots plots":     "TestScripts",
	"plumbline trace recorded raw --model ./v2-lite-chat --sources texts.jsonl --source prose/p1 --document trace.json": "TestRecordedTensorsOfTheEmulationConform",
	"plumbline gate --model X.gguf --candidate dumps":                                                                   "make real",
	"plumbline gate --model qwen2-int8 --candidate dumps":                                                               "TestReadmeExample",
	"git bisect run sh -c 'make dumps || exit 125; plumbline gate --git-bisect --model ./m --candidate ./dumps'":        "TestScripts",

	// The example client, clean and broken; testdata/docs/client.txtar runs its program.
	"go test ./...": "conformance TestClientGatesItsEngine",

	// Python: TestAdapterFlags holds the flags to the programs.
	"python3.11 -m venv .venv":                                                                                                                    notHere,
	"python3.11 -m venv .venv-llama":                                                                                                              notHere,
	".venv/bin/pip install --require-hashes -r requirements.txt":                                                                                  compiles,
	".venv-llama/bin/pip install --require-hashes -r tools/adapters/llamacpp/requirements.txt":                                                    compiles,
	".venv/bin/pip install --no-deps --require-hashes -r requirements.txt":                                                                        gigabytes,
	".venv/bin/pip install --no-deps --require-hashes -r tools/adapters/transformers/requirements.txt":                                            gigabytes,
	".venv/bin/python plumbline_llamacpp.py --model X.gguf --prompts FILE.jsonl --out dumps":                                                      compiles,
	".venv-llama/bin/python tools/adapters/llamacpp/plumbline_llamacpp.py --model X.gguf --prompts FILE.jsonl --out dumps":                        compiles,
	".venv/bin/python plumbline_transformers.py --model DIR --quantize torchao-int8 --prompts FILE.jsonl --out dumps":                             gigabytes,
	".venv/bin/python tools/adapters/transformers/plumbline_transformers.py --model DIR --quantize torchao-int8 --prompts FILE.jsonl --out dumps": gigabytes,
}

// patterns are documented commands of one form.
var patterns = []struct {
	form *regexp.Regexp
	by   string
}{
	// The pages of the checks: TestPagesNameTests says that the tests exist.
	{regexp.MustCompile(`^go test \./conformance -run 'Test[A-Za-z]+\$'( -args -model /abs/DIR -candidate /abs/FOLDER)?$`), "make test"},
	{regexp.MustCompile(`^go test \./conformance -run 'TestEveryCheckCanFail/[A-Za-z]+/'$`), "make test"},
}

// inScript are the command lines that testdata/docs and its companions run, word by word.
func inScript(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("testdata/docs/*.txtar")
	require.NoError(t, err)
	var text string
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		text += string(data)
	}
	out := map[string]bool{}
	for _, line := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if m := regexp.MustCompile(`^(?:exits [0-9]+|goes) ((?:plumbline|go)( .*)?)$`).FindStringSubmatch(line); m != nil {
			w, err := words(m[1])
			require.NoError(t, err)
			out[strings.Join(w, "\x00")] = true
		}
	}
	return out
}

// inside are the plumbline commands in a command line: itself, or those that it hands
// to a shell.
var inside = regexp.MustCompile(`plumbline [^'&|]*`)

// unaccounted says of a documented command what is wrong with it, or "".
func unaccounted(d documented, script map[string]bool) string {
	line := strings.TrimPrefix(d.line, "./")
	w, err := words(line)
	if err != nil {
		return err.Error()
	}
	if w[0] == "plumbline" {
		if err := parses(w[1:]); err != nil {
			return err.Error()
		}
	} else if strings.Contains(line, "sh -c") {
		for _, c := range inside.FindAllString(line, -1) {
			w, err := words(strings.TrimSpace(c))
			if err == nil {
				err = parses(w[1:])
			}
			if err != nil {
				return err.Error()
			}
		}
	}
	if script[strings.Join(w, "\x00")] || elsewhere[line] != "" {
		return ""
	}
	for _, p := range patterns {
		if p.form.MatchString(line) {
			return ""
		}
	}
	if target, ok := strings.CutPrefix(line, "make "); ok {
		return noTarget(target)
	}
	return "nothing runs it: testdata/docs doesn't, and elsewhere doesn't name it"
}

// parses tells whether plumbline knows the command and its flags.
func parses(args []string) error {
	root := newRoot(&app{})
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("unknown command %q", rest[0])
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
	}
	if help := cmd.Flags().Lookup("help"); help != nil && help.Changed {
		return nil
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// makefile is the text of the Makefile.
func makefile() string {
	data, _ := os.ReadFile("../../Makefile")
	return string(data)
}

func noTarget(args string) string {
	target, _, _ := strings.Cut(args, " ")
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).MatchString(makefile()) {
		return fmt.Sprintf("the Makefile has no target %q", target)
	}
	return ""
}

// TestDocumentedCommands: a command that a document or a help text shows is run by a
// test, or it is said what else runs it.
func TestDocumentedCommands(t *testing.T) {
	script := inScript(t)
	require.Greater(t, len(script), 40)
	all := allDocumented(t)
	require.Greater(t, len(all), 100)
	for _, d := range all {
		if why := unaccounted(d, script); why != "" {
			t.Errorf("%s: %s\n\t%s", d.where, d.line, why)
		}
	}
}

// The test sees what it is for.
func TestDocumentedCommandsControl(t *testing.T) {
	script := inScript(t)
	for line, want := range map[string]string{
		"plumbline gate --model ./m --candidate ./dumps --no-such-flag": "unknown flag: --no-such-flag",
		"plumbline gatee": "unknown command",
		"plumbline gate --model ./made-up --candidate ./dumps": "nothing runs it",
		"plumbline explain A B":                                "got 2 arguments",
		"git bisect run sh -c 'plumbline gate --no-such-flag'": "unknown flag",
		"make no-such-target":                                  "no target",
		"go test ./conformance -run NoSuchTest":                "nothing runs it",
		"python3 made-up.py":                                   "nothing runs it",
		"plumbline gate --model 'm":                            "quote",
	} {
		require.Contains(t, unaccounted(documented{line: line}, script), want, line)
	}
	md := "text\n```go\nplumbline a\n```\n```\n$ plumbline a \\\n  b  # c\nX=1 make d && go test e\nplumbline is a word here? no: a block\noutput\n```\nplumbline f\n```sh\n./plumbline g\n```\n"
	var lines []string
	for _, d := range inMarkdown("x.md", md) {
		lines = append(lines, d.line)
	}
	require.Equal(t, []string{"plumbline a b", "make d", "go test e", "plumbline is a word here? no: a block", "./plumbline g"}, lines)
	require.Equal(t, []documented{{"x", "plumbline a"}, {"x", "make c"}}, inText("x", "plumbline 0\n  plumbline a # b\n    plumbline deep\n  text\n  A=b make c"))
	require.Equal(t, []documented{{"x", "plumbline a --b"}, {"x", "plumbline c - d"}}, inText("x", "  plumbline a \\\n    --b\n  plumbline c - < x d > y"))
	require.Equal(t, []documented{{"x:2", "go run ./a"}}, inDoc("x", "// go run ./b\n//\tgo run ./a\n//\tx := 1"))
}

// What elsewhere names is there: commands in documents, tests, make targets, and a step
// of CI for those.
func TestElsewhereIsThere(t *testing.T) {
	ci, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, d := range allDocumented(t) {
		shown[strings.TrimPrefix(d.line, "./")] = true
	}
	require.Empty(t, unshown(elsewhere, shown), "in elsewhere, and in no document")
	require.Equal(t, []string{"make up"}, unshown(map[string]string{"make up": "TestScripts"}, shown))
	by := []string{"make test"}
	for _, what := range elsewhere {
		by = append(by, what)
	}
	for _, what := range by {
		if err := isThere(what, string(ci)); err != nil {
			t.Error(err)
		}
	}
	require.Error(t, isThere("TestNoSuchTest", string(ci)))
	require.Error(t, isThere("make no-such-target", string(ci)))
	require.Error(t, isThere("make help", string(ci)), "CI doesn't run it")
	require.Error(t, isThere("engine TestNoSuchTest", string(ci)))
	require.Error(t, isThere("not run: ", string(ci)))
}

// unshown are the commands that no document shows.
func unshown(commands map[string]string, shown map[string]bool) []string {
	var out []string
	for line := range commands {
		if !shown[line] {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

func isThere(what, ci string) error {
	if why, ok := strings.CutPrefix(what, "not run: "); ok {
		if why == "" {
			return fmt.Errorf("%q: got no reason", what)
		}
		return nil
	}
	if target, ok := strings.CutPrefix(what, "make "); ok {
		if why := noTarget(target); why != "" {
			return fmt.Errorf("%s: %s", what, why)
		}
		if !regexp.MustCompile(`(?m)^\s*([A-Z_]+=\S+ |timeout [0-9]+ )*make ` + regexp.QuoteMeta(target) + `$`).MatchString(ci) {
			return fmt.Errorf("%s: .ci/run doesn't run it", what)
		}
		return nil
	}
	dir, test := ".", what
	if pkg, name, ok := strings.Cut(what, " "); ok {
		dir, test = filepath.Join("../..", filepath.FromSlash(pkg)), name
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if strings.Contains(string(data), "\nfunc "+test+"(") {
			return nil
		}
	}
	return fmt.Errorf("%s: no such test", what)
}

// span is code inside a line of Markdown.
var span = regexp.MustCompile("`([^`\n]+)`")

// wrongSpan says of inline code what is wrong with it: an unknown command, flag or make
// target. What is shortened with … is looked at as far as it goes.
func wrongSpan(code string) string {
	code = strings.TrimPrefix(code, "./")
	switch {
	case strings.HasPrefix(code, "make ") && regexp.MustCompile(`^make [a-z0-9_-]+`).MatchString(code):
		return noTarget(regexp.MustCompile(`^make ([a-z0-9_-]+)`).FindStringSubmatch(code)[1])
	case !strings.HasPrefix(code, "plumbline "):
		return ""
	}
	w, err := words(code)
	if err != nil {
		return err.Error()
	}
	root := newRoot(&app{})
	root.InitDefaultHelpCmd()
	cmd, _, err := root.Find(w[1:])
	if err != nil {
		return err.Error()
	}
	if len(w) > 1 && cmd == root && !strings.HasPrefix(w[1], "-") && !slices.Contains([]string{"COMMAND", "…"}, w[1]) {
		return fmt.Sprintf("unknown command %q", w[1])
	}
	for _, word := range w {
		name, ok := strings.CutPrefix(word, "--")
		if name, _, _ = strings.Cut(name, "="); !ok || name == "help" {
			continue
		}
		if cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			return fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), name)
		}
	}
	return ""
}

// TestInlineCommands: commands, flags and targets that stand in a sentence exist.
func TestInlineCommands(t *testing.T) {
	markdown, _ := documents(t)
	seen := 0
	for name, text := range markdown {
		for i, line := range strings.Split(text, "\n") {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				seen++
				if why := wrongSpan(m[1]); why != "" {
					t.Errorf("%s:%d: `%s`: %s", name, i+1, m[1], why)
				}
			}
		}
	}
	require.Greater(t, seen, 200)
	require.Contains(t, wrongSpan("plumbline gate --nope"), "no flag --nope")
	require.Contains(t, wrongSpan("plumbline nope"), "unknown command")
	require.Contains(t, wrongSpan("make nope"), "no target")
	require.Empty(t, wrongSpan("plumbline selftest --exec …"))
}

// TestBuildsAsDocumented: the command that builds plumbline builds it.
func TestBuildsAsDocumented(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command line; run without -short")
	}
	path := filepath.Join(t.TempDir(), "plumbline.exe")
	cmd := exec.Command("go", "build", "-o", path, "./tools/plumbline")
	cmd.Dir = "../.."
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	out, err := exec.Command(path, "version").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "plumbline ")
}

// TestPagesNameTests: the tests that the pages of the checks run are there.
func TestPagesNameTests(t *testing.T) {
	for _, id := range checkIDs() {
		require.NoError(t, isThere("conformance Test"+id, ""))
	}
	for _, p := range checkpages.Results() {
		require.NotEmpty(t, p.Run, p.ID)
		for _, c := range p.Run {
			m := regexp.MustCompile(`-run '(Test[A-Za-z]+)\$'$`).FindStringSubmatch(c.Line)
			require.NotNil(t, m, c.Line)
			require.NoError(t, isThere("conformance "+m[1], ""))
		}
	}
	require.NoError(t, isThere("conformance TestEveryCheckCanFail", ""))
}

// TestAdapterFlags: the flags that documents give the adapters are the adapters'.
func TestAdapterFlags(t *testing.T) {
	seen := 0
	for _, d := range allDocumented(t) {
		for name, dir := range map[string]string{"plumbline_llamacpp.py": "llamacpp", "plumbline_transformers.py": "transformers"} {
			w, err := words(d.line)
			require.NoError(t, err)
			if !slices.ContainsFunc(w, func(s string) bool { return strings.HasSuffix(s, name) }) {
				continue
			}
			var text string
			for _, glob := range []string{"../adapters/" + dir + "/*.py", "../adapters/" + dir + "/*/*.py", "../adapters/python/*/*.py"} {
				files, err := filepath.Glob(glob)
				require.NoError(t, err)
				for _, f := range files {
					data, err := os.ReadFile(f)
					require.NoError(t, err)
					text += string(data)
				}
			}
			for _, flag := range w {
				if strings.HasPrefix(flag, "--") {
					seen++
					require.Contains(t, text, `"`+flag+`"`, "%s: %s", d.where, d.line)
				}
			}
		}
	}
	require.GreaterOrEqual(t, seen, 12)
}
