package report_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
)

func ExampleHTML() {
	var page bytes.Buffer
	if err := report.HTML(&page, &conformance.Report{Conclusion: conformance.Partial}); err != nil {
		panic(err)
	}
	fmt.Println(strings.Contains(page.String(), "<title>Partial · Plumbline</title>"))
	// Output: true
}
