package report_test

import (
	"bytes"
	"encoding/xml"
	"fmt"

	"github.com/plumbline-go/plumbline/conformance/report"
)

// A comment on a pull request; this one is of a run that judged nothing.
func ExampleMarkdown() {
	rep, err := report.Read(sound())
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if err := report.Markdown(&b, rep); err != nil {
		panic(err)
	}
	fmt.Println(bytes.Contains(b.Bytes(), []byte("nothing judged")))
	// Output: true
}

// What CI systems read.
func ExampleJUnit() {
	rep, err := report.Read(sound())
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if err := report.JUnit(&b, rep); err != nil {
		panic(err)
	}
	var suites struct{ XMLName xml.Name }
	fmt.Println(xml.Unmarshal(b.Bytes(), &suites), suites.XMLName.Local)
	// Output: <nil> testsuites
}
