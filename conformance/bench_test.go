package conformance_test

import (
	"testing"

	"github.com/plumbline-go/plumbline/conformance"
)

// BenchmarkEvaluate is the whole suite on the embedded model, prompts and
// candidate, the reference's own checks included.
func BenchmarkEvaluate(b *testing.B) {
	cfg, err := embedded()
	if err != nil {
		b.Fatal(err)
	}
	tokens := 0
	for _, c := range cfg.Cases {
		tokens += len(c.TokenIDs)
	}
	for b.Loop() {
		if _, err := conformance.Evaluate(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tokens), "tokens/op")
}

// BenchmarkJudgeCandidate leaves the reference's own checks out: what a gate
// costs per folder.
func BenchmarkJudgeCandidate(b *testing.B) {
	cfg, err := embedded()
	if err != nil {
		b.Fatal(err)
	}
	cfg.Only = []string{"ResidualShape", "ResidualCandidate", "LocalError"}
	cfg.ReferenceCases = 0
	for b.Loop() {
		if _, err := conformance.Evaluate(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
	}
}
