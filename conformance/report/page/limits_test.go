package page_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report/page"
)

// All tags come from the templates: a hostile text has as many as a plain one.
func TestHostileTextsAreText(t *testing.T) {
	shape := func(text string) []string {
		var out []string
		for _, e := range parse(t, written(t, hostile(text))).all(func(e *element) bool { return e.parent != nil && e.name != "bdi" }) {
			tag := e.parent.name + " > " + e.name
			for _, a := range slices.Sorted(maps.Keys(e.attrs)) {
				tag += " " + a
			}
			tag = strings.Replace(tag, "bdi > ", "", 1)
			out = append(out, tag)
		}
		slices.Sort(out) // a name decides on the order of rows
		return out
	}
	plain := shape("plain")
	for _, text := range hostileTexts() {
		if text != "" { // an empty one leaves parts out
			assert.Equal(t, plain, shape(text), "%.40q", text)
		}
	}
}

// What can't be seen, or turns the writing of others round, is spelled out; long texts
// are cut with their length.
func TestTextsAreVisible(t *testing.T) {
	find := func(text string) string { return parse(t, written(t, hostile(text))).words() }
	assert.Contains(t, find("\u202egnp.exe"), `\u202egnp.exe`)
	assert.NotContains(t, find("\u202egnp.exe"), "\u202e")
	assert.Contains(t, find("bytes \xff\x00\x1b[31m"), `bytes \xff\x00\x1b[31m`)
	assert.Contains(t, find("<script>alert(1)</script>"), "<script>alert(1)</script>")
	assert.Contains(t, find(strings.Repeat("W", 10_000)), "W… (10000 bytes)")
	assert.Contains(t, find("مرحبا"), "مرحبا")
	p := parse(t, written(t, hostile("مرحبا")))
	for _, e := range p.all(func(e *element) bool { return len(e.children) == 0 && strings.Contains(e.words(), "مرحبا") }) {
		assert.Contains(t, []string{"bdi", "title"}, e.name, "%s > %s", e.parent.name, e.words())
	}
}

// However many findings there are, the page stays small, says what it left out, and
// has the worst of each check.
func TestManyFindings(t *testing.T) {
	for _, n := range []int{10_000, 100_000} {
		r := many(n)
		r.Checks = append(r.Checks, conformance.Result{ID: "PromptTokens", Case: "small", Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail,
			Findings: []conformance.Finding{overLimit(1, "tokens", 1.01, 1, "")}})
		all := 0
		for _, c := range r.Checks {
			if c.Status == conformance.Fail {
				all += len(c.Findings)
			}
		}
		html := written(t, r)
		assert.Less(t, len(html), 2_000_000)
		f := parse(t, html).id("findings")
		rows := f.named("tbody")[0].named("tr")
		assert.Len(t, rows, 3000)
		assert.Contains(t, f.words(), fmt.Sprintf("%s more are in report.json", thousands(all-3000)))
		checks := map[string]int{}
		for _, tr := range rows {
			checks[tr.named("td")[0].words()]++
		}
		assert.Equal(t, 1, checks["PromptTokens"], "barely over its limit, and the worst of its check")
		assert.Positive(t, checks["ResidualCandidate"])
		assert.Positive(t, checks["LocalError"])
		worst := 0.
		for _, c := range r.Checks {
			for _, f := range c.Findings {
				worst = max(worst, float64(f.Got)/float64(f.Limit.Value))
			}
		}
		assert.Equal(t, fmt.Sprintf("%.4g", worst), rows[0].named("td")[6].words(), "the worst comes first")
		assert.Contains(t, parse(t, html).id("verdict").words(), "LocalError")
	}
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	return s[:len(s)-3] + "," + s[len(s)-3:]
}

func TestManyCasesAndResults(t *testing.T) {
	r := sample(4, 1500, 2)
	p := parse(t, written(t, r))
	assert.Contains(t, p.id("cases").words(), "500 more cases in report.json")
	assert.Contains(t, p.id("map").words(), "1,300 more cases in report.json")
	assert.Len(t, p.id("map-local").named("tbody")[0].named("tr"), 201)
	assert.Contains(t, p.id("checks").words(), "1,250 more results in report.json")
}

func TestPageOfNothing(t *testing.T) {
	p := parse(t, written(t, &conformance.Report{}))
	assert.Contains(t, p.id("cases").words(), "The run had no cases")
	assert.Contains(t, p.id("checks").words(), "No check ran")
	assert.Contains(t, p.id("findings").words(), "No result failed")
	for _, gone := range []string{"map", "logits", "routes", "notes"} {
		assert.Nil(t, p.id(gone), gone)
	}
	assert.ErrorContains(t, page.Write(io.Discard, nil), "report: html: got no report")
}

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

func TestWriteSaysThatItFailed(t *testing.T) {
	assert.ErrorContains(t, page.Write(&full{room: 1000}, sample(4, 2, -1)), "report: html: no space left")
}
