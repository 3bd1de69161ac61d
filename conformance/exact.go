package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
)

// IDs of the checks of exact mode.
const (
	exactLayers = "ExactLayers"
	exactLogits = "ExactLogits"
	exactProbes = "ExactProbes"
	exactTokens = "ExactTokens"
)

// Exact compares two dump folders of one engine bit for bit: int8 codes with
// their m and e, float32 bits, logits, probes, output tokens. It needs no model.
// Each golden case must be there; a dump that the golden has and the candidate
// lacks is a failure. What only the candidate has, and bytes after the rows of
// an int8 dump, are noted and not compared. A golden that can't be read is the
// run's error.
func Exact(ctx context.Context, goldenDir, candidateDir string) (*Report, error) {
	rep := &Report{SchemaVersion: SchemaVersion, Power: []string{}, Sources: []engine.Probe{},
		Checks: []Result{}, Cases: map[string]CaseVerdict{}, Tool: Tool(), About: []CheckInfo{}}
	want, err := dumpfmt.OpenFolder(goldenDir)
	if err != nil {
		return nil, fmt.Errorf("conformance: exact: golden: %w", err)
	}
	got, err := dumpfmt.OpenFolder(candidateDir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isDir(candidateDir):
		return nil, fmt.Errorf("conformance: exact: candidate: %w", err)
	case err != nil:
		rep.add(exactLayers, "*", broken(err))
		return rep.concludeExact(), nil
	}
	if g, c := want.Engine(), got.Engine(); g.Layers != c.Layers || g.Logits != c.Logits {
		rep.add(exactLayers, "*", Outcome{Status: Error, Kind: KindFormat, Reason: fmt.Sprintf(
			"conformance: exact: engine.json: layers and logits: got %q and %q, want %q and %q", c.Layers, c.Logits, g.Layers, g.Logits)})
		return rep.concludeExact(), nil
	}
	for _, w := range want.Cases() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.Check(); err != nil {
			return nil, fmt.Errorf("conformance: exact: golden: %w", err)
		}
		rep.exactCase(w, got)
	}
	for _, c := range got.Cases() {
		if _, err := want.Case(c.Name); err != nil {
			rep.Notes = append(rep.Notes, fmt.Sprintf("case %s has no golden and was not judged", c.Name))
		}
	}
	rep.Power = append(rep.Power, fmt.Sprintf("%d cases, bit for bit; a fault that both builds share can't be seen", len(want.Cases())))
	return rep.concludeExact(), nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (r *Report) add(id, name string, o Outcome) {
	res := Result{ID: id, Case: name, Side: SideCandidate, Level: Core, Status: o.Status, Kind: o.Kind,
		Reason: o.Reason, Findings: o.Findings}
	if o.Status == Fail || o.Status == Error {
		res.Rule = "two builds that promise bit identity give the same bits"
	}
	r.Checks = append(r.Checks, res)
}

func broken(err error) Outcome {
	o := Outcome{Status: Error, Kind: KindFormat, Reason: err.Error()}
	var fe *dumpfmt.FormatError
	if errors.As(err, &fe) {
		o.Findings = []Finding{{Metric: "answer", Limit: Limit{1, "a readable answer"},
			At: At{Row: -1, Channel: -1, File: fe.File}, Detail: fe.Error()}}
	}
	var pe *dumpfmt.FingerprintError
	if errors.As(err, &pe) {
		o.Kind = KindProvenance
	}
	return o
}

func (r *Report) exactCase(w *dumpfmt.Case, folder *dumpfmt.Folder) {
	c, err := folder.Case(w.Name)
	if err == nil {
		err = c.Check()
	}
	if err != nil {
		o := broken(err)
		r.add(exactLayers, w.Name, o)
		v := CaseVerdict{Reason: o.Reason}
		if len(o.Findings) > 0 {
			v.File = o.Findings[0].At.File
		}
		r.Cases[w.Name] = v
		return
	}
	v := CaseVerdict{Judged: true}
	if c.File.Text != w.File.Text || !slices.Equal(c.File.TokenIDs, w.File.TokenIDs) {
		r.add(exactLayers, w.Name, Outcome{Status: Error, Kind: KindProvenance,
			Reason: fmt.Sprintf("conformance: exact: %s: text or token_ids: got another prompt, want the golden's", c.JSONPath)})
		r.Cases[w.Name] = CaseVerdict{Reason: "another prompt", File: c.JSONPath}
		return
	}
	layers := compareLayers(w, c, folder.Engine().Layers)
	r.add(exactLayers, w.Name, layers)
	if layers.Status == Fail && len(layers.Findings) > 0 && layers.Findings[0].At.Row >= 0 {
		v.FirstBadRow = &layers.Findings[0].At.Row
		v.Source = &layers.Findings[0].Probe
		v.File = c.LayersPath
	}
	logits := compareLogits(w, c, folder.Engine().Logits)
	r.add(exactLogits, w.Name, logits)
	if logits.Status == Fail && v.File == "" {
		v.File = c.LogitsPath
		p := engine.ProbeLogits
		v.Source = &p
	}
	r.Cases[w.Name] = v
	r.add(exactProbes, w.Name, compareProbes(w, c))
	r.add(exactTokens, w.Name, compareTokens(w, c))
	for _, extra := range [][3]string{{w.LayersPath, c.LayersPath, "layer dump"}, {w.LogitsPath, c.LogitsPath, "logit dump"}, {w.ProbesPath, c.ProbesPath, "probes"}} {
		if extra[0] == "" && extra[1] != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("case %s: the golden has no %s, the candidate's was not compared", w.Name, extra[2]))
		}
	}
	if n := trailing(c, folder.Engine().Layers); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("case %s: %d bytes after the rows of %s were not compared", w.Name, n, c.LayersPath))
	}
}

// concludeExact concludes: one difference fails, and the first differing case
// in name order gives the row.
func (r *Report) concludeExact() *Report {
	r.Conclusion = NothingJudged
	for _, c := range r.Checks {
		if c.Status.Judged() {
			r.Executed++
			if r.Conclusion == NothingJudged {
				r.Conclusion = Conforms
			}
		}
	}
	for _, c := range r.Checks {
		if c.Status != Fail && c.Status != Error {
			continue
		}
		if r.Conclusion != Fails { // the first one
			if k := c.Kind; k != "" {
				r.Kind = &k
			}
			if v := r.Cases[c.Case]; v.Source != nil {
				r.FirstBadRow, r.Source = v.FirstBadRow, v.Source
				r.Sources = []engine.Probe{*v.Source}
			}
		}
		r.Conclusion = Fails
	}
	return r
}
