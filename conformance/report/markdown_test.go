package report

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	gmtext "github.com/yuin/goldmark/text"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// hostile are names and messages that mean something to a renderer.
var hostile = []string{
	"<script>alert(1)</script>", "<!-- x", "x`<b>`y", "x`@octocat`y", "<script src", "<?php", "</details><img src=x onerror=alert(1)>", "a|b|c", `a\|b`, `\`, "`", "``` \n# heading", "line\nbreak\r\n| a | b |",
	"@octocat", "x@y.z mail a@example.com", "#123", "owner/repo#7", "GH-12", "https://example.com/a", "www.example.com", "mailto:a@b.c",
	"[a](javascript:alert(1))", "![i](http://x/y.png)", "[^1]", "**bold** _it_ ~~del~~", "$x^2$", ":tada:", "# heading", "- item", "1. item", "> quote", "===", "---",
	"&lt;b&gt; &#60;", "\u202eevil\u202c", "שלום עולם", "\x1b[31mred", "\x00\xff\xfe", strings.Repeat("n", 10_000), strings.Repeat("|", 300), strings.Repeat("`", 300), " ", "",
}

// hostileReport has a hostile text wherever a report has one.
func hostileReport(text string) *conformance.Report {
	r := samples()["fails"]
	waives(r)
	compares(r)
	r.Conclusion, r.Kind = conformance.Conclusion(text), at(conformance.Kind(text))
	r.Source, r.Sources = at(engine.Probe(text)), []engine.Probe{engine.Probe(text), engine.Probe(text)}
	r.Power, r.Notes, r.Reproduce = []string{text}, []string{text}, text[:min(len(text), 1000)]
	v := r.Cases["rome"]
	v.Reason, v.File = text, text
	r.Cases[text] = v
	for i := range r.Checks {
		c := &r.Checks[i]
		c.ID, c.Case, c.Reason, c.Rule = text, text, text, text
		for k := range c.Findings {
			f := &c.Findings[k]
			f.Probe, f.Metric, f.Limit.Source, f.At.File, f.Detail = engine.Probe(text), text, text, text, text
		}
	}
	reference := r.Checks[0]
	reference.Side = conformance.SideReference
	r.Checks = append(r.Checks, reference)
	r.Candidate, r.Golden.Name, r.Tool.Version, r.Times.Started = engine.Info{Name: text, Version: text, Model: text}, text, text, text
	r.NotJudged = []conformance.NotJudged{{ID: text, WouldRun: text}}
	w := conformance.Waiver{Check: text, Case: text, Probe: text, Reason: text, Expires: text}
	r.Waivers = []conformance.WaiverUse{{Waiver: w, Used: 1, Problem: text}}
	r.Checks[1].Waived = &w
	b := r.Baseline
	b.Name, b.NoiseBasis, b.Noise.Source = text, text, text
	b.Regressions[0] = conformance.Change{Check: text, Case: text, Probe: text, Metric: text, Detail: text}
	b.Improvements[0] = b.Regressions[0]
	r.About = []conformance.CheckInfo{{ID: text, Rule: text, Catches: []string{text}, Controls: []string{text}, Level: conformance.Core}}
	return r
}

// parsed is Markdown as GitHub's dialect reads it.
func parsed(src []byte) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser().Parse(gmtext.NewReader(src))
}

// shape is what a page consists of: headings, tables with their columns, lists, blocks.
func shape(t *testing.T, src []byte) []string {
	t.Helper()
	var out []string
	require.NoError(t, ast.Walk(parsed(src), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			out = append(out, fmt.Sprintf("h%d", n.Level))
		case *extast.Table:
			out = append(out, fmt.Sprintf("table of %d columns", len(n.Alignments)))
		case *extast.TableRow:
			out = append(out, fmt.Sprintf("row of %d cells", n.ChildCount()))
		case *ast.List, *ast.ListItem, *ast.FencedCodeBlock, *ast.CodeBlock, *ast.Blockquote, *ast.ThematicBreak:
			out = append(out, n.Kind().String())
		case *ast.HTMLBlock:
			element := string(n.Lines().Value(src))
			out = append(out, "HTML "+regexp.MustCompile(`>[^<]*<`).ReplaceAllString(strings.TrimSpace(element), "><"))
		case *ast.RawHTML, *ast.Link, *ast.Image, *ast.AutoLink, *ast.Emphasis, *extast.Strikethrough, *extast.FootnoteLink, *extast.TaskCheckBox:
			out = append(out, "FOREIGN "+n.Kind().String())
		}
		return ast.WalkContinue, nil
	}))
	return out
}

// A hostile text changes nothing in the structure of a page, and is no element in it.
func TestMarkdownKeepsHostileTextsText(t *testing.T) {
	want := shape(t, []byte(markdown(hostileReport("plain"), maxMarkdown)))
	require.Contains(t, want, "table of 7 columns")
	require.Contains(t, want, "row of 7 cells")
	require.Contains(t, want, "HTML <details><summary></summary>")
	for i, h := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			page := []byte(markdown(hostileReport(h), maxMarkdown))
			got := shape(t, page)
			for _, s := range got {
				assert.NotContains(t, s, "FOREIGN", "%.60q", h)
			}
			if strings.TrimSpace(h) != "" { // nothing leaves no line behind
				assert.Equal(t, want, got, "%.60q", h)
			}
		})
	}
}

// What would be turned into a mention, a reference or a link from the text of the
// rendered page, outside of code: that is where GitHub looks for them.
func TestMarkdownNotifiesNobody(t *testing.T) {
	seeks := regexp.MustCompile(`(?i)@[a-z0-9]|#[0-9]|\bgh-[0-9]|https?://|www\.[a-z]|:[a-z0-9_+-]+:`)
	hits := 0
	for _, h := range hostile {
		if seeks.MatchString(h) {
			hits++
		}
		src := []byte(markdown(hostileReport(h), maxMarkdown))
		require.NoError(t, ast.Walk(parsed(src), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if n.Kind() == ast.KindCodeSpan || n.Kind() == ast.KindFencedCodeBlock {
				return ast.WalkSkipChildren, nil
			}
			if n, ok := n.(*ast.Text); ok && entering {
				shown := unescape(string(n.Segment.Value(src)))
				assert.False(t, seeks.MatchString(shown), "%q shows %q", h, shown)
			}
			return ast.WalkContinue, nil
		}))
	}
	require.Greater(t, hits, 8, "the texts have something to find")
}

func unescape(s string) string {
	return html.UnescapeString(regexp.MustCompile(`\\([[:punct:]])`).ReplaceAllString(s, "$1"))
}

func TestMarkdownShowsWhatItEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"a|b":             "a|b",
		`a\|b`:            `a\|b`,
		"<b> & `c`":       "<b> & `c`",
		"**x** _y_ [z]":   "**x** _y_ [z]",
		"$1 ~2~":          "$1 ~2~",
		"- no list":       "- no list",
		"12. no list":     "12. no list",
		"@octocat":        "@\u200boctocat",
		"see #12":         "see #\u200b12",
		"http://x":        "http:\u200b//x",
		"WWW.x":           "WWW.\u200bx",
		":tada:":          ":\u200btada:",
		":tada:tada:":     ":\u200btada:\u200btada:",
		"9:30:tada:":      "9:30:\u200btada:",
		":100:":           ":\u200b100:",
		"12:30:15":        "12:30:15",
		"tab\there":       `"tab\there"`,
		"\u202ex":         `"\u202ex"`,
		"שלום":            "\u2068שלום\u2069",
		"plain (text), 1": "plain (text), 1",
	} {
		var b bytes.Buffer
		require.NoError(t, goldmark.New(goldmark.WithExtensions(extension.GFM)).Convert([]byte(cells("x")+cells("---")+cells(prose(in, 100))), &b))
		cell := regexp.MustCompile(`(?s)<td>(.*)</td>`).FindStringSubmatch(b.String())
		require.NotNil(t, cell, "%q: %s", in, b.String())
		require.Equal(t, want, strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(cell[1]))
	}
}

// manyFailures is a report of n cases of which each fails n checks.
func manyFailures(checks, cases int) *conformance.Report {
	r := samples()["fails"]
	one := failingResult("berlin", 0.5, 0.25)
	r.Checks = nil
	for c := range cases {
		name := fmt.Sprintf("case %d <script> | %s", c, strings.Repeat("n", 60))
		r.Cases[name] = conformance.CaseVerdict{Judged: true, FirstBadRow: at(c), Source: r.Source}
		for k := range checks {
			x := one
			x.ID, x.Case = fmt.Sprintf("Check%d", k), name
			r.Checks = append(r.Checks, x)
		}
	}
	return r
}

func TestMarkdownFitsIntoAComment(t *testing.T) {
	r := manyFailures(1000, 20)
	for range 1000 {
		r.Power = append(r.Power, strings.Repeat("power ", 100))
		r.Waivers = append(r.Waivers, conformance.WaiverUse{Waiver: conformance.Waiver{Check: "StopRule", Case: "x", Reason: strings.Repeat("why ", 100)}, Problem: "unused"})
	}
	for _, most := range []int{maxMarkdown, 20_000, 8000, 3000, 1000} {
		src := []byte(markdown(r, most))
		require.LessOrEqual(t, len(src), most)
		got := shape(t, src)
		open, closed, fences := 0, 0, 0
		for _, s := range got {
			require.NotContains(t, s, "FOREIGN")
			open += strings.Count(s, "HTML <details>")
			closed += strings.Count(s, "HTML </details>")
			if s == "FencedCodeBlock" {
				fences++
			}
		}
		require.Equal(t, open, closed)
		require.Equal(t, 1, fences, "the command is always there")
		require.Equal(t, "h2", got[0])
		require.Regexp(t, `\n\d+ of 1000 failing checks are left out here`, string(src))
	}
	require.Greater(t, len(markdown(r, maxMarkdown)), maxMarkdown/2, "the room is used")
}

func TestMarkdownLeavesOutACommandThatIsTooLong(t *testing.T) {
	r := base()
	r.Reproduce = strings.Repeat("x", 100_000)
	page := markdown(r, maxMarkdown)
	require.Less(t, len(page), 5000)
	require.Contains(t, page, "The command that repeats this has 100000 characters")
}
