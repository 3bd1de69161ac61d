package main

import (
	"fmt"

	"github.com/plumbline-go/plumbline/tools/internal/routes"
)

// recordedGate is what the choices at one gate amount to.
type recordedGate struct {
	Layer int `json:"layer"`
	Rows  int `json:"rows"`
	// Above are the rows whose margin lies above the band.
	Above       int `json:"above_band"`
	NearTies    int `json:"near_ties"`
	Mismatches  int `json:"near_tie_mismatches"`
	Calibration int `json:"calibration_mismatches"`
	Probability num `json:"probability"`
	Least       num `json:"least_probability"`
	// Blind says that no number of mismatches would have been a finding.
	Blind bool `json:"blind"`
}

// gates are the figures of all gates.
func (r *recordedResult) gates() []recordedGate {
	out := []recordedGate{}
	for _, x := range r.routes.Rates() {
		out = append(out, recordedGate{x.Layer, x.Rows, x.Above, x.NearTies, x.Mismatches, x.Calibration, num(x.Probability), num(x.Least), x.Blind})
	}
	return out
}

// rates says at which gates near ties went to other experts too often.
func (r *recordedResult) rates(fail func(format string, args ...any)) {
	if r.routes == nil {
		return
	}
	for _, x := range r.routes.Rates() {
		if x.Excessive() {
			fail("layer_%02d: other experts in %d of %s, %s has others in %d: probability %.1e, want at least %.1e",
				x.Layer, x.Mismatches, plural(x.NearTies, "near tie"), r.Reference, x.Calibration, x.Probability, x.Least)
		}
	}
}

func (r *recordedResult) ratesText() string {
	return "\n" + routes.RatesText(r.routes.Rates(), "the recorded run", fmt.Sprintf("%s, from %s", r.Reference, r.Emulation))
}
