package engine

import "sync"

// Resident returns weights that keep each tensor in memory once it was read.
// A checkpoint reads its files on every call; whoever asks for the same tensors
// many times, or compares them by their memory, wants them resident.
func Resident(w Weights) Weights { return &resident{Weights: w} }

type resident struct {
	Weights
	tensors sync.Map // name -> func() (Tensor, error)
}

func (r *resident) Tensor(name string) (Tensor, error) {
	get, _ := r.tensors.LoadOrStore(name, sync.OnceValues(func() (Tensor, error) { return r.Weights.Tensor(name) }))
	return get.(func() (Tensor, error))()
}
