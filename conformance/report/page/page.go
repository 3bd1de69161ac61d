package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"sync"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report/plot"
)

//go:embed assets
var assets embed.FS

// view is what the templates show.
type view struct {
	Title         string
	Style, Script template.HTML
	Policy        string
	Verdict       verdict
	Strip         strip
	Coverage      coverage
	Maps          heatMaps
	Depth         []drawing
	Logits        *logits
	Routes        *routes
	Cases         []caseLine
	CasesLeft     int
	HasTimes      bool
	Checks, Idle  []check
	Findings      findingTable
	Notes         []string
	Sides         []side
}

// Write writes a report's page. It is written as a whole or, where it can't be made,
// not at all.
func Write(w io.Writer, r *conformance.Report) error {
	if r == nil {
		return errors.New("report: html: got no report")
	}
	v, err := viewOf(r)
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	t, err := templates()
	if err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "page.html", v); err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("report: html: %w", err)
	}
	return nil
}

func viewOf(r *conformance.Report) (*view, error) {
	names := orderedCases(r)
	v := &view{Verdict: verdictOf(r), Coverage: coverageOf(r, names), Maps: heatMapsOf(r, names),
		Findings: findingsOf(r), Notes: r.Notes, Sides: provenanceOf(r), HasTimes: r.Times != nil && len(r.Times.Cases) > 0}
	v.Cases, v.CasesLeft = casesOf(r, names)
	first := ""
	if w := v.Verdict.Why; w != nil {
		first = w.Check
	}
	v.Checks, v.Idle = checksOf(r, first)
	if len(v.Checks) > 0 && v.Verdict.Why != nil {
		v.Verdict.Why.Anchor = v.Checks[0].Anchor
	}
	v.Title = v.Verdict.Word
	if r.Candidate.Name != "" {
		v.Title += ": " + name(r.Candidate.Name)
	}
	v.Strip = stripOf(r, &v.Maps)
	var err error
	if v.Depth, err = depthPlots(v.Maps); err != nil {
		return nil, err
	}
	if v.Logits, err = logitsOf(r, names); err != nil {
		return nil, err
	}
	if v.Routes, err = routesOf(r); err != nil {
		return nil, err
	}
	return v, v.assets()
}

// assets adds styles and script, and the policy that allows them and nothing else.
func (v *view) assets() error {
	css, err := assets.ReadFile("assets/page.css")
	if err != nil {
		return err
	}
	js, err := assets.ReadFile("assets/page.js")
	if err != nil {
		return err
	}
	face, err := plot.FontFace()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(js)
	v.Style = template.HTML("<style>\n" + face + string(css) + "</style>")
	v.Script = template.HTML("<script>" + string(js) + "</script>")
	v.Policy = "default-src 'none'; style-src 'unsafe-inline'; font-src data:; img-src data:; base-uri 'none'; form-action 'none'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return nil
}

var templates = sync.OnceValues(func() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{
		"name":       func(s string) template.HTML { return identifier(name(s)) },
		"case":       func(s string) template.HTML { return identifier(caseName(s)) },
		"brief":      func(s string) template.HTML { return isolated(name(s)) },
		"briefCase":  func(s string) template.HTML { return isolated(caseName(s)) },
		"sentence":   func(s string) template.HTML { return isolated(sentence(s)) },
		"command":    func(s string) template.HTML { return isolated(visible(s, 20_000)) },
		"plain":      name,
		"figure":     figure,
		"plural":     plural,
		"thousands":  thousands,
		"sign":       signOf,
		"okStatus":   func() status { return statusOf(conformance.Pass) },
		"noneStatus": func() status { return status{"did not apply", "–", "none"} },
		"badStatus":  func() status { return statusOf(conformance.Fail) },
		"partStatus": func() status { return status{"not judged", "◐", "part"} },
	}).ParseFS(assets, "assets/*.html")
})

// signOf is an outcome's word with its sign, which a screen reader leaves out.
func signOf(s status) template.HTML {
	return template.HTML(fmt.Sprintf(`<span class="st %s"><span aria-hidden="true">%s</span> %s</span>`, s.Class, s.Sign, template.HTMLEscapeString(s.Word)))
}
