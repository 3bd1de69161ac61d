package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sourceFolders are the folders of the module with Go files of a package.
func sourceFolders(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if d.IsDir() {
			if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "build") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") {
			dir := filepath.ToSlash(filepath.Dir(name))
			out[dir] = append(out[dir], path)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(out), 25)
	return out
}

// docProblem says what is wrong with a package's comment.
func docProblem(dir string, files []string) string {
	found := ""
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return err.Error()
		}
		if f.Doc == nil {
			continue
		}
		if base := filepath.Base(path); base != "doc.go" {
			return dir + ": its comment stands in " + base + ", want doc.go"
		}
		found = f.Doc.Text()
		want := "Package " + f.Name.Name + " "
		if f.Name.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(found, want) {
			return dir + ": doc.go: want it to begin with " + want
		}
	}
	switch {
	case found == "":
		return dir + ": got no doc.go"
	case !strings.Contains(found, "\n\n"):
		return dir + ": doc.go: got one paragraph, want limits and non-goals too"
	}
	return ""
}

// TestEveryPackageHasADoc: doc.go comes first, with more than a sentence.
func TestEveryPackageHasADoc(t *testing.T) {
	for dir, files := range sourceFolders(t) {
		onlyTests := true
		for _, f := range files {
			onlyTests = onlyTests && strings.HasSuffix(f, "_test.go")
		}
		if onlyTests {
			continue
		}
		if why := docProblem(dir, files); why != "" {
			t.Error(why)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"none": "package a\n", "short": "// Package a is short.\npackage a\n", "other": "// Something else.\n//\n// More.\npackage a\n",
	} {
		path := filepath.Join(dir, name, "doc.go")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, writeFile(path, []byte(text)))
		require.NotEmpty(t, docProblem(name, []string{path}), name)
	}
	path := filepath.Join(dir, "a.go")
	require.NoError(t, writeFile(path, []byte("// Package a is.\n//\n// More.\npackage a\n")))
	require.Contains(t, docProblem("a", []string{path}), "want doc.go")
}

// entryPoints are the functions that somebody begins with, by package.
var entryPoints = map[string][]string{
	"conformance":             {"Run", "Evaluate", "Exact", "Prove", "Smoke", "Builtin", "StandardProbes", "DefaultBudgets", "ReadWaivers", "Merge", "ShardFromEnv"},
	"conformance/report":      {"Read", "Text", "Markdown", "JUnit", "HTML", "WriteFolder"},
	"conformance/report/plot": {"HeatMap", "Bars"},
	"dumpfmt": {"Create", "CreateFolder", "OpenFolder", "CreateFloatLayers", "OpenFloatLayers", "CreateInt8Layers", "OpenInt8Layers", "NewFloatLogits",
		"NewInt32Logits", "CreateSafetensors", "OpenSafetensors", "CheckSafetensors", "ParseCaseFile", "ReadEngineFile", "CreateTarget", "Fingerprint", "EachPair"},
	"engine":                {"Dir", "Exec", "Protocol", "Func", "TensorFolder", "ParseProbe", "Block", "SmokeRight"},
	"engine/mutant":         {"Lookup"},
	"engine/quant":          {"New", "FromWeights", "NewCache"},
	"engine/reference":      {"Open", "Load", "LoadFS", "New", "NewRouter"},
	"engine/reference/gguf": {"Open"},
	"fixtures":              {"Prompts", "Model"},
	"fixtures/tokenizer":    {"LoadFS"},
	"golden":                {"OpenFolder", "Of", "NewRecording"},
	"golden/canonical":      {"Parse"},
	"golden/kernel":         {"Load", "Compare", "NewJudge"},
	"golden/metric":         {"RelativeL2", "CompareHeads"},
	"golden/teacher":        {"Read", "Parse", "Verify"},
	"golden/trace":          {"NewAccumulator", "NewWriter", "ReadSourcesFS", "JudgeRoute"},
}

// usedInExamples are the names that a package's Example functions use.
func usedInExamples(t *testing.T, files []string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, path := range files {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Example") {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					out[id.Name] = true
				}
				return true
			})
		}
	}
	return out
}

// TestEntryPointsHaveExamples: whoever begins with one finds how in its documentation.
func TestEntryPointsHaveExamples(t *testing.T) {
	folders := sourceFolders(t)
	for dir, names := range entryPoints {
		used := usedInExamples(t, folders[dir])
		for _, name := range names {
			if !used[name] {
				t.Errorf("%s.%s: no Example uses it", dir, name)
			}
		}
		require.False(t, used["NoSuchFunction"])
	}
}
