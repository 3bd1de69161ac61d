package page

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// strip is the model in one line, from the embedding to the logits, with what is at
// fault marked.
type strip struct {
	Cells []stripCell
	Label string
	// Bad is true where a place is marked.
	Bad bool
}

type stripCell struct {
	Class, Title string
	// Bad is true for a place at fault; Mark names it, where there is room.
	Bad  bool
	Mark string
}

// stripOf shows the median of the local error, and of the accumulated one where no
// layer wrote the row. Behind the layers come the final norm and the logits, by what
// the checks on them say.
func stripOf(r *conformance.Report, h *heatMaps) strip {
	var s strip
	if h.Rows == 0 {
		return s
	}
	labelled := -4
	for i := range h.Rows {
		x, what, limit := h.Maps[0].median[i], "local error", h.Maps[0].medianLimit
		if other := h.Maps[1].median[i]; i == 0 || math.IsNaN(x) && !math.IsNaN(other) {
			x, what, limit = other, "accumulated error", h.Maps[1].medianLimit
		}
		c := stripCell{Class: "n", Title: fmt.Sprintf("%s: not measured", engine.RowProbe(i))}
		if !math.IsNaN(x) {
			c.Class = heatClass(x, limit)
			c.Title = fmt.Sprintf("%s: median %s %s times the yardstick's", engine.RowProbe(i), what, ratioText(x))
		}
		if h.flags[i] {
			c.Bad, c.Mark = true, fmt.Sprintf("layer %d", i-1)
			switch {
			case kindOf(r) == conformance.KindDump: // no layer is to blame
				c.Mark = fmt.Sprintf("row %d", i)
			case i == 0:
				c.Mark = "embedding"
			}
			if i-labelled < 4 {
				c.Mark = "" // no room
			} else {
				labelled = i
			}
		}
		s.Cells = append(s.Cells, c)
	}
	for _, p := range []struct {
		probe       engine.Probe
		name, check string
	}{{engine.ProbeFinalNorm, "final norm", "ResidualToLogits"}, {engine.ProbeLogits, "logits", "LogitCandidate"}} {
		c := stripCell{Class: "n", Title: p.name + ": not judged"}
		for _, res := range r.Checks {
			if res.ID != p.check || res.Side != conformance.SideCandidate {
				continue
			}
			switch res.Status {
			case conformance.Fail:
				c.Class, c.Title = "x", p.name+": over its limits, which a fault before it explains"
			case conformance.Pass:
				if c.Class == "n" {
					c.Class, c.Title = "a", p.name+": within its limits"
				}
			}
		}
		for _, source := range r.Sources {
			if source == p.probe {
				c.Class, c.Title, c.Bad, c.Mark = "z", p.name+": at fault", true, p.name
			}
		}
		s.Cells = append(s.Cells, c)
	}
	s.Label = "no place is marked as faulty"
	if kindOf(r) == conformance.KindAllLayers {
		s.Label = "every layer introduces error"
	}
	for _, c := range s.Cells {
		if c.Mark != "" && !s.Bad {
			s.Bad, s.Label = true, c.Mark+" is marked as faulty"
		}
	}
	return s
}
