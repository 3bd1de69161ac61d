package page_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// The five outcomes are counted apart.
func TestCoverageCounts(t *testing.T) {
	r := &conformance.Report{Conclusion: conformance.Fails, Cases: map[string]conformance.CaseVerdict{"a": {Judged: true}, "b": {Reason: "no dump"}}}
	for status, n := range map[conformance.Status]int{conformance.Pass: 5, conformance.Fail: 4, conformance.Error: 3, conformance.Unsupported: 2, conformance.Skip: 1} {
		for range n {
			r.Checks = append(r.Checks, conformance.Result{ID: "X", Case: "a", Side: conformance.SideCandidate, Status: status})
		}
	}
	r.Checks = append(r.Checks, conformance.Result{ID: "Y", Case: "a", Side: conformance.SideReference, Status: conformance.Pass})
	c := parse(t, written(t, r)).id("coverage")
	row := c.named("tbody")[0].named("tr")[0]
	var got []string
	for _, td := range row.named("td") {
		got = append(got, td.words())
	}
	assert.Equal(t, []string{"5", "4", "3", "2", "1"}, got)
	assert.Contains(t, c.words(), "1 of 2 cases gave values")
	assert.Contains(t, c.words(), "b no dump")
}

// The page tells nobody anything: no address in it is loaded, and the policy forbids it.
func TestPageIsSelfContained(t *testing.T) {
	for _, r := range []*conformance.Report{sample(29, 9, 18), partial(), hostile("<a href=http://x>")} {
		p := parse(t, written(t, r))
		policy := ""
		for _, m := range p.named("meta") {
			if m.attrs["http-equiv"] == "Content-Security-Policy" {
				policy = m.attrs["content"]
			}
		}
		assert.Contains(t, policy, "default-src 'none'")
		assert.Contains(t, policy, "script-src 'sha256-")
		assert.NotContains(t, strings.SplitN(policy, "script-src", 2)[1], "unsafe")
		for _, e := range p.all(func(e *element) bool { return e.attrs["src"] != "" || e.attrs["href"] != "" }) {
			assert.Equal(t, "a", e.name)
			assert.True(t, strings.HasPrefix(e.attrs["href"], "#"), e.attrs["href"])
			assert.NotNil(t, p.id(e.attrs["href"][1:]), "%s leads nowhere", e.attrs["href"])
		}
		assert.Empty(t, p.all(func(e *element) bool {
			return slices.Contains([]string{"img", "link", "iframe", "object", "base"}, e.name)
		}))
	}
}

// Structure for who can't see: names, captions, heads of rows and columns.
func TestPageStructure(t *testing.T) {
	for name, r := range map[string]*conformance.Report{"fault": sample(29, 9, 18), "partial": partial(), "hostile": hostile("<b>\"x"), "empty": {}} {
		p := parse(t, written(t, r))
		assert.Equal(t, "en", p.named("html")[0].attrs["lang"], name)
		for _, landmark := range []string{"header", "nav", "main", "footer", "h1", "title"} {
			assert.Len(t, p.named(landmark), 1, "%s: %s", name, landmark)
		}
		for _, table := range p.named("table") {
			assert.NotEmpty(t, table.named("caption")[0].words(), name)
			for _, th := range table.named("th") {
				assert.Contains(t, []string{"col", "row"}, th.attrs["scope"], name)
			}
			width := len(table.named("thead")[0].named("th"))
			for _, tr := range table.named("tbody")[0].named("tr") {
				assert.Len(t, tr.children, width, "%s: %s", name, table.named("caption")[0].words())
			}
		}
		for _, s := range p.named("section") {
			assert.NotNil(t, p.id(s.attrs["aria-labelledby"]), name)
		}
		for _, d := range p.class("drawing") {
			img := d.all(func(e *element) bool { return e.attrs["role"] == "img" })
			require.Len(t, img, 1)
			assert.Greater(t, len(img[0].attrs["aria-label"]), 20)
		}
		ids := map[string]bool{}
		for _, e := range p.all(func(e *element) bool { return e.attrs["id"] != "" }) {
			assert.False(t, ids[e.attrs["id"]], "%s: id %s twice", name, e.attrs["id"])
			ids[e.attrs["id"]] = true
		}
	}
}

// The check that the verdict rests on comes first, and the banner leads to it; what
// failed is open; each says its rule, its bugs and its planted faults.
func TestChecks(t *testing.T) {
	p := parse(t, written(t, sample(29, 9, 18)))
	checks := p.id("checks").named("details")
	assert.Contains(t, checks[0].named("summary")[0].words(), "fail LocalError core 9 fail")
	assert.Equal(t, "open", checks[0].attrs["open"])
	assert.Equal(t, "#"+checks[0].attrs["id"], p.id("verdict").named("a")[0].attrs["href"])
	for _, c := range conformance.Builtin().Checks() {
		if c.ID != "LocalError" {
			continue
		}
		text := checks[0].words()
		assert.Contains(t, text, strings.Join(strings.Fields(c.Rule), " "))
		for _, bug := range c.Catches {
			assert.Contains(t, text, bug)
		}
		for _, k := range c.Controls {
			assert.Contains(t, text, k.Mutant)
		}
	}
	open := 0
	for _, d := range checks {
		if d.attrs["open"] != "" {
			open++
		}
	}
	assert.Equal(t, 2, open)
	all := p.id("checks").words()
	for _, c := range conformance.Builtin().Checks() {
		assert.Contains(t, all, c.ID)
	}
}

// What passed shows how near to its bound it came.
func TestCheckThatPassed(t *testing.T) {
	r := &conformance.Report{Conclusion: conformance.Conforms, Checks: []conformance.Result{
		{ID: "X", Case: "far", Side: conformance.SideCandidate, Status: conformance.Pass, Findings: []conformance.Finding{overLimit(1, "error", 0.1, 1, "")}},
		{ID: "X", Case: "near", Side: conformance.SideCandidate, Status: conformance.Pass, Findings: []conformance.Finding{overLimit(1, "error", 0.2, 1, ""), overLimit(3, "error", 0.9, 1, "")}},
	}}
	c := parse(t, written(t, r)).id("checks").named("details")[0].words()
	assert.Contains(t, c, "nearest to its bound near: blocks.2.resid_post error 0.9, limit 1")
}

// All three sides are named, and what judged.
func TestProvenance(t *testing.T) {
	p := parse(t, written(t, sample(5, 2, -1))).id("provenance").words()
	for _, want := range []string{"qwen2-trained", "transformers", "plumbline-reference", "float32", "an engine", "1.4", "int8-scaled", "v1.2.3", "2026-01-02T03:04:05Z", "12.5"} {
		assert.Contains(t, p, want)
	}
	assert.Contains(t, parse(t, written(t, partial())).id("provenance").words(), "the reference was held to no recording")
}

// The same report gives the same page: maps of Go have no order.
func TestPageIsStable(t *testing.T) {
	assert.True(t, bytes.Equal(written(t, sample(29, 20, 18)), written(t, sample(29, 20, 18))))
}
