package main

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden"
)

// holdRecording holds a recording and the checkpoint to the recording's manifest before
// anything runs: a golden of another model judges nothing.
func (a *app) holdRecording(folder string, want *wanted) error {
	if want.golden == nil || want.golden.Recording() == nil {
		return nil
	}
	ckpt, err := a.checkpoint()
	if err != nil {
		return err
	}
	fsys, _ := checkpointFS(ckpt.WeightFiles())
	want.inputs = golden.Inputs{Checkpoint: fsys}
	if problems := want.golden.Verify(want.inputs); len(problems) > 0 {
		more := ""
		if n := len(problems) - 1; n > 0 {
			more = fmt.Sprintf(" (and %s more)", plural(n, "problem"))
		}
		return fmt.Errorf("--golden %s: not what its manifest says: %w%s", dumpfmt.Printable(folder), &problems[0], more)
	}
	return nil
}
