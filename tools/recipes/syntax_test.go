package recipes_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bazelbuild/buildtools/build"
	"github.com/rhysd/actionlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// workflow checks a GitHub workflow by actionlint's rules.
func workflow(text string) error {
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		return err
	}
	found, err := l.Lint("github-actions.yml", []byte(text), nil)
	if err != nil {
		return err
	}
	for _, f := range found {
		return fmt.Errorf("line %d: %s", f.Line, f.Message)
	}
	return nil
}

// shardTest is what a BUILD file says of its sharded test.
type shardTest struct {
	srcs, args []string
	shards     int
}

func buildFile(text string) (*shardTest, error) {
	f, err := build.ParseBuild("BUILD.bazel", []byte(text))
	if err != nil {
		return nil, err
	}
	loaded := false
	for _, stmt := range f.Stmt {
		if l, ok := stmt.(*build.LoadStmt); ok {
			loaded = loaded || slices.ContainsFunc(l.To, func(i *build.Ident) bool { return i.Name == "sh_test" })
		}
	}
	rules := f.Rules("sh_test")
	if len(rules) != 1 || !loaded {
		return nil, fmt.Errorf("got %d sh_test, loaded %v, want one that is loaded", len(rules), loaded)
	}
	r := rules[0]
	for _, attr := range r.AttrKeys() {
		if !slices.Contains([]string{"name", "size", "srcs", "args", "data", "shard_count"}, attr) {
			return nil, fmt.Errorf("sh_test: got an attribute %q", attr)
		}
	}
	out := &shardTest{srcs: r.AttrStrings("srcs"), args: r.AttrStrings("args")}
	if out.shards, err = strconv.Atoi(r.AttrLiteral("shard_count")); err != nil || out.shards < 2 {
		return nil, fmt.Errorf("shard_count: got %q, want a number of at least 2", r.AttrLiteral("shard_count"))
	}
	for _, arg := range out.args {
		label := strings.TrimSuffix(strings.TrimPrefix(arg, "$(location "), ")")
		if !slices.Contains(r.AttrStrings("data"), label) {
			return nil, fmt.Errorf("args: got %s, want a location that is in data", arg)
		}
	}
	return out, nil
}

// The parts of a batch/v1 Job that the manifest uses. A field beside them is refused.
type (
	job struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       jobSpec
	}
	jobSpec struct {
		CompletionMode       string `yaml:"completionMode"`
		Completions          int
		Parallelism          int
		BackoffLimit         *int `yaml:"backoffLimit"`
		BackoffLimitPerIndex *int `yaml:"backoffLimitPerIndex"`
		PodFailurePolicy     *struct {
			Rules []struct {
				Action      string
				OnExitCodes struct {
					ContainerName string `yaml:"containerName"`
					Operator      string
					Values        []int
				} `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct{ Spec podSpec }
	}
	podSpec struct {
		RestartPolicy string `yaml:"restartPolicy"`
		Containers    []container
		Volumes       []struct {
			Name                  string
			PersistentVolumeClaim struct {
				ClaimName string `yaml:"claimName"`
			} `yaml:"persistentVolumeClaim"`
		}
	}
	container struct {
		Name, Image   string
		Env           []struct{ Name, Value string }
		Command, Args []string
		Resources     struct{ Requests map[string]string }
		VolumeMounts  []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	}
)

func (c container) env(name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// jobs reads a manifest, and holds it to what an Indexed Job needs
// (https://kubernetes.io/docs/concepts/workloads/controllers/job/).
func jobs(text string) ([]job, error) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	var out []job
	for {
		var j job
		if err := dec.Decode(&j); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := j.check(); err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Metadata.Name, err)
		}
		out = append(out, j)
	}
	return out, nil
}

func (j job) check() error {
	s, pod := j.Spec, j.Spec.Template.Spec
	switch {
	case j.APIVersion != "batch/v1" || j.Kind != "Job" || j.Metadata.Name == "":
		return fmt.Errorf("got %s %s, want a batch/v1 Job with a name", j.APIVersion, j.Kind)
	case len(pod.Containers) != 1 || pod.Containers[0].Image == "" || len(pod.Containers[0].Command) == 0:
		return errors.New("want one container with an image and a command")
	case pod.RestartPolicy != "Never" && pod.RestartPolicy != "OnFailure":
		return fmt.Errorf("restartPolicy: got %q, want Never or OnFailure", pod.RestartPolicy)
	}
	c := pod.Containers[0]
	for _, m := range c.VolumeMounts {
		if len(pod.Volumes) != 1 || pod.Volumes[0].Name != m.Name {
			return fmt.Errorf("volumeMounts: %s: no such volume", m.Name)
		}
	}
	if p := s.PodFailurePolicy; p != nil {
		if pod.RestartPolicy != "Never" {
			return errors.New("podFailurePolicy needs restartPolicy Never")
		}
		for _, r := range p.Rules {
			if r.OnExitCodes.ContainerName != c.Name || (r.OnExitCodes.Operator != "In" && r.OnExitCodes.Operator != "NotIn") || len(r.OnExitCodes.Values) == 0 {
				return fmt.Errorf("podFailurePolicy: %+v: want a container of the pod, In or NotIn, and values", r)
			}
			if r.Action == "FailIndex" && s.BackoffLimitPerIndex == nil {
				return errors.New("podFailurePolicy: FailIndex needs backoffLimitPerIndex")
			}
		}
	}
	if s.CompletionMode == "" {
		if s.Completions != 0 || s.BackoffLimitPerIndex != nil || c.env("PLUMBLINE_SHARDS") != "" {
			return errors.New("completionMode: got none, want Indexed: its pods are told an index")
		}
		return nil
	}
	if n := c.env("PLUMBLINE_SHARDS"); s.CompletionMode != "Indexed" || s.Completions < 2 || s.Parallelism != s.Completions || n != strconv.Itoa(s.Completions) {
		return fmt.Errorf("got completionMode %q, completions %d, parallelism %d, PLUMBLINE_SHARDS %q, want Indexed and three times the same number",
			s.CompletionMode, s.Completions, s.Parallelism, n)
	}
	return nil
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")))
}

// TestRecipesAreWellFormed, and each with one thing changed is not.
func TestRecipesAreWellFormed(t *testing.T) {
	checks := map[string]func(string) error{
		"github-actions.yml":  workflow,
		"BUILD.bazel":         func(s string) error { _, err := buildFile(s); return err },
		"kubernetes-job.yaml": func(s string) error { _, err := jobs(s); return err },
	}
	for file, check := range checks {
		require.NoError(t, check(read(t, file)), file)
	}
	for _, c := range []struct{ file, was, becomes string }{
		{"github-actions.yml", "runs-on", "runs_on"},
		{"github-actions.yml", "matrix.shard }}/$", "matrix.sharde }}/$"},
		{"github-actions.yml", "needs: shard", "needs: shards"},
		{"github-actions.yml", "!cancelled()", "!canceled()"},
		{"github-actions.yml", "if-no-files-found", "if-no-file-found"},
		{"github-actions.yml", "fail-fast: false", "fail-fast: perhaps"},
		{"BUILD.bazel", "shard_count = 4,\n)", "shard_count = 4,\n"},
		{"BUILD.bazel", "shard_count = 4", "shards = 4"},
		{"BUILD.bazel", "shard_count = 4", "shard_count = 1"},
		{"BUILD.bazel", "//model\",\n        \"@", "//models\",\n        \"@"},
		{"BUILD.bazel", `"sh_test")`, `"sh_binary")`},
		{"kubernetes-job.yaml", "completions: 4", "completions: 5"},
		{"kubernetes-job.yaml", "parallelism: 4", "parallelism: 2"},
		{"kubernetes-job.yaml", `value: "4"`, `value: "3"`},
		{"kubernetes-job.yaml", "completionMode: Indexed", "completionMode: NonIndexed"},
		{"kubernetes-job.yaml", "  completionMode: Indexed\n", ""},
		{"kubernetes-job.yaml", "backoffLimitPerIndex: 2", "backoffLimit: 2"},
		{"kubernetes-job.yaml", "containerName: gate", "containerName: gates"},
		{"kubernetes-job.yaml", "restartPolicy: Never", "restartPolicy: Always"},
		{"kubernetes-job.yaml", "volumeMounts", "volumemounts"},
		{"kubernetes-job.yaml", "- name: work\n              mountPath", "- name: other\n              mountPath"},
	} {
		text := read(t, c.file)
		changed := strings.Replace(text, c.was, c.becomes, 1)
		require.NotEqual(t, text, changed, "%s: %q", c.file, c.was)
		assert.Error(t, checks[c.file](changed), "%s: %q for %q", c.file, c.becomes, c.was)
	}
}
