package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/engine"
)

// TestWaiversCoverEveryFinding: a failure at two places isn't waived by a waiver of one,
// and one of the reference by none.
func TestWaiversCoverEveryFinding(t *testing.T) {
	day := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	at := func(p string) Waiver {
		return Waiver{Check: "LocalError", Case: "a", Probe: p, Reason: "x", Expires: "2026-12-31"}
	}
	one, two := string(engine.ResidPost(3)), string(engine.ResidPost(5))
	for _, tc := range []struct {
		what    string
		side    Side
		waivers []Waiver
		waived  bool
		used    []int
	}{
		{"one of two places", SideCandidate, []Waiver{at(one)}, false, []int{0}},
		{"both places", SideCandidate, []Waiver{at(one), at(two)}, true, []int{1, 1}},
		{"no place", SideCandidate, []Waiver{at("")}, true, []int{1}},
		{"the reference's", SideReference, []Waiver{at("")}, false, []int{0}},
	} {
		r := &Report{Cases: map[string]CaseVerdict{"a": {}}, Checks: []Result{{ID: "LocalError", Case: "a", Side: tc.side, Level: Core, Status: Fail,
			Findings: []Finding{{Probe: engine.ResidPost(3)}, {Probe: engine.ResidPost(5)}}}}}
		r.waive(tc.waivers, day)
		assert.Equal(t, tc.waived, r.Checks[0].Waived != nil, tc.what)
		for i, n := range tc.used {
			assert.Equal(t, n, r.Waivers[i].Used, tc.what)
			assert.Equal(t, n == 0, r.Waivers[i].Problem != "", tc.what)
		}
	}
}
