package suite

import (
	"fmt"
	"io/fs"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

// inputs are what the embedded goldens were recorded from.
func inputs() golden.Inputs {
	return golden.Inputs{Checkpoint: fixtures.Model(), Prompts: fixtures.PromptsFile()}
}

// victim is the golden that the faults of files are planted in.
const victim = "mutex.layers.bin"

// plantInFiles plants a fault in the goldens or in what they were recorded from.
// ok is false when the control is not one of these.
func plantInFiles(cfg conformance.Config, k conformance.Control) (_ conformance.Config, ok bool, err error) {
	dumps := func(change func(fs.FS) (fs.FS, error)) error {
		if cfg.Golden == nil {
			return fmt.Errorf("suite: %s: got no goldens to plant it in", k.Mutant)
		}
		cfg.Golden, err = cfg.Golden.Replaced(change)
		return err
	}
	switch k.Mutant {
	case "golden-bit-flipped":
		err = dumps(func(f fs.FS) (fs.FS, error) { return mutant.FlipBit(f, victim, 8*1000+5) })
	case "golden-missing":
		err = dumps(func(f fs.FS) (fs.FS, error) { return mutant.WithoutFile(f, victim) })
	case "golden-orphan":
		err = dumps(func(f fs.FS) (fs.FS, error) { return mutant.WithFile(f, "stale.layers.bin", []byte("stale")) })
	case "checkpoint-bit-flipped":
		cfg.GoldenInputs.Checkpoint, err = mutant.FlipBit(cfg.GoldenInputs.Checkpoint, "model.safetensors", 8*100_000)
	case "prompts-bit-flipped":
		cfg.GoldenInputs.Prompts = append([]byte(nil), cfg.GoldenInputs.Prompts...)
		cfg.GoldenInputs.Prompts[100] ^= 1
	case "case-without-golden":
		cfg.Cases = append(append([]engine.Case(nil), cfg.Cases...),
			engine.Case{Name: "nobody-recorded-this", Text: "x", TokenIDs: []int{1, 2, 3}})
	default:
		return cfg, false, nil
	}
	return cfg, true, err
}
