package bisect_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/tools/internal/bisect"
)

func ExampleSummarise() {
	s := bisect.Summarise([]float64{0.1, 0.2, 0.3})
	fmt.Printf("n %d, median %.1f, p95 %.2f\n", s.N, s.Median, s.P95)
	// Output: n 3, median 0.2, p95 0.29
}
