package mutant_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine/internal/seeded"
	"github.com/plumbline-go/plumbline/engine/mutant"
)

// A checkpoint whose layer 17 contributes nothing.
func ExampleMutant_Weights() {
	clean, err := seeded.Weights()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := mutant.Lookup("layer-skipped")
	if err != nil {
		fmt.Println(err)
		return
	}
	faulty, err := m.Weights(clean, 17)
	if err != nil {
		fmt.Println(err)
		return
	}
	o, err := faulty.Tensor("model.layers.17.self_attn.o_proj.weight")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Named, o.Shape, o.Data[0])
	// Output: row L+1 for layer L [64 64] 0
}
