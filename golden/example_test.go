package golden_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// The recorded goldens, held to their manifest.
func ExampleSet_Verify() {
	set, err := golden.Trained()
	if err != nil {
		panic(err)
	}
	problems := set.Verify(golden.Inputs{Checkpoint: fixtures.Model(), Prompts: fixtures.PromptsFile()})
	fmt.Println(set.Engine(), len(set.Manifest.Cases), len(problems))
	// Output: transformers 20 0
}

// A folder of float dumps that a trusted engine wrote; a manifest beside it would be
// held to.
func ExampleOpenFolder() {
	set, err := golden.OpenFolder("qwen2-trained")
	if err != nil {
		panic(err)
	}
	fmt.Println(set.Engine(), set.Has("mutex"), set.Has("another"))
	// Output: transformers true false
}
