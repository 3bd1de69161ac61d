package reference

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
	"github.com/plumbline-go/plumbline/fixtures/tokenizer"
)

const ggufSuffix = ".gguf"

// isGGUF reports whether a path is named like a GGUF file.
func isGGUF(path string) bool { return strings.EqualFold(filepath.Ext(path), ggufSuffix) }

// ggufStore is a GGUF file as a weight file: its tensors under Hugging Face
// names, and the rows of q and k in Hugging Face's order.
type ggufStore struct {
	file  *gguf.File
	names map[string]string
	// heads are how many heads the rows of a permuted tensor belong to, by
	// Hugging Face name; see unpermute.
	heads map[string]int
}

// loadGGUF makes a checkpoint of a GGUF file.
func loadGGUF(name string, open func() (*gguf.File, error)) (_ *Checkpoint, err error) {
	file, err := open()
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	st := &ggufStore{file: file}
	c := &Checkpoint{name: path.Base(filepath.ToSlash(name)), file: name, where: map[string]store{}, shards: []store{st}, textFile: name}
	if c.cfg, err = ggufConfig(file); err != nil {
		return nil, err
	}
	if err = st.name(c.cfg.arch); err != nil {
		return nil, err
	}
	for hf := range st.names {
		c.where[hf] = st
	}
	if err = c.checkTensors(); err != nil {
		return nil, err
	}
	c.text = sync.OnceValues(func() (*tokenizer.Tokenizer, error) { return ggufTokenizer(file) })
	c.closeWhenLost()
	return c, nil
}

func (st *ggufStore) path() string { return st.file.Name() }

// check implements store.
func (st *ggufStore) check(name string, want []int) error {
	t, _ := st.file.Tensor(st.names[name])
	if err := st.file.Supported(t); err != nil {
		return err
	}
	return checkShape(st.path(), t.Name, t.Shape, want)
}

// tensor implements store.
func (st *ggufStore) tensor(name string) (engine.Tensor, error) {
	t, _ := st.file.Tensor(st.names[name])
	if err := st.file.Supported(t); err != nil {
		return engine.Tensor{}, err
	}
	out := engine.Tensor{Shape: slices.Clone(t.Shape), Data: make([]float32, t.Elements())}
	if err := st.file.Float32s(t.Name, out.Data); err != nil {
		return engine.Tensor{}, fmt.Errorf("reference: %w", err)
	}
	if heads := st.heads[name]; heads > 0 {
		out.Data = unpermute(out.Data, t.Shape[0], heads)
	}
	return out, nil
}

func (st *ggufStore) close() error { return st.file.Close() }

// unpermute undoes what llama.cpp's conversion does to the rows of q and k of a
// llama, weights and biases: its rotary embedding turns neighbouring rows of a
// head, 2i and 2i+1, where Hugging Face's turns rows i and i+d/2, so the
// conversion moves row i + j*d/2 of each head to 2i + j.
func unpermute(data []float32, rows, heads int) []float32 {
	out := make([]float32, len(data))
	width, d := len(data)/rows, rows/heads
	for row := range rows {
		head, r := row/d, row%d
		to := head*d + r/2 + r%2*(d/2)
		copy(out[to*width:(to+1)*width], data[row*width:(row+1)*width])
	}
	return out
}
