package reference

import "github.com/plumbline-go/plumbline/engine"

// store is an open weight file. Tensors go by their Hugging Face names.
type store interface {
	// path names the file in messages.
	path() string
	// check compares a tensor of the file with what the model needs.
	check(name string, want []int) error
	// tensor reads a tensor of the file as float32.
	tensor(name string) (engine.Tensor, error)
	close() error
}

var (
	_ store = (*shard)(nil)
	_ store = (*ggufStore)(nil)
)
