package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAControlMustFailForItsReason: a control that fails at another place, or as
// another kind of fault, proves nothing.
func TestAControlMustFailForItsReason(t *testing.T) {
	at := func(kind Kind, row int) Result {
		return Result{Status: Fail, Kind: kind, Findings: []Finding{{At: AtRow(row)}}}
	}
	for _, tc := range []struct {
		name    string
		result  Result
		control Control
		says    string
	}{
		{"the planted fault", at(KindDump, 11), Control{Kind: KindDump, Layer: 11}, ""},
		{"another kind", at(KindFormat, 11), Control{Kind: KindDump, Layer: 11}, "another reason"},
		{"another row", at(KindDump, 12), Control{Kind: KindDump, Layer: 11}, "another place"},
		{"no place to be at", at(KindFormat, -1), Control{Kind: KindFormat, Layer: -1}, ""},
		{"another finding", Result{Status: Fail, Findings: []Finding{{Metric: "receipt"}}}, Control{Metric: "prefix", Layer: -1}, "want prefix"},
		{"the finding, and another", Result{Status: Fail, Findings: []Finding{{Metric: "receipt"}, {Metric: "prefix"}}}, Control{Metric: "prefix", Layer: -1}, ""},
		{"a control that does not say", at(KindFormat, 3), Control{Layer: 11}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := wrongReason(tc.result, tc.control)
			if tc.says == "" {
				assert.Empty(t, got)
			} else {
				assert.Contains(t, got, tc.says)
			}
		})
	}
}

// TestEveryExactControlSaysItsReason: without a floor the kind, or what is found, tells
// the planted fault from any other, except where a check has one way to fail.
func TestEveryExactControlSaysItsReason(t *testing.T) {
	for _, c := range Builtin().Checks() {
		for _, k := range c.Controls {
			if k.Side == SideSuite || k.Floor > 0 || k.Mutant == "shifted-index" {
				continue
			}
			assert.NotEmpty(t, string(k.Kind)+k.Metric, "%s on %s", c.ID, k.Mutant)
		}
	}
}
