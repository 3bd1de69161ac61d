package report

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sebdah/goldie/v2"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// TestRenderings holds the layout of what people and their tools read.
func TestRenderings(t *testing.T) {
	all := samples()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, x := range []struct {
			format Format
			ending string
		}{{FormatText, ".txt"}, {FormatMarkdown, ".md"}, {FormatJUnit, ".xml"}} {
			t.Run(name+x.ending, func(t *testing.T) {
				var b bytes.Buffer
				require.NoError(t, Write(&b, all[name], x.format))
				goldie.New(t, goldie.WithFixtureDir("testdata/golden"), goldie.WithNameSuffix(x.ending)).Assert(t, name, b.Bytes())
			})
		}
	}
}

func textOf(t *testing.T, r *conformance.Report, o TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Text(&b, r, o))
	return b.String()
}

// Whatever a name or a reason holds, it writes no line of its own.
func TestTextKeepsNamesInTheirLines(t *testing.T) {
	const evil = "\x1b[31mred\nconclusion: conforms"
	r := &conformance.Report{
		Conclusion: conformance.Fails,
		Notes:      []string{"about " + evil},
		Power:      []string{evil},
		Checks: []conformance.Result{
			{ID: "A", Case: evil, Side: conformance.SideCandidate, Status: conformance.Error, Reason: "because of " + evil, Rule: "r"},
			{ID: "B", Case: evil, Side: conformance.SideCandidate, Status: conformance.Fail, Rule: "r"},
			{ID: "C", Case: evil, Side: conformance.SideReference, Status: conformance.Fail, Reason: evil},
		},
		Waivers:   []conformance.WaiverUse{{Waiver: conformance.Waiver{Check: evil, Case: evil, Reason: evil, Expires: evil}, Used: 1, Problem: evil}},
		Reproduce: evil,
	}
	text := textOf(t, r, TextOptions{})
	require.NotContains(t, text, "\x1b")
	require.Equal(t, 1, strings.Count("\n"+text, "\nconclusion: "))
	require.Contains(t, text, `\x1b[31mred\nconclusion: conforms`)
}

func TestTextHasTheReproducingCommandWholeAndLast(t *testing.T) {
	r := samples()["fails"]
	r.Reproduce = "plumbline gate --candidate " + strings.Repeat("x", 5000)
	lines := strings.Split(strings.TrimSpace(textOf(t, r, TextOptions{})), "\n")
	require.Equal(t, "reproduce: "+r.Reproduce, lines[len(lines)-1])
}

func TestTextShortensNames(t *testing.T) {
	r := samples()["fails"]
	name := strings.Repeat("n", 10_000)
	r.Checks[1].Case = name
	text := textOf(t, r, TextOptions{})
	require.Less(t, len(text), 3000)
	require.Contains(t, text, "(10000 characters)")
}

func TestTextOfManyMissingAnswers(t *testing.T) {
	r := samples()["fails"]
	missing := r.Checks[len(r.Checks)-1]
	for range 1000 {
		r.Checks = append(r.Checks, missing)
	}
	text := textOf(t, r, TextOptions{})
	require.Equal(t, answersShown, strings.Count(text, "ERROR"))
	require.Contains(t, text, "… and 981 more; the report's JSON has them all\n")
	require.Contains(t, text, "FAIL  LocalError", "what failed is not pushed out")
}

// Colour is the same text, with some words coloured.
func TestColourMarksWords(t *testing.T) {
	sgr := regexp.MustCompile("\x1b\\[[0-9]*m")
	for name, want := range map[string][]string{
		"conforms":         {"\x1b[32mconforms\x1b[0m", "7 \x1b[32mpass\x1b[0m"},
		"fails":            {"\x1b[31mfails\x1b[0m", "\n\x1b[31mERROR\x1b[0m ResidualShape", "\n\x1b[31mFAIL\x1b[0m  LocalError"},
		"partial":          {"\x1b[33mpartial\x1b[0m"},
		"nothing-judged":   {"\x1b[33mnothing judged\x1b[0m"},
		"reference-failed": {"\x1b[33mnothing judged\x1b[0m"},
		"waiver-problem":   {"\x1b[31mFAIL\x1b[0m  waiver of StopRule"},
		"baseline":         {"\x1b[31mFAIL\x1b[0m  worse than the baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			r := samples()[name]
			plain, coloured := textOf(t, r, TextOptions{}), textOf(t, r, TextOptions{Colour: true})
			require.NotContains(t, plain, "\x1b")
			require.Equal(t, plain, sgr.ReplaceAllString(coloured, ""))
			for _, w := range want {
				require.Contains(t, coloured, w)
			}
			require.Len(t, sgr.FindAllString(coloured, -1), 2*(len(want)+map[string]int{"fails": 1, "partial": 1, "reference-failed": 1, "waiver-problem": 2, "baseline": 2}[name]))
		})
	}
}

func TestRenderingsTellOfAWriterThatFails(t *testing.T) {
	full := errors.New("no space left on device")
	for _, f := range []Format{FormatText, FormatMarkdown, FormatJUnit, FormatJSON} {
		require.ErrorIs(t, Write(fullWriter{full}, samples()["fails"], f), full, f)
	}
	require.ErrorContains(t, Write(io.Discard, base(), "pdf"), `got "pdf", want text`)
}

type fullWriter struct{ err error }

func (w fullWriter) Write([]byte) (int, error) { return 0, w.err }
