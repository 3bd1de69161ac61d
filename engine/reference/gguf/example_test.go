package gguf_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine/reference/gguf"
)

func ExampleOpen() {
	f, err := gguf.Open("testdata/everything.gguf")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	name, _ := f.Value("general.architecture")
	fmt.Println(name)
	for _, t := range f.Tensors() {
		fmt.Println(t.Name, t.Type, t.Shape)
	}
	// Output:
	// made-up
	// t.Q6_K Q6_K [1 512]
	// t.Q4_0 Q4_0 [2 64]
	// t.Q8_0 Q8_0 [3 64]
	// t.Q3_K Q3_K [4 512]
	// t.cube F32 [2 3 5]
}

func ExampleFile_Float32s() {
	f, err := gguf.Open("testdata/everything.gguf")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	t, _ := f.Tensor("t.Q8_0")
	values := make([]float32, t.Elements())
	if err := f.Float32s(t.Name, values); err != nil {
		fmt.Println(err)
	}
	fmt.Println(len(values))
	// Output: 192
}
