package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/canonical"
	"github.com/plumbline-go/plumbline/golden/kernel"
	"github.com/plumbline-go/plumbline/golden/teacher"
	"github.com/plumbline-go/plumbline/golden/trace"
	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

// textInputs are the text files that people write or that pass through their editors,
// with what reads them.
var textInputs = map[string]struct {
	name, text string
	read       func(t *testing.T, path string) (any, error)
}{
	"prompts": {"p.jsonl", "{\"name\": \"a\", \"text\": \"x\", \"token_ids\": [1]}\n\n{\"name\": \"b\", \"prompt\": \"y\"}\n",
		func(_ *testing.T, path string) (any, error) {
			rows, err := parsePrompts(path)
			return rows, err
		}},
	"waivers": {"waivers.json", "{\n \"waivers\": [\n  {\"check\": \"LocalError\", \"case\": \"a\", \"reason\": \"known\", \"expires\": \"2030-01-01\"}\n ]\n}\n",
		func(t *testing.T, path string) (any, error) {
			f, err := os.Open(path)
			require.NoError(t, err)
			defer f.Close()
			return conformance.ReadWaivers(f, path)
		}},
	"engine.json": {"engine.json", "{\n \"name\": \"e\",\n \"layers\": \"f32\"\n}\n",
		func(_ *testing.T, path string) (any, error) { return dumpfmt.ReadEngineFile(filepath.Dir(path)) }},
	"case file": {"a.json", "{\n \"text\": \"a\\nb\",\n \"token_ids\": [1, 2]\n}\n",
		func(_ *testing.T, path string) (any, error) { return dumpfmt.ReadCaseFile(path) }},
	"groups": {"groups.json", "{\n \"one\": [\"a\"],\n \"two\": [\"b\"]\n}\n",
		func(t *testing.T, path string) (any, error) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			return bisect.ParseGroups(path, data)
		}},
	"inventory": {"small.json", smallInventory,
		func(_ *testing.T, path string) (any, error) {
			inv, err := kernel.Load(path)
			if err != nil {
				return nil, err
			}
			return []any{inv.Name, inv.Len(), inv.Ops, inv.Positions}, nil
		}},
	"comparison": {"raw.csv", "",
		func(t *testing.T, path string) (any, error) {
			f, err := os.Open(path)
			require.NoError(t, err)
			defer f.Close()
			inv, err := kernel.Parse("small.json", []byte(smallInventory))
			require.NoError(t, err)
			var rows []kernel.Row
			err = kernel.ReadCSV(f, path, inv, func(r kernel.Row) error {
				rows = append(rows, r)
				return nil
			})
			return rows, err
		}},
	"sources": {"texts.jsonl", "{\"id\": \"a\", \"domain\": \"d\", \"text\": \"x\"}\n{\"id\": \"b\", \"domain\": \"d\", \"text\": \"y\\r\\nz\"}\n",
		func(_ *testing.T, path string) (any, error) {
			s, err := trace.ReadSources(path, trace.Plan{}, trace.SourceOptions{})
			return s.Sources, err
		}},
	"summary": {"summary.json", "", // of testdata
		func(_ *testing.T, path string) (any, error) {
			p, err := teacher.Read(path)
			if err != nil {
				return nil, err
			}
			return p.Examples, nil
		}},
	"manifest": {"m.manifest.json", "", // of the goldens
		func(t *testing.T, path string) (any, error) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			return golden.ParseManifest(path, data)
		}},
	"config": {"config.json", moeConfig,
		func(t *testing.T, path string) (any, error) {
			require.NoError(t, writeMoEWeights(filepath.Join(filepath.Dir(path), "model.safetensors")))
			w, err := reference.Load(filepath.Dir(path))
			if err != nil {
				return nil, err
			}
			defer w.Close()
			return w.Arch(), nil
		}},
	"canonical JSON": {"x.json", "{\n \"a\": 1.50,\n \"b\": \"x\\r\\n\"\n}\n",
		func(t *testing.T, path string) (any, error) {
			v, err := canonical.ReadFile(path, 1<<20)
			if err != nil {
				return nil, err
			}
			return v.SHA256(canonical.InsertionOrder)
		}},
}

// TestTextWithOtherLineEnds: a file says the same with the line ends of Windows. One
// with a byte order mark says so, instead of naming a character that nobody sees.
func TestTextWithOtherLineEnds(t *testing.T) {
	for what, in := range textInputs {
		t.Run(what, func(t *testing.T) {
			text := in.text
			switch what {
			case "summary":
				data, err := os.ReadFile("testdata/targets/summary.json")
				require.NoError(t, err)
				text = strings.ReplaceAll(string(data), "\r\n", "\n")
			case "manifest":
				data, err := os.ReadFile("../../golden/qwen2-trained.manifest.json")
				require.NoError(t, err)
				text = string(data)
			case "comparison":
				text = smallCSV(t)
			}
			read := func(data string) (any, error) {
				path := filepath.Join(t.TempDir(), in.name)
				require.NoError(t, writeFile(path, []byte(data)))
				got, err := in.read(t, path)
				return stripPath(got, path), err
			}
			want, err := read(text)
			require.NoError(t, err)
			require.Contains(t, text+"\n", "\n")
			got, err := read(strings.ReplaceAll(text, "\n", "\r\n"))
			require.NoError(t, err)
			require.Equal(t, want, got)
			_, err = read("\xef\xbb\xbf" + text)
			require.ErrorContains(t, err, "byte order mark")
			require.ErrorContains(t, err, in.name)
		})
	}
}

// stripPath leaves out where a source was read.
func stripPath(got any, path string) any {
	if s, ok := got.([]trace.Source); ok {
		for i := range s {
			s[i].File = strings.TrimPrefix(s[i].File, filepath.Dir(path))
		}
	}
	return got
}

// smallCSV is what plumbline diff records of two folders of small.json.
func smallCSV(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	inv := filepath.Join(dir, "small.json")
	require.NoError(t, writeFile(inv, []byte(smallInventory)))
	for name, shift := range map[string]float64{"a": 0, "b": 0.0001} {
		require.NoError(t, writeTensorFolder(filepath.Join(dir, name), inv, shift))
	}
	var out, errs bytes.Buffer
	csv := filepath.Join(dir, "raw.csv")
	require.Equal(t, exitDone, run([]string{"diff", "--ref", filepath.Join(dir, "a"), "--cand", filepath.Join(dir, "b"), "--inventory", inv, "--csv", csv}, &out, &errs), errs.String())
	data, err := os.ReadFile(csv)
	require.NoError(t, err)
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

// TestNamesOfASystem: prompts whose files can't be stored, or kept apart, are refused
// before anything runs.
func TestNamesOfASystem(t *testing.T) {
	for _, tt := range []struct{ name, goos, want string }{
		{"paris", "windows", ""},
		{"berlin", "linux", ""},
		{"Berlin", "linux", "got \"Berlin\", the name of line 1"},
		{"berlin", "darwin", "got \"berlin\" beside \"Berlin\" of line 1"},
		{"aux", "windows", "Windows takes it for a device"},
		{"aux", "linux", ""},
	} {
		seen := map[string]promptRow{}
		require.NoError(t, nameTaken("p.jsonl", promptRow{name: "Berlin", line: 1}, seen, tt.goos))
		err := nameTaken("p.jsonl", promptRow{name: tt.name, line: 2}, seen, tt.goos)
		if tt.want == "" {
			require.NoError(t, err, tt.name)
			continue
		}
		require.ErrorContains(t, err, tt.want)
		require.ErrorContains(t, err, "p.jsonl:2")
	}
}

// TestCheckedOutWithLF: git writes every file as it is committed, whatever the system's
// line ends.
func TestCheckedOutWithLF(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	cmd := exec.Command(git, "ls-files", "--eol")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no checkout of git")
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Greater(t, len(lines), 1000)
	for _, line := range lines {
		// i/INDEX w/WORKTREE attr/ATTRIBUTES TAB FILE
		attrs, _, _ := strings.Cut(line, "\t")
		require.Regexp(t, `attr/.*(-text|eol=lf)`, attrs, line)
	}
}
