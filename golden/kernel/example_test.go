package kernel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

// Two sides in memory, as engines answer; one head of one layer is off.
func ExampleCompare() {
	inv := kernel.Gemma4()
	side := func(scale float32) kernel.Source {
		return kernel.Func(func(at kernel.Key) []float32 {
			heads, width := inv.Shape(at)
			out := make([]float32, heads*width)
			for i := range out {
				out[i] = float32(i%7) - 3
				if at.Layer == 11 && inv.Ops[at.Op].Name == "v_normed" && i < width {
					out[i] *= scale
				}
			}
			return out
		}).Of(inv)
	}
	judge := kernel.NewJudge(inv, kernel.DefaultThresholds())
	err := kernel.Compare(context.Background(), inv, side(1), side(1.25), kernel.Options{}, judge.Add)
	if err != nil {
		log.Fatal(err)
	}
	_, verdict := judge.Verdicts()
	fmt.Println(verdict.Conclusion, verdict.Class, verdict.Compared)
	fmt.Println(inv.Coordinates(verdict.Overall.Key), verdict.Overall.MaxAbs)
	// Output:
	// fails bug-candidate 840
	// layer=11 pos=1 op=v_normed 0.75
}
