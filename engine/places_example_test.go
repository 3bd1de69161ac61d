package engine_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// Places are named in one way everywhere.
func ExampleBlock() {
	fmt.Println(engine.Block(17, engine.PartKRope), engine.ResidPost(17), engine.RowProbe(0), engine.RowProbe(18))
	// Output: blocks.17.k_rope blocks.17.resid_post embed blocks.17.resid_post
}

// The fake that a sound way between a program and Plumbline reads as right.
func ExampleSmokeRight() {
	c := engine.SmokeRight()
	fmt.Println(c.Name, c.TokenIDs)
	// Output: plumbline-smoke [1 2 3 4 5]
}
