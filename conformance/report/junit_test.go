package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// element is XML as it was written.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (e element) attr(name string) (string, bool) {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

func (e element) all(name string) []element {
	var out []element
	for _, c := range e.Children {
		if c.XMLName.Local == name {
			out = append(out, c)
		}
	}
	return out
}

// rule is what an element must have and may have.
type rule struct {
	attrs    map[string]*regexp.Regexp // required
	optional map[string]*regexp.Regexp
	children []string // in this order; those with + any number of times, else once
	oneOf    []string // at most one of these in place of children
	text     bool
}

var (
	anyText = regexp.MustCompile(`(?s).*`)
	token   = regexp.MustCompile(`^\S+( \S+)*$`) // xs:token of at least one character
	whole   = regexp.MustCompile(`^[0-9]+$`)
	decimal = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)
	moment  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$`)
)

// junitRules are facts of two public schemas, the Ant one that is known by its author's
// company (windyroad) and Jenkins' junit-10: what is allowed is what both allow, what is
// required what either requires.
var junitRules = map[string]rule{
	"testsuites": {children: []string{"testsuite+"}},
	"testsuite": {
		attrs: map[string]*regexp.Regexp{"name": token, "package": token, "id": whole, "timestamp": moment, "hostname": token,
			"tests": whole, "failures": whole, "errors": whole, "time": decimal},
		optional: map[string]*regexp.Regexp{"skipped": whole},
		children: []string{"properties", "testcase+", "system-out", "system-err"},
	},
	"properties": {children: []string{"property+"}},
	"property":   {attrs: map[string]*regexp.Regexp{"name": token, "value": anyText}},
	"testcase": {
		attrs: map[string]*regexp.Regexp{"name": token, "classname": token, "time": decimal},
		oneOf: []string{"skipped", "error", "failure"},
	},
	"skipped":    {optional: map[string]*regexp.Regexp{"message": anyText}, text: true},
	"error":      {attrs: map[string]*regexp.Regexp{"type": anyText}, optional: map[string]*regexp.Regexp{"message": anyText}, text: true},
	"failure":    {attrs: map[string]*regexp.Regexp{"type": anyText}, optional: map[string]*regexp.Regexp{"message": anyText}, text: true},
	"system-out": {text: true},
	"system-err": {text: true},
}

// invalid says what an element breaks.
func invalid(e element) []string {
	r, ok := junitRules[e.XMLName.Local]
	if !ok {
		return []string{"unknown element " + e.XMLName.Local}
	}
	var out []string
	bad := func(format string, args ...any) { out = append(out, e.XMLName.Local+": "+fmt.Sprintf(format, args...)) }
	for name, want := range r.attrs {
		if v, ok := e.attr(name); !ok || !want.MatchString(v) {
			bad("attribute %s: got %q", name, v)
		}
	}
	for _, a := range e.Attrs {
		want := r.attrs[a.Name.Local]
		if want == nil {
			want = r.optional[a.Name.Local]
		}
		if want == nil || !want.MatchString(a.Value) {
			bad("attribute %s: got %q", a.Name.Local, a.Value)
		}
	}
	if !r.text && strings.TrimSpace(e.Text) != "" {
		bad("text %q", e.Text)
	}
	var names []string
	for _, c := range e.Children {
		names = append(names, c.XMLName.Local)
		out = append(out, invalid(c)...)
	}
	switch {
	case r.oneOf != nil:
		if len(names) > 1 || len(names) == 1 && !slices.Contains(r.oneOf, names[0]) {
			bad("children %v", names)
		}
	default:
		for _, want := range r.children {
			name, many := strings.CutSuffix(want, "+")
			n := 0
			for len(names) > 0 && names[0] == name && (many || n == 0) {
				names, n = names[1:], n+1
			}
			if n == 0 && !many {
				bad("no %s where it belongs", name)
			}
		}
		if len(names) > 0 {
			bad("children %v where they don't belong", names)
		}
	}
	return out
}

func junitOf(t testing.TB, r *conformance.Report) (element, []byte) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, JUnit(&b, r))
	var root element
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	require.NoError(t, d.Decode(&root))
	_, err := d.Token()
	if err == nil { // the line break at the end
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF)
	return root, b.Bytes()
}

func TestJUnitIsValid(t *testing.T) {
	real, err := embedded()
	require.NoError(t, err)
	reports := map[string]*conformance.Report{"of a run": real, "empty": {}}
	for name, r := range samples() {
		reports[name] = r
	}
	for i, h := range append(hostile, "\ufffe\uffff", "\ud7ff\ue000", "a\u0085b\u2028c", "]]>", "<![CDATA[", "--") {
		reports[fmt.Sprintf("hostile %d", i)] = hostileReport(h)
	}
	for name, r := range reports {
		root, _ := junitOf(t, r)
		assert.Empty(t, invalid(root), name)
	}
}

// The validator itself refuses what the schemas refuse.
func TestJUnitRulesCanFail(t *testing.T) {
	_, good := junitOf(t, samples()["fails"])
	for old, with := range map[string]string{
		` hostname="localhost"`: ``, `tests="1"`: `tests="x"`, `time="0.000"`: `time="soon"`, `timestamp="2026-01-02T03:04:05"`: `timestamp="2026-01-02"`,
		`<system-err></system-err>`: ``, `<properties></properties>`: ``, ` type="error"`: ``, `<testsuites>`: `<testsuites tests="1">`,
		`<testcase name="rome"`: `<testcase name=""`, `</error>`: `</error><skipped></skipped>`, `<system-err>`: `<x/><system-err>`,
		` classname="plumbline.verdict"`: ``, `<skipped `: `<skipped type="x" `, `<properties>`: `<testcase name="a" classname="b" time="0.0"/><properties>`,
	} {
		require.Contains(t, string(good), old)
		var root element
		require.NoError(t, xml.Unmarshal([]byte(strings.Replace(string(good), old, with, 1)), &root))
		require.NotEmpty(t, invalid(root), "%s for %s", with, old)
	}
}

// outcomes are the test cases by "suite/case", with what each is and its message.
func outcomes(t *testing.T, r *conformance.Report) map[string]string {
	t.Helper()
	root, _ := junitOf(t, r)
	out := map[string]string{}
	for _, s := range root.all("testsuite") {
		suite, _ := s.attr("name")
		count := map[string]int{}
		cases := s.all("testcase")
		for _, c := range cases {
			name, _ := c.attr("name")
			what := "pass"
			if len(c.Children) > 0 {
				message, _ := c.Children[0].attr("message")
				what = c.Children[0].XMLName.Local + ": " + message
				count[c.Children[0].XMLName.Local]++
			}
			key := suite + "/" + name
			require.NotContains(t, out, key)
			out[key] = what
		}
		for attr, want := range map[string]int{"tests": len(cases), "failures": count["failure"], "errors": count["error"], "skipped": count["skipped"]} {
			got, _ := s.attr(attr)
			require.Equal(t, strconv.Itoa(want), got, "%s: %s", suite, attr)
		}
	}
	return out
}

func TestJUnitKeepsOutcomesApart(t *testing.T) {
	got := outcomes(t, samples()["fails"])
	require.Equal(t, "failure: fails: first bad row 8 (blocks.7.resid_post), source blocks.7.resid_post", got["verdict/conclusion"])
	require.Contains(t, got["LocalError/paris"], "failure: blocks.7.resid_post: local error 0.75, limit 0.25")
	require.Equal(t, "error: layer dump rome.layers.bin: 12 of 7424 bytes after byte 0x20", got["ResidualShape/rome"])
	require.Equal(t, "skipped: unsupported: output_ids were not told", got["StopRule/berlin"])
	require.Equal(t, "pass", got["TieOverwriteBypass/berlin [reference]"])

	got = outcomes(t, samples()["waived"])
	require.Equal(t, "skipped: waived until 2026-06-30: the kernel of layer 7 is being replaced", got["LocalError/paris"])
	require.Equal(t, "pass", got["LocalError/berlin"])
	require.Equal(t, "pass", got["verdict/conclusion"])

	r := base()
	r.Checks[0] = failingResult("berlin", 2, 1)
	r.Checks[0].Level = conformance.Provisional
	require.Contains(t, outcomes(t, r)["LocalError/berlin"], "skipped: reported only: ")
}

// A CI that reads nothing but this is red whenever a gate's exit code isn't 0.
func TestJUnitIsRedWhereverAGateIs(t *testing.T) {
	for name, want := range map[string]string{
		"conforms":         "",
		"waived":           "",
		"shard":            "",
		"partial-allowed":  "",
		"partial":          "verdict/conclusion failure: partial: a Core check was judged on no case",
		"fails":            "verdict/conclusion failure: fails",
		"nothing-judged":   "verdict/conclusion error: nothing judged",
		"reference-failed": "verdict/conclusion error: nothing judged: the reference failed a check of its own",
		"waiver-problem":   "verdict/waiver of StopRule, over all cases, logits failure: it was not used",
		"baseline":         "verdict/baseline failure: 1 figure worse than the baseline",
	} {
		t.Run(name, func(t *testing.T) {
			var red []string
			for k, v := range outcomes(t, samples()[name]) {
				if strings.HasPrefix(v, "failure") || strings.HasPrefix(v, "error") {
					red = append(red, k+" "+v)
				}
			}
			if want == "" {
				require.Empty(t, red)
				return
			}
			require.True(t, slices.ContainsFunc(red, func(s string) bool { return strings.HasPrefix(s, want) }), "%v", red)
		})
	}
	none := samples()["nothing-judged"]
	none.Shard, none.Checks, none.Cases = &conformance.ShardInfo{Index: 3, Total: 4, AllCases: 3}, nil, map[string]conformance.CaseVerdict{}
	require.Contains(t, outcomes(t, none)["verdict/conclusion"], "skipped: this shard has no cases")
	none.Shard = nil
	require.Contains(t, outcomes(t, none)["verdict/conclusion"], "error: nothing judged")
	require.Contains(t, outcomes(t, &conformance.Report{})["verdict/conclusion"], "error", "a report of nothing")
	reference := base()
	reference.ReferenceFailed = true // whatever the conclusion says
	require.Contains(t, outcomes(t, reference)["verdict/conclusion"], "error: conforms: the reference failed")
	for name, change := range map[string]func(r *conformance.Report){ // whatever the conclusion says
		"a waiver":   func(r *conformance.Report) { r.Waivers = samples()["waiver-problem"].Waivers },
		"a baseline": func(r *conformance.Report) { r.Baseline = samples()["baseline"].Baseline },
	} {
		r := base()
		change(r)
		red := 0
		for _, v := range outcomes(t, r) {
			if strings.HasPrefix(v, "failure") {
				red++
			}
		}
		require.Equal(t, 1, red, name)
	}
}

func TestJUnitTimesAddUp(t *testing.T) {
	root, _ := junitOf(t, base())
	suites, cases := 0.0, 0.0
	for _, s := range root.all("testsuite") {
		x, err := strconv.ParseFloat(first(s.attr("time")), 64)
		require.NoError(t, err)
		suites += x
		for _, c := range s.all("testcase") {
			x, err := strconv.ParseFloat(first(c.attr("time")), 64)
			require.NoError(t, err)
			cases += x
		}
	}
	require.Equal(t, 2.25, suites, "1.25 s and 1 s, each once")
	require.Equal(t, 2.25, cases)
}

func first(s string, _ bool) string { return s }

func TestJUnitShowsWhatXMLCantHold(t *testing.T) {
	_, b := junitOf(t, hostileReport("a\x00b\x1b\xff\ufffe"))
	require.Contains(t, string(b), `&#34;a\x00b\x1b\xff\ufffe&#34;`)
	require.NotContains(t, string(b), "\ufffd")
}

func TestJUnitOfManyFindings(t *testing.T) {
	r := samples()["fails"]
	for len(r.Checks[0].Findings) < 100_000 {
		r.Checks[0].Findings = append(r.Checks[0].Findings, r.Checks[0].Findings[0])
	}
	_, b := junitOf(t, r)
	require.Less(t, len(b), 20_000)
	require.Contains(t, string(b), "… and 99980 more")
}
