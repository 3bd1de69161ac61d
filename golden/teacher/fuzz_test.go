package teacher

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// A summary is a sound plan, or refused with a reason that names the file; nothing
// panics.
func FuzzPlan(f *testing.F) {
	good, err := os.ReadFile(caseSummary)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"executed":true,"structural_target_receipt":[1],"reference_input":{"prediction_plan":{"examples":[{}],"prediction_points":[{"stable_id":""}]},"examples":[{"token_ids":[1e300]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		summary, err := canonical.Parse("x.json", data)
		if err != nil {
			return
		}
		// With and without its hashes, so that what comes behind them is seen too.
		tries := []canonical.Value{summary}
		if at(summary, inPlan).Kind() == canonical.KindObject {
			tries = append(tries, rehashed(summary))
		}
		for _, v := range tries {
			plan, problems := Check("x.json", v)
			if (plan == nil) != (len(problems) > 0) {
				t.Fatalf("got a plan: %t, and %d problems", plan != nil, len(problems))
			}
			for i := range problems {
				text := problems[i].Error()
				if !strings.HasPrefix(text, "teacher: x.json: ") || strings.ContainsAny(text, "\n\x00\x1b") {
					t.Fatalf("%q", text)
				}
			}
			if plan == nil {
				continue
			}
			if err := plan.TargetSpec().Size(); err <= 0 {
				t.Fatal(err)
			}
			CheckEvidence("x.json", v, EvidenceOf{Plan: plan})
		}
		var refused *RefusedError
		if _, err := Parse("x.json", data); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	})
}
