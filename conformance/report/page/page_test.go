package page_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report/page"
	"github.com/plumbline-go/plumbline/engine"
)

// element is a part of a page, as another reader sees it.
type element struct {
	name     string
	attrs    map[string]string
	children []*element
	parent   *element
	// parts are text, and nil for the next child.
	parts []*string
}

func (e *element) write(b *strings.Builder) {
	next := 0
	for _, p := range e.parts {
		if p != nil {
			b.WriteString(*p)
			continue
		}
		e.children[next].write(b)
		next++
	}
	if !slices.Contains([]string{"a", "b", "bdi", "code", "strong", "span", "i"}, e.name) {
		b.WriteByte(' ') // elements that stand apart
	}
}

// words are an element's text, and that of what is in it, with single spaces.
func (e *element) words() string {
	var b strings.Builder
	e.write(&b)
	return strings.Join(strings.Fields(b.String()), " ")
}

// parse reads a page, whose elements are all closed. The contents of style and script
// are no markup, and are cut out first.
func parse(t testing.TB, html []byte) *element {
	t.Helper()
	require.True(t, utf8.Valid(html))
	bare := regexp.MustCompile(`(?s)(<style>|<script>).*?(</style>|</script>)`).ReplaceAll(html, []byte("$1$2"))
	bare = bytes.TrimPrefix(bare, []byte("<!DOCTYPE html>"))
	d := xml.NewDecoder(bytes.NewReader(bare))
	d.Entity = xml.HTMLEntity
	root := &element{name: "#root"}
	at := root
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			require.Same(t, root, at, "unclosed <%s>", at.name)
			return root
		}
		require.NoError(t, err)
		switch tok := tok.(type) {
		case xml.StartElement:
			e := &element{name: tok.Name.Local, attrs: map[string]string{}, parent: at}
			for _, a := range tok.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			at.children, at.parts = append(at.children, e), append(at.parts, nil)
			at = e
		case xml.EndElement:
			at = at.parent
		case xml.CharData:
			text := string(tok)
			at.parts = append(at.parts, &text)
		}
	}
}

// all are the elements that fit, in order.
func (e *element) all(fits func(*element) bool) []*element {
	var out []*element
	if fits(e) {
		out = append(out, e)
	}
	for _, c := range e.children {
		out = append(out, c.all(fits)...)
	}
	return out
}

func (e *element) named(name string) []*element {
	return e.all(func(x *element) bool { return x.name == name })
}

func (e *element) id(id string) *element {
	if found := e.all(func(x *element) bool { return x.attrs["id"] == id }); len(found) == 1 {
		return found[0]
	}
	return nil
}

func (e *element) class(class string) []*element {
	return e.all(func(x *element) bool { return slices.Contains(strings.Fields(x.attrs["class"]), class) })
}

func written(t testing.TB, r *conformance.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, page.Write(&b, r))
	return b.Bytes()
}

// The banner says where, why and how much; it names the layer and not only colours it.
func TestVerdictOfAFault(t *testing.T) {
	r := sample(29, 9, 18)
	v := parse(t, written(t, r)).id("verdict")
	require.NotNil(t, v)
	h1 := v.named("h1")[0].words()
	assert.Equal(t, "✗ Fails at blocks.17.resid_post", h1)
	for _, want := range []string{"decoder layer 17", "18 (blocks.17.resid_post)", "layer: one layer introduces the error", "LocalError",
		"limit 0.15 (3 times the int8 emulation's own error on the same prompt), row 18", "plumbline gate --model ./m --candidate ./dumps"} {
		assert.Contains(t, v.words(), want)
	}
	// the largest local error at the source, over all cases
	most, which := 0., ""
	for name, c := range r.Cases {
		if x := float64(*c.Depth[18].Local); x > most {
			most, which = x, name
		}
	}
	assert.Contains(t, v.words(), fmt.Sprintf("local error %.4g", most))
	assert.Contains(t, v.words(), which)
	assert.Equal(t, "layer 17", v.class("at")[1].words())
}

func TestVerdictsWithoutAFault(t *testing.T) {
	for want, r := range map[string]*conformance.Report{
		"✓ Conforms":       sample(29, 9, -1),
		"◐ Partial":        partial(),
		"○ Nothing judged": {Conclusion: conformance.NothingJudged},
		"? new word":       {Conclusion: "new word"},
	} {
		p := parse(t, written(t, r))
		assert.Equal(t, want, p.id("verdict").named("h1")[0].words())
		assert.Empty(t, p.id("verdict").class("why"))
	}
	text := parse(t, written(t, partial())).id("verdict").words()
	assert.Contains(t, text, "2 core checks were judged nowhere: LogitRowContract, LogitCandidate")
	assert.Contains(t, parse(t, written(t, partial())).id("coverage").words(), "needs a logit dump, NAME.logits.bin, in at least one case")
}

// A reference that fails itself is what the page is about, whatever the candidate did.
func TestVerdictOfAWrongReference(t *testing.T) {
	r := sample(5, 2, 3)
	r.Conclusion, r.ReferenceFailed, r.Source, r.FirstBadRow = conformance.NothingJudged, true, nil, nil
	r.Checks = append(r.Checks, conformance.Result{ID: "ResidualGolden", Case: "a case", Side: conformance.SideReference, Status: conformance.Fail, Findings: []conformance.Finding{overLimit(2, "relative L2", 3, 1, "")}})
	v := parse(t, written(t, r)).id("verdict").words()
	assert.Contains(t, v, "no verdict on the candidate can be trusted")
	assert.Contains(t, v, "ResidualGolden, a case")
}

func TestVerdictNamesWaiversBaselineAndShard(t *testing.T) {
	r := sample(5, 2, -1)
	r.Conclusion = conformance.Fails
	w := conformance.Waiver{Check: "LocalError", Case: "*", Reason: "known", Expires: "2026-01-01"}
	r.Waivers = []conformance.WaiverUse{{Waiver: w, Problem: "it expired"}}
	r.Checks[6].Status, r.Checks[6].Waived = conformance.Fail, &w
	r.Baseline = &conformance.BaselineInfo{Name: "base.json", Regressions: []conformance.Change{{Check: "LocalError", Case: "x", Metric: "error", Before: 1, After: 2}}}
	r.Shard = &conformance.ShardInfo{Index: 1, Total: 4, AllCases: 8}
	p := parse(t, written(t, r))
	v := p.id("verdict").words()
	for _, want := range []string{"waiver of LocalError, case all cases: it expired", "1 regression against the baseline base.json", "1 result that failed is waived", "shard 2 of 4: 2 of 8 cases"} {
		assert.Contains(t, v, want)
	}
	assert.Contains(t, p.id("checks").words(), "waived until 2026-01-01: known")
	assert.Contains(t, p.id("coverage").words(), "worse LocalError")
}

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

// A map has each figure of each case where it belongs, and says what was not measured.
func TestHeatMaps(t *testing.T) {
	r := sample(6, 7, 3)
	c := r.Cases["prompt_004_capital_of_country"]
	c.Depth[2].LocalRatio, c.Depth[2].Local = nil, nil
	c.Depth = c.Depth[:5]
	r.Cases["prompt_004_capital_of_country"] = c
	p := parse(t, written(t, r))
	local := p.id("map-local")
	rows := local.named("tbody")[0].named("tr")
	require.Len(t, rows, 8)
	for i, tr := range rows[1:] {
		v := r.Cases[tr.named("th")[0].words()]
		require.NotEmpty(t, v.Depth, "row %d", i)
		cells := tr.named("td")
		require.Len(t, cells, 6)
		for row, td := range cells {
			switch {
			case row >= len(v.Depth) || v.Depth[row].LocalRatio == nil:
				assert.Equal(t, "·", td.words())
				assert.Contains(t, td.attrs["class"], "n")
			default:
				x := float64(*v.Depth[row].LocalRatio)
				want := fmt.Sprintf("%.1f", x)
				if x >= 10 {
					want = fmt.Sprintf("%.0f", x)
				}
				assert.Equal(t, want, td.words())
				assert.Equal(t, x > 3, strings.ContainsAny(td.attrs["class"], "xyz"), "%g: %s", x, td.attrs["class"])
			}
			assert.Equal(t, row == 3, slices.Contains(strings.Fields(td.attrs["class"]), "w"), "the case's first bad row")
		}
	}
	flagged := local.class("flag")
	require.Len(t, flagged, 1)
	assert.Equal(t, "2", flagged[0].words(), "row 3 is layer 2's")
	assert.Equal(t, "row 3: blocks.2.resid_post", flagged[0].attrs["title"])
	for _, m := range []string{"map-local", "map-accumulated"} {
		assert.Equal(t, "0", p.id(m).class("heat")[0].attrs["tabindex"], "%s is reached by keyboard", m)
	}
}

// Not a number is over every limit, and no figure is no error.
func TestHeatMapOfNaN(t *testing.T) {
	r := sample(4, 1, -1)
	nan := conformance.Number(math.NaN())
	inf := conformance.Number(math.Inf(1))
	c := r.Cases["prompt_000_capital_of_country"]
	c.Depth[1].LocalRatio, c.Depth[2].LocalRatio = &nan, &inf
	c.Depth[1].Accumulated, c.Depth[1].AccumulatedRatio = nan, nan // a row that is missing
	p := parse(t, written(t, r))
	cells := p.id("map-local").named("tbody")[0].named("tr")[1].named("td")
	assert.Equal(t, []string{"·", "NaN", "∞"}, []string{cells[0].words(), cells[1].words(), cells[2].words()})
	assert.Equal(t, []string{"n", "z", "z"}, []string{cells[0].attrs["class"], cells[1].attrs["class"], cells[2].attrs["class"]})
	assert.Equal(t, "·", p.id("map-accumulated").named("tbody")[0].named("tr")[1].named("td")[1].words())
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

// The scatter has each class, the routers' histogram each outcome.
func TestPlots(t *testing.T) {
	r := sample(29, 9, 18)
	c := r.Cases["prompt_000_capital_of_country"]
	c.Logits = append(c.Logits, conformance.LogitStep{Class: conformance.Wrong, Margin: 4, Regret: 6, TieBand: 0.6}, conformance.LogitStep{Class: conformance.Drift, Margin: 1, Regret: 0.9, TieBand: 0.6})
	r.Cases["prompt_000_capital_of_country"] = c
	p := parse(t, written(t, r))
	for _, want := range []string{"WRONG: no rounding explains it (1)", "DRIFT: beyond the tie band (1)", "tie band, median over the rows"} {
		assert.Contains(t, p.id("logits").words(), want)
	}
	routes := p.id("routes").words()
	for _, want := range []string{"723 rows chose the same experts, 3 another set within the tie band, 1 another set beyond it; 12 rows lie behind another choice", "all routers 723 3 1 12", "blocks.3.route_ids 3 2 0 0"} {
		assert.Contains(t, routes, want)
	}
	depth := p.id("map").class("drawing")
	require.Len(t, depth, 2)
	assert.Contains(t, depth[0].words(), "limit of the median, 2")
	assert.Contains(t, depth[0].words(), "in row 18")
	few := sample(29, 4, 18)
	assert.NotContains(t, parse(t, written(t, few)).id("map").class("drawing")[0].words(), "limit of the median", "four cases have no median of their own")
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

// The same report gives the same page: maps of Go have no order.
func TestPageIsStable(t *testing.T) {
	assert.True(t, bytes.Equal(written(t, sample(29, 20, 18)), written(t, sample(29, 20, 18))))
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

// Kinds and places of all sorts have a page.
func TestEveryKindAndPlace(t *testing.T) {
	row := 0
	for _, k := range []conformance.Kind{conformance.KindLayer, conformance.KindAllLayers, conformance.KindInput, conformance.KindDump, conformance.KindHead, conformance.KindFormat, conformance.KindProvenance} {
		for _, p := range []engine.Probe{engine.ProbeEmbed, engine.ProbeFinalNorm, engine.ProbeLogits, engine.ResidMid(2), engine.ResidPost(3)} {
			r := sample(5, 2, -1)
			r.Conclusion, r.Kind, r.Source, r.Sources, r.FirstBadRow = conformance.Fails, &k, &p, []engine.Probe{p, engine.ResidPost(1)}, &row
			v := parse(t, written(t, r)).id("verdict").words()
			assert.Contains(t, v, "Fails at "+string(p))
			assert.Contains(t, v, "Kind "+string(k)+": ")
		}
	}
}

// The reason is what is wrong at the source, on a case, however far off what follows
// from it is; the check that says so comes first.
func TestVerdictRestsOnTheSource(t *testing.T) {
	r := sample(6, 3, 3)
	at := func(id, name string, f conformance.Finding) {
		r.Checks = append([]conformance.Result{{ID: id, Case: name, Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail, Findings: []conformance.Finding{f}}}, r.Checks...)
	}
	at("ResidualCandidate", "far behind", overLimit(5, "accumulated relative L2", 900, 1, ""))
	at("LocalError", "*", overLimit(3, "local error, median", 300, 1, ""))
	p := parse(t, written(t, r))
	why := p.id("verdict").class("why")[0].words()
	assert.Regexp(t, `^Why LocalError, prompt_00._capital_of_country and 3 more results of this check: blocks.2.resid_post local error 1\.\d+, limit 0.15`, why)
	assert.Contains(t, p.id("checks").named("details")[0].named("summary")[0].words(), "LocalError")

	mid := engine.ResidMid(2)
	inside := overLimit(3, "error of the half", 1.5, 1, "")
	inside.Probe = mid
	at("ProbeCandidate", "a case", inside)
	r.Source, r.Sources = &mid, []engine.Probe{mid}
	assert.Contains(t, parse(t, written(t, r)).id("verdict").class("why")[0].words(), "ProbeCandidate, a case: blocks.2.resid_mid error of the half 1.5")

	r.Source, r.Sources = nil, nil // a bad dump row: no layer is to blame
	why = parse(t, written(t, r)).id("verdict").class("why")[0].words()
	assert.Regexp(t, `blocks.2.resid_post`, why)
}

// A row that is bad in the dump is flagged, though no layer is the source.
func TestBadDumpRowIsFlagged(t *testing.T) {
	r := sample(6, 3, 3)
	kind := conformance.KindDump
	r.Kind, r.Source, r.Sources = &kind, nil, nil
	p := parse(t, written(t, r))
	assert.Equal(t, "2", p.id("map-local").class("flag")[0].words())
	assert.Contains(t, p.id("verdict").words(), "a bad row in the dump; the engine went on healthy")
	assert.Equal(t, "✗ Fails", p.id("verdict").named("h1")[0].words())
}

// Two sources are both flagged.
func TestFurtherSources(t *testing.T) {
	r := sample(12, 3, 3)
	r.Sources = append(r.Sources, "blocks.9.mlp_out")
	p := parse(t, written(t, r))
	var flags []string
	for _, f := range p.id("map-local").class("flag") {
		flags = append(flags, f.words())
	}
	assert.Equal(t, []string{"2", "9"}, flags)
	assert.Contains(t, p.id("verdict").words(), "Further source blocks.9.mlp_out")
}

// Behind the layers the strip says what the checks on norm and logits say.
func TestStripEndsWithNormAndLogits(t *testing.T) {
	last := func(r *conformance.Report) []string {
		cells := parse(t, written(t, r)).id("verdict").class("cells")[0].children
		var out []string
		for _, c := range cells[len(cells)-2:] {
			out = append(out, c.attrs["title"], c.named("i")[0].attrs["class"])
		}
		require.Len(t, cells, 6)
		return out
	}
	assert.Equal(t, []string{"final norm: not judged", "n", "logits: within its limits", "a"}, last(sample(4, 2, -1)))
	r := sample(4, 2, -1)
	p := engine.ProbeFinalNorm
	r.Source, r.Sources = &p, []engine.Probe{p}
	r.Checks = append(r.Checks, conformance.Result{ID: "LogitCandidate", Case: "x", Side: conformance.SideCandidate, Status: conformance.Fail})
	assert.Equal(t, []string{"final norm: at fault", "z", "logits: over its limits, which a fault before it explains", "x"}, last(r))
}
