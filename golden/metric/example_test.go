package metric_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// A doubled row: the correlation is perfect, the scale is not.
func ExampleRelativeL2() {
	ref := []float64{1, 2, -3}
	cand := []float64{2, 4, -6}
	fmt.Printf("pearson %.1f, relative l2 %.1f, norm ratio %.1f\n",
		metric.PearsonZ(cand, ref), metric.RelativeL2(cand, ref), metric.NormRatio(cand, ref))
	// Output: pearson 1.0, relative l2 1.0, norm ratio 2.0
}

func ExampleAccumulator() {
	var acc metric.Accumulator
	acc.Add([]float32{3, 4}, []float32{3, 0})
	acc.Add([]float32{0}, []float32{4})
	t := acc.Totals()
	fmt.Printf("%d pairs, max %g at %d, relative l2 %.3f\n", t.N, t.MaxAbs, t.MaxAt, t.RelativeL2())
	// Output: 3 pairs, max 4 at 1, relative l2 1.131
}

// The kernel tests' nRMSE, over two heads of width 2, and per head.
func ExampleCompareHeads() {
	ref := []float32{3, 4, 1, 0}
	cand := []float32{3, 4, 0, 0}
	fmt.Printf("all %.3f\n", metric.CompareTensors(cand, ref).NRMSE())
	for h, s := range metric.CompareHeads(cand, ref, 2) {
		fmt.Printf("head %d %.3f\n", h, s.NRMSE())
	}
	// Output:
	// all 0.196
	// head 0 0.000
	// head 1 1.000
}
