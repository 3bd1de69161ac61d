package quant

import (
	"testing"

	"github.com/plumbline-go/plumbline/engine"
)

// BenchmarkEmulate reports the time of all fixture prompts, weights prepared.
func BenchmarkEmulate(b *testing.B) {
	e, cases := FromWeights(model(b)), prompts(b)
	tokens := 0
	for b.Loop() {
		for _, c := range cases {
			if _, err := e.Emulate(b.Context(), engine.Scheme{RowsInt8: true}, c.TokenIDs); err != nil {
				b.Fatal(err)
			}
			tokens += len(c.TokenIDs)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(tokens), "us/token")
}

// BenchmarkPrepare reports the time of quantising the checkpoint.
func BenchmarkPrepare(b *testing.B) {
	w := model(b)
	for b.Loop() {
		if _, err := FromWeights(w).Emulate(b.Context(), engine.Scheme{}, []int{1}); err != nil {
			b.Fatal(err)
		}
	}
}
