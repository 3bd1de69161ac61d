package report

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/plumbline-go/plumbline/conformance"
)

// The elements of a JUnit report. Two schemas describe them, that of Ant's reports and
// that of Jenkins; what is written is valid by both, so testsuites has no attributes.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		ID         int             `xml:"id,attr"` // counted from 0
		Name       string          `xml:"name,attr"`
		Package    string          `xml:"package,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Host       string          `xml:"hostname,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"` // in seconds
		Properties junitProperties `xml:"properties"`
		Cases      []junitCase     `xml:"testcase"`
		Out        string          `xml:"system-out"`
		Err        string          `xml:"system-err"`
	}
	junitProperties struct { // the element must be there, also without a property
		List []junitProperty `xml:"property"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Time    string       `xml:"time,attr"`
		Skipped *junitReason `xml:"skipped"`
		Error   *junitReason `xml:"error"`
		Failure *junitReason `xml:"failure"`
	}
	junitReason struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"` // not of skipped
		Text    string `xml:",chardata"`
	}
)

const (
	junitPackage = "plumbline"
	// host stands for one that isn't known; that of a run is nobody's business.
	host = "localhost"
	// never is the time of a run that tells none: the schema wants one.
	never = "1970-01-01T00:00:00"
)

// JUnit writes a report as JUnit XML: a suite for the verdict, and one per check with a
// test case per case. A wrong answer is a failure, a missing one an error; what was not
// offered or not judged is skipped, and so is what a waiver accepts or what is reported
// only. The first suite is red whenever `plumbline gate` doesn't exit with 0: also for a
// partial verdict, unless that is accepted, and for one that no single check tells of.
func JUnit(w io.Writer, r *conformance.Report) error {
	b := &junitBuilder{r: r, spent: map[string]bool{}}
	doc := junitSuites{Suites: append([]junitSuite{b.verdict()}, b.checks()...)}
	for i := range doc.Suites {
		b.finish(&doc.Suites[i], i)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("report: junit: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("report: junit: %w", err)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("report: junit: %w", err)
	}
	return nil
}

type junitBuilder struct {
	r     *conformance.Report
	spent map[string]bool // cases whose time is told
}

// finish fills what every suite has.
func (b *junitBuilder) finish(s *junitSuite, id int) {
	s.ID, s.Package, s.Host, s.Timestamp = id, junitPackage, host, never
	if t := b.r.Times; t != nil {
		if utc, ok := withoutZone(t.Started); ok {
			s.Timestamp = utc
		}
	}
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

// checks has a suite per check, in the order of the results.
func (b *junitBuilder) checks() []junitSuite {
	index := map[string]int{}
	var out []junitSuite
	var seconds []float64
	for _, c := range b.r.Checks {
		i, ok := index[c.ID]
		if !ok {
			i = len(out)
			index[c.ID] = i
			out = append(out, junitSuite{Name: junitName(c.ID), Properties: b.about(c.ID)})
			seconds = append(seconds, 0)
		}
		took := b.time(c.Case)
		seconds[i] += took
		out[i].Cases = append(out[i].Cases, junitResult(c, took))
	}
	for i := range out {
		out[i].Time = junitSeconds(seconds[i])
	}
	return out
}

// time is how long a case's evidence took, for the first check that looks at it: the
// times of all suites add up to that of all cases.
func (b *junitBuilder) time(name string) float64 {
	if b.r.Times == nil || b.spent[name] {
		return 0
	}
	b.spent[name] = true
	return float64(b.r.Times.Cases[name])
}

func (b *junitBuilder) about(id string) junitProperties {
	for _, a := range b.r.About {
		if a.ID == id {
			return junitProperties{[]junitProperty{{"level", junitText(string(a.Level))}, {"rule", junitText(a.Rule)}}}
		}
	}
	return junitProperties{}
}
