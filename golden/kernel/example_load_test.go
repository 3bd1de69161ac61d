package kernel_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/golden/kernel"
)

// A built-in inventory, or a file with one.
func ExampleLoad() {
	inv, err := kernel.Load("gemma4-30")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(inv.Name, inv.Len())
	// Output: gemma4-30 840
}
