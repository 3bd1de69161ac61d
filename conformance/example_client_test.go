package conformance_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
)

// The body of a client's test: its dumps beside the reference, which runs the same
// checkpoint.
func ExampleRun() {
	testConformance := func(t *testing.T) {
		ref, err := reference.Open("/models/qwen2")
		if err != nil {
			t.Fatal(err)
		}
		conformance.Run(t, conformance.Config{
			Reference: ref,
			Yardstick: quant.New(ref), // for an engine with int8 weights or rows
			Candidate: engine.Dir("/abs/path/to/dumps"),
		})
	}
	_ = testConformance // go test runs it under the name TestConformance
}

// The checks that a candidate must be judged by.
func ExampleBuiltin() {
	for _, c := range conformance.Builtin().Checks() {
		if c.Level == conformance.Core {
			fmt.Println(c.ID)
		}
	}
	// Output:
	// ResidualShape
	// PromptTokens
	// LogitRowContract
	// ResidualCandidate
	// LocalError
	// LogitCandidate
}

// The places that a fault of a layer is named by.
func ExampleStandardProbes() {
	fmt.Println(conformance.StandardProbes(engine.Arch{Layers: 1}))
	// Output: [embed blocks.0.k_rope blocks.0.v blocks.0.resid_mid blocks.0.resid_post]
}

// Prove shows that every check fails on its planted faults. It needs something that
// plants them; package tools/suite binds it, and plumbline selftest prints the table.
func ExampleProve() {
	_, err := conformance.Prove(context.Background(), conformance.Config{})
	fmt.Println(err)
	// Output: conformance: prove: Config.Mutants is nil: nothing plants the faults
}

// A bound, and where it comes from.
func ExampleDefaultBudgets() {
	b := conformance.DefaultBudgets().Int8.Single
	fmt.Println(b.Describe())
	// Output: 3 times the int8 emulation's own error on the same prompt
}

// A run of the reference alone judges no candidate, and says so.
func ExampleConfig() {
	ckpt, err := reference.LoadFS(fixtures.SeededModel(), ".")
	if err != nil {
		panic(err)
	}
	defer ckpt.Close()
	ref, err := reference.New(ckpt)
	if err != nil {
		panic(err)
	}
	prompts, err := fixtures.SeededPrompts()
	if err != nil {
		panic(err)
	}
	rep, err := conformance.Evaluate(context.Background(), conformance.Config{Reference: ref, Cases: prompts[:1], Only: []string{"InteriorRowOracle"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(rep.Conclusion, rep.Executed, rep.Checks[0].Status)
	// Output: nothing judged 0 pass
}
