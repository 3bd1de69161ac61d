package conformance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clientModule is a module like those that engine teams have: an engine of its own,
// gated in its own tests.
const clientModule = "testdata/client"

// goIn runs the go command in a module, offline, with this environment and no flags
// of whoever runs this test.
func goIn(t *testing.T, dir string, env []string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local", "ENGINE_FAULT=")
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// client leaves the tests that run the go command out of -short.
func client(t *testing.T) {
	t.Helper()
	onlyOnEmbedded(t)
	if testing.Short() {
		t.Skip("builds and tests another module; run without -short")
	}
	_, noModule := os.Stat(clientModule)
	if _, noGit := os.Stat("../.git"); noModule != nil && noGit != nil {
		t.Skip("not in a checkout: a module's archive leaves out the modules inside it")
	}
}

// clientTests are one per adapter.
var clientTests = []string{"TestValue", "TestFolder", "TestExec", "TestProtocol"}

// TestClientGatesItsEngine: the engine is clean, and the module's tests are green; a
// layer of it is broken, and each of them is red and names the layer.
func TestClientGatesItsEngine(t *testing.T) {
	client(t)
	out, err := goIn(t, clientModule, nil, "test", "-count=1", "-v", "./...")
	require.NoError(t, err, "go mod tidy in conformance/%s, if a version is the matter:\n%s", clientModule, out)
	for _, name := range clientTests {
		assert.True(t, strings.Contains(out, "--- PASS: "+name+" "), name)
		for _, check := range []string{"ResidualShape", "LocalError", "ResidualCandidate", "LogitCandidate", "NoVacuousPass"} {
			assert.True(t, strings.Contains(out, "--- PASS: "+name+"/"+check+" "), "%s: %s", name, check)
		}
	}
	out, err = goIn(t, clientModule, []string{"ENGINE_FAULT=skip-layer:9"}, "test", "-count=1", "-v", ".")
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed, out)
	for _, name := range clientTests {
		assert.True(t, strings.Contains(out, "--- FAIL: "+name+" "), name)
		assert.True(t, strings.Contains(out, "--- FAIL: "+name+"/LocalError "), name)
	}
	named := regexp.MustCompile(`conclusion: fails; first bad row: 10 \(blocks\.9\.resid_post\); sources: \[blocks\.9\.resid_post\]`)
	assert.Len(t, named.FindAllString(out, -1), len(clientTests))
}

// TestClientIsVetted: the module passes vet, and needs no change of its go.mod.
func TestClientIsVetted(t *testing.T) {
	client(t)
	out, err := goIn(t, clientModule, nil, "vet", "./...")
	require.NoError(t, err, out)
	out, err = goIn(t, clientModule, nil, "list", "-mod=readonly", "-deps", "-test", "./...")
	require.NoError(t, err, out)
}

// TestClientIsShort: what an adapter costs its user is ten lines.
func TestClientIsShort(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(clientModule, "conformance_test.go"))
	require.NoError(t, err)
	funcs := regexp.MustCompile(`(?ms)^func (Test\w+)\(.*?^}`).FindAllStringSubmatch(string(data), -1)
	var names []string
	for _, f := range funcs {
		names = append(names, f[1])
		assert.LessOrEqual(t, strings.Count(f[0], "\n"), 10, f[1])
	}
	assert.Equal(t, clientTests, names)
}

// copyClient copies the module, so that its files may change.
func copyClient(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "client")
	require.NoError(t, os.CopyFS(dir, os.DirFS(clientModule)))
	replaceOurs(t, dir)
	return dir
}

// replaceOurs has a copied go.mod find this module.
func replaceOurs(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	out, err := goIn(t, dir, nil, "mod", "edit", "-replace", "github.com/plumbline-go/plumbline="+root)
	require.NoError(t, err, out)
}

// TestClientKeepsItsFlags: a client's own -update, goldie's, works, and so do its
// flags of names that commands and tests of ours have.
func TestClientKeepsItsFlags(t *testing.T) {
	client(t)
	dir := copyClient(t)
	path := filepath.Join(dir, "golden", "testdata", "transcript.golden")
	recorded, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("another decode\n"), 0o666))
	out, err := goIn(t, dir, nil, "test", "-count=1", "./golden")
	require.Error(t, err, out)
	out, err = goIn(t, dir, nil, "test", "-count=1", "./golden", "-update")
	require.NoError(t, err, out)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(recorded), string(now))
	out, err = goIn(t, dir, nil, "test", "-count=1", "-v", "./golden", "-report", "here", "-candidate", "x", "-golden", "y", "-model", "")
	require.NoError(t, err, out)
	assert.Contains(t, out, "-report here is this test's own flag")
}

// heavy are what a user of package conformance must not get.
var heavy = []string{"gonum.org/v1/plot", "github.com/spf13/cobra", "github.com/chromedp", "github.com/stretchr/testify", "github.com/sebdah/goldie", "github.com/rogpeppe"}

// dependencies are the packages that args list with all they import, and those of
// them outside the standard library that have cgo files.
func dependencies(t *testing.T, dir, cgo string, args ...string) (all, withCgo []string) {
	t.Helper()
	out, err := goIn(t, dir, []string{"CGO_ENABLED=" + cgo},
		append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{len .CgoFiles}}{{end}}"}, args...)...)
	require.NoError(t, err, out)
	for line := range strings.Lines(out) {
		path, count, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		all = append(all, path)
		if count != "0" {
			withCgo = append(withCgo, path)
		}
	}
	return all, withCgo
}

// isHeavy returns those of the packages that no user must get.
func isHeavy(all []string) (out []string) {
	for _, path := range all {
		if slices.ContainsFunc(heavy, func(h string) bool { return path == h || strings.HasPrefix(path, h+"/") }) {
			out = append(out, path)
		}
	}
	return out
}

// TestConformanceIsLight: a module that imports package conformance alone gets no
// cgo, no plots, no command line and no test library.
func TestConformanceIsLight(t *testing.T) {
	client(t)
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(clientModule, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o666))
	}
	replaceOurs(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scratch.go"), []byte(`// Package scratch imports package conformance alone.
package scratch

import "github.com/plumbline-go/plumbline/conformance"

// Conclusion is one of its types.
type Conclusion = conformance.Conclusion
`), 0o666))
	for _, cgo := range []string{"0", "1"} {
		out, err := goIn(t, dir, []string{"CGO_ENABLED=" + cgo}, "vet", "./...")
		require.NoError(t, err, out)
		all, withCgo := dependencies(t, dir, cgo, "./...")
		assert.Contains(t, all, "github.com/plumbline-go/plumbline/conformance")
		assert.Empty(t, withCgo)
		assert.Empty(t, isHeavy(all))
	}
	// The same look finds what is there elsewhere.
	all, _ := dependencies(t, "..", "0", "./conformance/report/plot", "./tools/plumbline")
	assert.Contains(t, isHeavy(all), "gonum.org/v1/plot")
	assert.Contains(t, isHeavy(all), "github.com/spf13/cobra")
	_, withCgo := dependencies(t, "..", "1", "-tags", "tokenizers", "./fixtures/tokenizer")
	assert.NotEmpty(t, withCgo)
}
