package recipes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/plumbline-go/plumbline/conformance"
)

// stage is the program, a model and dumps of it: sound ones, and some under other
// prompts' names.
type stage struct{ bin, model, dumps, broken string }

func newStage(t *testing.T) stage {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program and runs it many times; run without -short")
	}
	for _, shell := range []string{"sh", "bash"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Skipf("the recipes are for %s: %v", shell, err)
		}
	}
	dir := t.TempDir()
	model, err := filepath.Abs("../../fixtures/qwen2-trained")
	require.NoError(t, err)
	s := stage{bin: filepath.Join(dir, "bin"), model: model, dumps: filepath.Join(dir, "dumps"), broken: filepath.Join(dir, "broken")}
	run(t, dir, nil, "go", "build", "-C", mustAbs(t, "../.."), "-o", filepath.Join(s.bin, "plumbline"), "./tools/plumbline")
	var lines strings.Builder
	for i, text := range []string{"Read all", "Close a file", "One of many"} {
		fmt.Fprintf(&lines, "{\"name\": \"p%d\", \"prompt\": %q}\n", i, text)
	}
	prompts := filepath.Join(dir, "prompts.jsonl")
	require.NoError(t, os.WriteFile(prompts, []byte(lines.String()), 0o666))
	program := filepath.Join(s.bin, "plumbline")
	run(t, dir, nil, program, "capture", "--quiet", "--model", model, "--prompts", prompts, "--out", s.dumps, "--max-new", "2")
	require.NoError(t, os.CopyFS(s.broken, os.DirFS(s.dumps)))
	for from, to := range map[string]string{"p0": "p1", "p1": "p0"} {
		b, err := os.ReadFile(filepath.Join(s.dumps, from+".layers.bin"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(s.broken, to+".layers.bin"), b, 0o666))
	}
	return s
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}

// run runs a command that has to end with 0.
func run(t *testing.T, dir string, env map[string]string, args ...string) {
	t.Helper()
	if code, out := exits(t, dir, env, args...); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, out)
	}
}

func exits(t *testing.T, dir string, env map[string]string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	b, err := cmd.CombinedOutput()
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode(), string(b)
	}
	require.NoError(t, err, string(b))
	return 0, string(b)
}

// path puts the program before what is there.
func (s stage) path() string { return s.bin + string(os.PathListSeparator) + os.Getenv("PATH") }

// verdict is the conclusion of a merged report, which has all cases.
func verdict(t *testing.T, dir string) conformance.Conclusion {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	var rep conformance.Report
	require.NoError(t, json.Unmarshal(b, &rep))
	assert.Len(t, rep.Cases, 3)
	assert.Nil(t, rep.Shard)
	return rep.Conclusion
}

// each runs a recipe on sound and on broken dumps.
func (s stage) each(t *testing.T, recipe func(t *testing.T, dumps string, code int) (merged string)) {
	t.Helper()
	for _, tc := range []struct {
		name, dumps string
		code        int
		want        conformance.Conclusion
	}{{"sound", s.dumps, 0, conformance.Conforms}, {"broken", s.broken, 1, conformance.Fails}} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, verdict(t, recipe(t, tc.dumps, tc.code))) })
	}
}

var expression = regexp.MustCompile(`\$\{\{ *([a-z.-]+) *\}\}`)

func TestGitHubRecipeRuns(t *testing.T) {
	s := newStage(t)
	var w struct {
		Env  map[string]string
		Jobs map[string]struct {
			Strategy struct {
				Matrix struct{ Shard []int }
			}
			Steps []struct {
				Name, Run string
				Env       map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "github-actions.yml")), &w))
	pkg, _, _ := strings.Cut(w.Env["PLUMBLINE"], "@")
	assert.DirExists(t, filepath.Join("../..", strings.TrimPrefix(pkg, "github.com/plumbline-go/plumbline/")), "what is installed")
	total := len(w.Jobs["shard"].Strategy.Matrix.Shard)
	s.each(t, func(t *testing.T, dumps string, code int) string {
		dir := t.TempDir()
		step := func(job, name string, values map[string]string) (int, string) {
			for _, st := range w.Jobs[job].Steps {
				if st.Name != name {
					continue
				}
				env := map[string]string{"PATH": s.path(), "MODEL": s.model, "DUMPS": dumps, "GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary.md")}
				for k, v := range st.Env {
					env[k] = expression.ReplaceAllStringFunc(v, func(e string) string {
						value, known := values[expression.FindStringSubmatch(e)[1]]
						require.True(t, known, e)
						return value
					})
				}
				return exits(t, dir, env, "bash", "-e", "-c", st.Run) // as GitHub's runner starts it
			}
			t.Fatalf("no step %s in job %s", name, job)
			return 0, ""
		}
		for _, i := range w.Jobs["shard"].Strategy.Matrix.Shard {
			got, out := step("shard", "Gate", map[string]string{"matrix.shard": fmt.Sprint(i), "strategy.job-total": fmt.Sprint(total)})
			require.Zero(t, got, out)
		}
		got, out := step("verdict", "Merge", nil)
		require.Equal(t, code, got, out)
		assert.Contains(t, read(t, filepath.Join(dir, "summary.md")), "## Plumbline: ")
		return filepath.Join(dir, "report")
	})
}

func TestBazelRecipeRuns(t *testing.T) {
	s := newStage(t)
	b, err := buildFile(read(t, "BUILD.bazel"))
	require.NoError(t, err)
	require.Equal(t, []string{"gate.sh"}, b.srcs)
	require.Len(t, b.args, 3)
	script := mustAbs(t, "gate.sh")
	s.each(t, func(t *testing.T, dumps string, code int) string {
		dir := t.TempDir()
		var codes []int
		for i := range b.shards {
			outputs := filepath.Join(dir, fmt.Sprintf("shard_%d_of_%d", i+1, b.shards), "test.outputs")
			require.NoError(t, os.MkdirAll(outputs, 0o777))
			status := filepath.Join(dir, fmt.Sprintf("status%d", i))
			got, out := exits(t, dir, map[string]string{
				"TEST_TOTAL_SHARDS": fmt.Sprint(b.shards), "TEST_SHARD_INDEX": fmt.Sprint(i), "TEST_SHARD_STATUS_FILE": status,
				"TEST_UNDECLARED_OUTPUTS_DIR": outputs,
			}, "sh", script, filepath.Join(s.bin, "plumbline"), s.model, dumps)
			assert.FileExists(t, status, out)
			codes = append(codes, got)
		}
		assert.Equal(t, code, slices.Max(codes), "Bazel passes where all shards do: %v", codes)
		line := regexp.MustCompile(`(?m)^    plumbline merge bazel-testlogs/plumbline/gate/(.*)$`).FindStringSubmatch(read(t, "README.md"))
		require.NotNil(t, line)
		got, out := exits(t, dir, map[string]string{"PATH": s.path()}, "sh", "-c", "plumbline merge --out merged "+line[1])
		assert.Equal(t, code, got, out)
		return filepath.Join(dir, "merged")
	})
}

func TestKubernetesRecipeRuns(t *testing.T) {
	s := newStage(t)
	all, err := jobs(read(t, "kubernetes-job.yaml"))
	require.NoError(t, err)
	require.Len(t, all, 2)
	s.each(t, func(t *testing.T, dumps string, code int) string {
		dir := t.TempDir()
		pod := func(j job, index int) (int, string) {
			c := j.Spec.Template.Spec.Containers[0]
			env := map[string]string{}
			for _, e := range c.Env {
				env[e.Name] = e.Value
			}
			env["PATH"], env["MODEL"], env["DUMPS"], env["REPORTS"] = s.path(), s.model, dumps, filepath.Join(dir, "reports")
			if j.Spec.CompletionMode == "Indexed" {
				env["JOB_COMPLETION_INDEX"] = fmt.Sprint(index)
			}
			return exits(t, dir, env, append(slices.Clone(c.Command), c.Args...)...)
		}
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "reports", "shards", "1"), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "reports", "shards", "1", conformance.EvidenceFile), nil, 0o666)) // evicted
		var codes []int
		for i := range all[0].Spec.Completions {
			got, out := pod(all[0], i)
			codes = append(codes, got)
			assert.Contains(t, out, fmt.Sprintf("shard %d of %d (index %d): ", i+1, all[0].Spec.Completions, i))
		}
		assert.Equal(t, code, slices.Max(codes), "%v", codes)
		got, out := pod(all[1], 0)
		assert.Equal(t, code, got, out)
		return filepath.Join(dir, "reports", "merged")
	})
}
