package checkpages

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

const committed = "../../../conformance/checks"

// differences compares the pages that should be in a folder with those that are.
func differences(t *testing.T, dir string) []string {
	t.Helper()
	want, err := Files(conformance.Builtin().Checks())
	require.NoError(t, err)
	var out []string
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if _, ok := want[e.Name()]; !ok {
			out = append(out, e.Name()+" is of no check")
		}
	}
	for name, data := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			out = append(out, name+" is missing")
		case !bytes.Equal(got, data):
			out = append(out, name+" is stale")
		}
	}
	return out
}

func TestPagesAreThoseOfTheRegistry(t *testing.T) {
	require.Empty(t, differences(t, committed), "make docs writes them")
}

// The comparison sees what it is for.
func TestPagesControl(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checks")
	require.NoError(t, os.CopyFS(dir, os.DirFS(committed)))
	require.NoError(t, os.Remove(filepath.Join(dir, "LocalError.md")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Gone.md"), nil, 0o666))
	f, err := os.OpenFile(filepath.Join(dir, "README.md"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("x")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.ElementsMatch(t, []string{"LocalError.md is missing", "Gone.md is of no check", "README.md is stale"}, differences(t, dir))
}

// Both forms of a page hold all that the registry says.
func TestPageHoldsAll(t *testing.T) {
	for _, c := range conformance.Builtin().Checks() {
		p, err := Of(c)
		require.NoError(t, err)
		require.NotEmpty(t, p.Level, c.ID)
		require.Len(t, p.Faults, len(c.Controls))
		for _, text := range []string{string(p.Markdown()), string(p.Text())} {
			flat := strings.Join(strings.Fields(strings.ReplaceAll(text, `\|`, "|")), " ")
			for _, s := range append([]string{c.ID, c.Rule[1:], string(c.Level)}, c.Catches...) {
				require.Contains(t, flat, s, c.ID)
			}
			for _, f := range p.Faults {
				require.Contains(t, flat, f.Name, c.ID)
				require.Contains(t, flat, f.Bug, c.ID)
			}
			for _, b := range p.Bounds {
				require.Contains(t, flat, b, c.ID)
			}
		}
	}
}

// What judges results says all of itself too.
func TestResultsAreDescribed(t *testing.T) {
	pages := Results()
	require.Len(t, pages, len(conformance.ResultChecks()))
	for i, c := range conformance.ResultChecks() {
		p := pages[i]
		require.Contains(t, asked, c.ID)
		for _, text := range []string{string(p.Markdown()), string(p.Text())} {
			flat := strings.Join(strings.Fields(text), " ")
			for _, s := range append([]string{c.ID, c.Rule[1:], "judges the results", asked[c.ID].by, asked[c.ID].limits}, c.Catches...) {
				require.Contains(t, flat, s, c.ID)
			}
		}
		require.NotContains(t, string(p.Markdown()), "| fault |")
	}
}

func TestOfRefusesWhatNothingDescribes(t *testing.T) {
	c := *conformance.Builtin().Lookup("LocalError")
	c.Controls = []conformance.Control{{Mutant: "no-such-fault"}}
	_, err := Of(&c)
	require.ErrorContains(t, err, "checkpages: LocalError: suite: no-such-fault")
	c = *conformance.Builtin().Lookup("LocalError")
	c.Bounds = []string{"NoSuchBudget"}
	_, err = Of(&c)
	require.ErrorContains(t, err, `budget "NoSuchBudget"`)
}

func TestWrap(t *testing.T) {
	var b bytes.Buffer
	wrap(&b, "  * ", strings.Repeat("größer ", 39))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, lines, 3) // 13 words of 6 letters and a space in 96 columns
	for i, l := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(l), width)
		require.Equal(t, i > 0, strings.HasPrefix(l, "    "))
	}
	b.Reset()
	wrap(&b, "x: ", strings.Repeat("w", 300)) // a word that no line holds
	require.Equal(t, "x: "+strings.Repeat("w", 300)+"\n", b.String())
}
