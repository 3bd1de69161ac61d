package report

import (
	"io"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report/page"
)

// HTML writes a report as one page that needs no network and no other file. What makes
// a page too large to be read is left out and counted there; the verdict, its reason
// and the worst of each check never are.
func HTML(w io.Writer, r *conformance.Report) error { return page.Write(w, r) }
