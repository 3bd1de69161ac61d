package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// power says what the dumps can show and what they can't.
func power(evs []*Evidence) []string {
	var judged, positions, exact, allPositions int
	quantised := false
	logits := logitPower(evs)
	for _, ev := range evs {
		if ev.ProbeProfile != nil && ev.ProbeProfile.anyMeasured() {
			exact++
			quantised = quantised || arithmeticOf(ev.Declared).scheme.RowsInt8
			allPositions += ev.ProbeProfile.Positions
		}
		if ev.Profile == nil {
			continue
		}
		judged++
		positions += len(ev.Case.TokenIDs)
		quantised = quantised || arithmeticOf(ev.Declared).scheme.RowsInt8
	}
	if judged == 0 && exact == 0 {
		return append([]string{"no layer dump was judged by value"}, logits...)
	}
	var out []string
	if judged > 0 {
		out = append(out, fmt.Sprintf("%d of %d prompts, %d tokens in all, judged by value at each prompt's last position; probes: embed and every blocks.N.resid_post",
			judged, len(evs), positions))
		if judged < MedianCases {
			out = append(out, fmt.Sprintf("fewer than %d prompts: each is judged alone, with the wider single-prompt bound", MedianCases))
		}
	}
	if low, high, ok := sensitivity(evs); ok {
		out = append(out, fmt.Sprintf("a fault in one layer is seen if it is %s to %s of what that layer adds, depending on the layer",
			percent(low), percent(high)))
	}
	if exact > 0 {
		out = append(out, positionsPower(evs, exact, allPositions)...)
	}
	if exact < judged {
		out = append(out,
			"not seen: a fault at earlier positions that the last row does not feel, and a smaller fault behind a larger one: dump all positions",
			"a dropped or stale row of the KV cache is seen in a last row only as far as that row attends to it: cache faults need all positions (NAME.probes.safetensors)")
	}
	out = append(out, logits...)
	if quantised {
		out = append(out, "not seen in int8 rows: a wrong norm epsilon, a constant offset of about one code")
	}
	return out
}

// ownRecording is the name of a golden that the reference itself recorded, empty for any
// other.
func (c *Config) ownRecording(reference string) string {
	if c.Golden == nil || !c.Golden.ShowsChangeOnly(reference) {
		return ""
	}
	return c.Golden.Name()
}

// goldenPower says of a golden that the reference itself recorded what it is worth, and
// whether it still has the recorded bits.
func (r *Report) goldenPower(name string) []string {
	if name == "" {
		return nil
	}
	rows, changed := 0, 0
	for _, c := range r.Checks {
		if c.ID != "ResidualGolden" && c.ID != "LogitGolden" || c.Status != Pass {
			continue // what failed is reported as such
		}
		for _, f := range c.Findings {
			rows++
			if f.Got != 0 {
				changed++
			}
		}
	}
	return []string{fmt.Sprintf("golden %s is this reference's own recording: it shows change, not truth; "+
		"of %d rows that passed %d have other values than recorded", name, rows, changed)}
}

// sensitivity is the smallest local error that is out of budget, as a share of
// a layer's own update, at the layer where most and at the one where least is
// seen. ok is false when nothing was measured.
func sensitivity(evs []*Evidence) (low, high float64, ok bool) {
	var ps []*Profile
	var b Budgets
	for _, ev := range evs {
		if ev.Profile != nil {
			ps, b = append(ps, ev.Profile), ev.Budgets
		}
	}
	if len(ps) == 0 {
		return 0, 0, false
	}
	bound := localBound(curveOf(ps[0]), ps[0].Factors.Single.Value, b)
	if len(ps) >= MedianCases {
		bound = localBound(medianCurve(ps), ps[0].Factors.Median.Value, b)
	}
	for n := range ps[0].Local {
		var yard []float64
		for _, p := range ps {
			if !p.Local[n].Missing {
				yard = append(yard, p.Local[n].Yard)
			}
		}
		if len(yard) == 0 {
			continue
		}
		x := bound * metric.Median(yard)
		if !ok || x < low {
			low = x
		}
		high = max(high, x)
		ok = true
	}
	return low, high, ok
}

// percent keeps two digits of any share.
func percent(x float64) string { return fmt.Sprintf("%.2g %%", 100*x) }
