package reference

import (
	"fmt"
	"time"
)

// PromptError says that token ids can't be run: there are none, one is outside
// the vocabulary, or there are more than the model has positions.
type PromptError struct {
	// Index is the token at fault, or -1 for the prompt as a whole.
	Index     int
	Got, Want string
}

func (e *PromptError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("reference: prompt: got %s, want %s", e.Got, e.Want)
	}
	return fmt.Sprintf("reference: prompt: token %d: got %s, want %s", e.Index, e.Got, e.Want)
}

// StallError says that a step did not end within the step deadline.
type StallError struct {
	// Step is how many steps of the run had ended.
	Step     int64
	Deadline time.Duration
}

func (e *StallError) Error() string {
	return fmt.Sprintf("reference: step %d: no end after %v (the backend is deadlocked, or too slow for a prompt of this length: WithStepDeadline)", e.Step, e.Deadline)
}

// checkIDs validates a prompt against the vocabulary and the position limit.
func (e *Engine) checkIDs(ids []int) error {
	if len(ids) == 0 {
		return &PromptError{Index: -1, Got: "0 tokens", Want: "at least 1"}
	}
	for i, id := range ids {
		if id < 0 || id >= e.arch.Vocab {
			return &PromptError{Index: i, Got: fmt.Sprintf("id %d", id), Want: fmt.Sprintf("0 to %d", e.arch.Vocab-1)}
		}
	}
	if limit := e.arch.MaxPositions; limit > 0 && len(ids) > limit {
		return &PromptError{Index: -1, Got: fmt.Sprintf("%d tokens", len(ids)),
			Want: fmt.Sprintf("at most %d (max_position_embeddings)", limit)}
	}
	return nil
}

// checkRow validates a row of the residual stream handed in by a caller.
func (e *Engine) checkRow(row []float64) error {
	if len(row) != e.arch.Hidden {
		return fmt.Errorf("reference: row: got %d elements, want %d", len(row), e.arch.Hidden)
	}
	return nil
}
