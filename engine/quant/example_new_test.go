package quant_test

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// The yardstick of a reference runs the reference's own weights in int8.
func ExampleNew() {
	ref, err := reference.Open("../../fixtures/qwen2-seeded")
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := quant.New(ref).Emulate(context.Background(), engine.Scheme{RowsInt8: true}, []int{5, 17, 300})
	fmt.Println(len(rows), err)
	// Output: 29 <nil>
}
