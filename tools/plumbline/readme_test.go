package main

import (
	"bytes"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

// skippedPrompts are those of the README's example: nine, of every kind.
var skippedPrompts = []string{"repeated_token", "digits", "special_then_text", "ends_special", "read_all", "mutex", "mutex_lock", "open_file", "write_docs"}

// dumpSkipped writes what an int8 engine of the trained checkpoint dumps that leaves
// out a layer.
func dumpSkipped(t *testing.T, dir string, layer int) {
	t.Helper()
	w, err := reference.LoadFS(fixtures.Model(), ".")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	all, err := fixtures.Prompts()
	require.NoError(t, err)
	m, err := mutant.Lookup("layer-skipped")
	require.NoError(t, err)
	faulty, err := m.Weights(engine.Resident(w), layer)
	require.NoError(t, err)
	cand := quant.FromWeights(faulty, quant.KVCacheInt8()).Candidate(engine.Scheme{RowsInt8: true})
	fw, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: "int8 engine", Layers: dumpfmt.LayersInt8Scaled, Logits: dumpfmt.LogitsFloat32}, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	found := 0
	for _, c := range all {
		for _, name := range skippedPrompts {
			if c.Name == name {
				writeAnswer(t, fw, cand, c)
				found++
			}
		}
	}
	require.Equal(t, len(skippedPrompts), found)
}

// writeAnswer writes a candidate's int8 rows and float logits of a case.
func writeAnswer(t *testing.T, fw *dumpfmt.FolderWriter, cand engine.Candidate, c engine.Case) {
	t.Helper()
	resp, err := cand.Run(t.Context(), engine.Request{Case: c, DecodeSteps: 8})
	require.NoError(t, err)
	defer resp.Close()
	cw, err := fw.Case(c.Name, dumpfmt.CaseFile{Text: c.Text, TokenIDs: c.TokenIDs, OutputIDs: resp.OutputIDs})
	require.NoError(t, err)
	h := resp.Layers.Header()
	lw, err := cw.Int8Layers(h.Rows, h.Width)
	require.NoError(t, err)
	row, codes := make([]float64, h.Width), make([]int8, h.Width)
	for i := range h.Rows {
		step, err := resp.Layers.Row(i, row)
		require.NoError(t, err)
		frac, exp := math.Frexp(step)
		for k, x := range row {
			codes[k] = int8(math.Round(x / step))
		}
		require.NoError(t, lw.WriteRow(dumpfmt.Scale{M: int64(frac * (1 << 31)), E: int64(exp - 31)}, codes))
	}
	require.NoError(t, lw.Commit())
	rows, vocab := resp.Logits.Shape()
	gw, err := cw.FloatLogits(dumpfmt.LogitHeader{Rows: rows, Vocab: vocab})
	require.NoError(t, err)
	values, floats := make([]float64, vocab), make([]float32, vocab)
	for i := range rows {
		require.NoError(t, resp.Logits.Row(i, values))
		for k, x := range values {
			floats[k] = float32(x)
		}
		require.NoError(t, gw.WriteRow(floats))
	}
	require.NoError(t, gw.Commit())
	require.NoError(t, cw.Commit())
}

// shown is the output that a document shows behind a command, wherever it does, as
// fragments: a line, or what stands on either side of an … in it. A line that begins with
// spaces goes on from the one before.
func shown(t *testing.T, document, command string) []string {
	t.Helper()
	var out []string
	for _, rest := range strings.Split(document, "$ "+command+"\n")[1:] {
		block, _, ok := strings.Cut(rest, "\n```")
		require.True(t, ok)
		block = regexp.MustCompile(`\n  +`).ReplaceAllString(block, " ")
		for _, line := range strings.Split(block, "\n") {
			for _, part := range strings.Split(line, "…") {
				if part = strings.Trim(part, " "); part != "" {
					out = append(out, part)
				}
			}
		}
	}
	return out
}

// number is a figure in a text; layers, rows and counts are figures too.
var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?`)

// agrees tells whether a fragment stands in a text, its decimals within a tenth of the
// text's: they are not the same on every CPU. Whole numbers are.
func agrees(fragment, text string) bool {
	mask := func(s string) string {
		return number.ReplaceAllStringFunc(s, func(n string) string {
			if strings.ContainsAny(n, ".e") {
				return "#"
			}
			return n
		})
	}
	decimals := func(s string) []float64 {
		var out []float64
		for _, n := range number.FindAllString(s, -1) {
			if strings.ContainsAny(n, ".e") {
				x, _ := strconv.ParseFloat(n, 64)
				out = append(out, x)
			}
		}
		return out
	}
	want := decimals(fragment)
	masked, text2 := mask(fragment), mask(text)
	for from := 0; ; {
		i := strings.Index(text2[from:], masked)
		if i < 0 {
			return false
		}
		before := strings.Count(text2[:from+i], "#")
		got := decimals(text)
		same := true
		for k, x := range want {
			same = same && math.Abs(got[before+k]-x) <= 0.1*math.Abs(x)
		}
		if same {
			return true
		}
		from += i + 1
	}
}

// TestReadmeExample: what the README shows is what the embedded int8 engine gets, with
// a layer left out.
func TestReadmeExample(t *testing.T) {
	slow(t)
	data, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	t.Setenv(modelEnv, "")
	t.Chdir(t.TempDir())
	dumpSkipped(t, "dumps", 17)
	require.NoError(t, os.CopyFS("qwen2-int8", fixtures.Model()))
	var out, errs bytes.Buffer
	require.Equal(t, exitFails, run([]string{"gate", "--model", "qwen2-int8", "--candidate", "dumps", "--quiet"}, &out, &errs), errs.String())
	if path := os.Getenv("PLUMBLINE_README_OUTPUT"); path != "" {
		require.NoError(t, writeFile(path, out.Bytes()))
	}
	fragments := shown(t, string(data), "plumbline gate --model qwen2-int8 --candidate dumps")
	require.Greater(t, len(fragments), 10)
	for _, f := range fragments {
		require.True(t, agrees(f, out.String()), "the README shows\n%s\nwhich is not in\n%s", f, out.String())
	}
}

// TestReadmeBegins: what somebody needs first is on the first screen.
func TestReadmeBegins(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	first, _, ok := strings.Cut(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n## ")
	require.True(t, ok)
	require.Less(t, strings.Count(first, "\n"), 40)
	for _, want := range []string{
		"\ngo test ./conformance", "\nmake test", "\ngo build -o plumbline ./tools/plumbline\n", "\n./plumbline gate --model DIR --candidate FOLDER\n",
		"\nconclusion: fails\n", "(#how-to-read-a-verdict)",
	} {
		require.Contains(t, first, want)
	}
}

// TestLinks: links inside the repository's documents lead somewhere.
func TestLinks(t *testing.T) {
	markdown, _ := documents(t)
	seen := 0
	for name, text := range markdown {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if target := m[1]; !strings.Contains(target, "://") {
				seen++
				if why := deadLink(markdown, name, target); why != "" {
					t.Errorf("%s: (%s): %s", name, target, why)
				}
			}
		}
	}
	require.Greater(t, seen, 20)
	require.NotEmpty(t, deadLink(markdown, "README.md", "#no-such-heading"))
	require.NotEmpty(t, deadLink(markdown, "README.md", "no/such/file.md"))
}

// link is a link of Markdown.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func deadLink(markdown map[string]string, from, target string) string {
	file, heading, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
		if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(to))); err != nil {
			return "no such file"
		}
	}
	if heading == "" {
		return ""
	}
	for _, line := range strings.Split(markdown[to], "\n") {
		title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		// As GitHub makes anchors of headings.
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(title), "")
		if strings.ReplaceAll(anchor, " ", "-") == heading {
			return ""
		}
	}
	return "no such heading"
}

func TestAgrees(t *testing.T) {
	const text = "row 18: error 0.1234, limit 2.00e-03 (2 times), row 19: error 7.5"
	for fragment, want := range map[string]bool{
		"row 18: error 0.125":       true,
		"row 18: error 0.15":        false,
		"row 17: error 0.1234":      false, // a whole number is what it is
		"limit 2.1e-03 (2 times)":   true,
		"limit 2.1e-03 (3 times)":   false,
		"row 19: error 7.6":         true,
		"error 7.6":                 true, // not the first place that looks like it
		"conclusion":                false,
		"row 19: error 7.5, limit ": false,
	} {
		require.Equal(t, want, agrees(fragment, text), fragment)
	}
	require.Equal(t, []string{"a", "b c", "d", "e"}, shown(t, "```\n$ x y\na\nb\n      c\n…\nd … e…\n```\nx\n", "x y"))
}
