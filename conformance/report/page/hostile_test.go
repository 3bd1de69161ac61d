package page_test

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// hostileTexts are names that a candidate may give its cases.
func hostileTexts() []string {
	return []string{
		"<script>window.hit=1</script>",
		"</script><script>window.hit=1</script>",
		"</style></title></textarea><img src=x onerror=window.hit=1>",
		"\" onmouseover=window.hit=1 autofocus onfocus=window.hit=1 x=\"",
		"' onload='window.hit=1",
		"javascript:window.hit=1",
		"{{.}} ${1+1} `x` \\u003cscript\\u003e",
		strings.Repeat("W", 10_000),
		strings.Repeat("a name ", 1_500),
		"\u202egnp.exe \u2066isolate \u200f mark",
		"مرحبا بالعالم",
		"bytes \xff\xfe\x00 and \x1b[31m and \r\n",
		"]]> <!-- --> <![CDATA[ &amp; &#x3c;",
		"",
	}
}

// many is a report of one failing check with so many findings.
func many(n int) *conformance.Report {
	r := sample(29, 5, 18)
	for i := 0; i < n; i += 100 {
		var fs []conformance.Finding
		for k := range 100 {
			fs = append(fs, overLimit(k%28+1, "local error", 1+float64(i+k)/float64(n), 0.5, "f"))
		}
		r.Checks = append(r.Checks, conformance.Result{ID: "LocalError", Case: fmt.Sprintf("prompt_x%06d", i), Side: conformance.SideCandidate, Level: conformance.Core, Status: conformance.Fail, Findings: fs})
	}
	return r
}
