package report

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// verdict is the suite of what no single check says.
func (b *junitBuilder) verdict() junitSuite {
	r := b.r
	s := junitSuite{Name: "verdict", Time: junitSeconds(0), Out: junitOut(r)}
	for _, l := range provenance(r) {
		name, value, _ := strings.Cut(l, ": ")
		s.Properties.List = append(s.Properties.List, junitProperty{junitName(name), junitText(value)})
	}
	if r.Reproduce != "" {
		s.Properties.List = append(s.Properties.List, junitProperty{"reproduce", printable(r.Reproduce, len(r.Reproduce)*4)})
	}
	if i := r.Shard; i != nil {
		s.Properties.List = append(s.Properties.List, junitProperty{"shard", junitText(shardLine(i, len(r.Cases)))})
	}
	add := func(name string, set func(*junitCase)) {
		c := junitCase{Name: junitName(name), Class: junitPackage + ".verdict", Time: junitSeconds(0)}
		set(&c)
		s.Cases = append(s.Cases, c)
	}
	add("conclusion", func(c *junitCase) { conclude(c, r) })
	for _, n := range r.NotJudged {
		add("core check judged somewhere: "+n.ID, func(c *junitCase) {
			c.Skipped = &junitReason{Message: junitText("would run with: " + n.WouldRun)}
		})
	}
	for _, w := range r.Waivers {
		add("waiver of "+waiverLabel(w.Waiver), func(c *junitCase) {
			if w.Problem != "" {
				c.Failure = &junitReason{Message: junitText(w.Problem), Type: "waiver", Text: junitText(w.Reason)}
			}
		})
	}
	if base := r.Baseline; base != nil {
		add("baseline", func(c *junitCase) {
			if len(base.Regressions) == 0 {
				return
			}
			var lines []string
			for _, l := range regressionLines(r) {
				lines = append(lines, junitText(l))
			}
			c.Failure = &junitReason{Message: fmt.Sprintf("%s worse than the baseline", plural(len(base.Regressions), "figure")),
				Type: "baseline", Text: strings.Join(lines, "\n")}
		})
	}
	return s
}

// conclude is red whenever a gate would not exit with 0.
func conclude(c *junitCase, r *conformance.Report) {
	why := &junitReason{Message: junitText(verdictText(r)), Type: junitName(string(r.Conclusion))}
	switch {
	case r.ReferenceFailed:
		c.Error = why
	case r.Conclusion == conformance.Conforms:
	case r.EmptyShard():
		c.Skipped = &junitReason{Message: "this shard has no cases: the others have what there is to judge"}
	case r.Conclusion == conformance.Partial && r.PartialAllowed:
		c.Skipped, why.Type = why, ""
	case r.Conclusion == conformance.Partial || r.Conclusion == conformance.Fails:
		c.Failure = why
	default:
		c.Error = why
	}
}

// verdictText is the verdict in one line.
func verdictText(r *conformance.Report) string {
	s := string(r.Conclusion)
	switch {
	case r.ReferenceFailed:
		return s + ": the reference failed a check of its own, no verdict can be trusted"
	case r.Conclusion == conformance.Partial:
		return s + ": " + r.WhyPartial()
	}
	if r.FirstBadRow != nil {
		s += ": first bad row " + conformance.AtRow(*r.FirstBadRow).String()
	}
	if source, place := placeOf(r); source != "" {
		s += ", source " + source
	} else if place != "" {
		s += ", " + place
	}
	return s
}

// placeOf is the source of a failure or, where it has no single one, its place in words.
func placeOf(r *conformance.Report) (source, words string) {
	kind := conformance.Kind("")
	if r.Kind != nil {
		kind = *r.Kind
	}
	switch {
	case r.Conclusion != conformance.Fails:
		return "", "" // a source that is waived makes nothing fail
	case kind == conformance.KindAllLayers:
		return "", "in all layers"
	case kind == conformance.KindDump:
		return "", "in the dump, not in the engine"
	case r.Source != nil:
		return string(*r.Source), ""
	}
	return "", ""
}
