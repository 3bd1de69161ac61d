package reference

import (
	"fmt"

	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

const tokenizerName = "tokenizer.json"

// Encode implements [engine.Encoder]: the ids of a text by [Checkpoint.Tokenizer].
// Special tokens that stand in the text are recognised, none is added.
func (c *Checkpoint) Encode(text string) ([]int, error) {
	t, err := c.Tokenizer()
	if err != nil {
		return nil, err
	}
	return t.Encode(text)
}

// Tokenizer is the model's: that of the tokenizer.json beside the weights, or of
// the keys of the GGUF file, as llama.cpp reads them. It is read with the first
// call. A model without one gives an error that is fs.ErrNotExist.
func (c *Checkpoint) Tokenizer() (*tokenizer.Tokenizer, error) {
	t, err := c.text()
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	return t, nil
}

// TokenizerFile names the file that Tokenizer reads, for messages.
func (c *Checkpoint) TokenizerFile() string { return c.textFile }

// textOf opens the folder's tokenizer once, when it is asked for.
func textOf(f folder) func() (*tokenizer.Tokenizer, error) {
	return func() (*tokenizer.Tokenizer, error) { return tokenizer.LoadFS(f.fsys, f.dir) }
}
