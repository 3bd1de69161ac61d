package reference

import (
	"fmt"

	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

// Encode implements [engine.Encoder]: the ids of a text by the tokenizer.json
// beside the weights, which is read with the first call. Special tokens that
// stand in the text are recognised, none is added.
func (c *Checkpoint) Encode(text string) ([]int, error) {
	t, err := c.text()
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return t.Encode(text)
}

// textOf opens the folder's tokenizer once, when it is asked for.
func textOf(f folder) func() (*tokenizer.Tokenizer, error) {
	return func() (*tokenizer.Tokenizer, error) { return tokenizer.LoadFS(f.fsys, f.dir) }
}
