package conformance_test

import (
	"fmt"
	"strings"

	"github.com/plumbline-go/plumbline/conformance"
)

// A failure that is known, and accepted until a day.
func ExampleReadWaivers() {
	ws, err := conformance.ReadWaivers(strings.NewReader(`{"waivers": [
		{"check": "LocalError", "case": "rome", "probe": "blocks.7.resid_post", "reason": "issue 12: gate saturates", "expires": "2030-06-30"}
	]}`), "waivers.json")
	fmt.Println(len(ws), ws[0].Probe, err)

	_, err = conformance.ReadWaivers(strings.NewReader(`{"waivers": [{"check": "LocalError", "case": "rome"}]}`), "waivers.json")
	fmt.Println(err)
	// Output:
	// 1 blocks.7.resid_post <nil>
	// conformance: waivers.json: waivers[0].reason: got "", want a reason
}

// Reports of different runs, or too few of one, aren't joined.
func ExampleMerge() {
	whole := &conformance.Report{SchemaVersion: conformance.SchemaVersion}
	_, err := conformance.Merge([]conformance.ShardReport{{Name: "report.json", Report: whole}}, conformance.MergeOptions{})
	fmt.Println(err)
	// Output: conformance: merge: report.json: got the report of a whole run, want a shard's
}
