package reference_test

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine/reference"
)

// The embedded checkpoint's folder; yours has a config.json and safetensors as well.
func ExampleOpen() {
	ref, err := reference.Open("../../fixtures/qwen2-seeded")
	if err != nil {
		fmt.Println(err)
		return
	}
	trace, err := ref.Capture(context.Background(), []int{5, 17, 300})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ref.Describe().DType, len(trace.Rows()), "rows of", len(trace.Rows()[0]))
	// Output: float32 29 rows of 64
}

// A checkpoint without an engine: what it is, and one tensor.
func ExampleLoad() {
	ckpt, err := reference.Load("../../fixtures/qwen2-seeded")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ckpt.Close()
	t, err := ckpt.Tensor("model.norm.weight")
	fmt.Println(ckpt.Arch().Layers, t.Shape, err)
	// Output: 28 [64] <nil>
}
