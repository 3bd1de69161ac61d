package seeded

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"sync"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/fixtures"
)

// Weights returns the seeded checkpoint; every call returns the same memory.
func Weights() (engine.Weights, error) { return load() }

var load = sync.OnceValues(func() (engine.Weights, error) { return Load(fixtures.SeededModel()) })

// Load reads a folder with config.json and one safetensors file of bfloat16 or
// float32 tensors.
func Load(dir fs.FS) (engine.Weights, error) {
	arch, err := loadArch(dir)
	if err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(dir, "model.safetensors")
	if err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(data)
	head := map[string]json.RawMessage{}
	if err := json.Unmarshal(data[8:8+size], &head); err != nil {
		return nil, err
	}
	delete(head, "__metadata__")
	w := &Memory{Architecture: arch, Tensors: map[string]engine.Tensor{}}
	for name, raw := range head {
		var info struct {
			DType   string `json:"dtype"`
			Shape   []int  `json:"shape"`
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(raw, &info); err != nil {
			return nil, err
		}
		body := data[8+size:][info.Offsets[0]:info.Offsets[1]]
		var values []float32
		switch info.DType {
		case "BF16":
			for at := 0; at < len(body); at += 2 {
				values = append(values, math.Float32frombits(uint32(binary.LittleEndian.Uint16(body[at:]))<<16))
			}
		case "F32":
			for at := 0; at < len(body); at += 4 {
				values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(body[at:])))
			}
		default:
			return nil, fmt.Errorf("seeded: %s: got dtype %s, want BF16 or F32", name, info.DType)
		}
		w.Tensors[name] = engine.Tensor{Shape: info.Shape, Data: values}
	}
	return w, nil
}

func loadArch(dir fs.FS) (engine.Arch, error) {
	data, err := fs.ReadFile(dir, "config.json")
	if err != nil {
		return engine.Arch{}, err
	}
	var c struct {
		Family       string  `json:"model_type"`
		Layers       int     `json:"num_hidden_layers"`
		Hidden       int     `json:"hidden_size"`
		Intermediate int     `json:"intermediate_size"`
		Heads        int     `json:"num_attention_heads"`
		KVHeads      int     `json:"num_key_value_heads"`
		HeadDim      int     `json:"head_dim"`
		Vocab        int     `json:"vocab_size"`
		Theta        float64 `json:"rope_theta"`
		Eps          float64 `json:"rms_norm_eps"`
		Tied         bool    `json:"tie_word_embeddings"`
		MaxPositions int     `json:"max_position_embeddings"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return engine.Arch{}, err
	}
	a := engine.Arch{
		Family: c.Family, Layers: c.Layers, Hidden: c.Hidden, Intermediate: c.Intermediate, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: c.HeadDim, Vocab: c.Vocab, TiedHead: c.Tied, MaxPositions: c.MaxPositions, FinalNormEps: c.Eps,
		PerLayer: make([]engine.LayerParams, c.Layers),
	}
	for i := range a.PerLayer {
		a.PerLayer[i] = engine.LayerParams{RopeTheta: c.Theta, NormEps: c.Eps}
	}
	return a, nil
}

// Memory is a checkpoint in memory.
type Memory struct {
	Architecture engine.Arch
	Tensors      map[string]engine.Tensor
}

// Arch implements engine.Weights.
func (m *Memory) Arch() engine.Arch { return m.Architecture }

// Tensor implements engine.Weights.
func (m *Memory) Tensor(name string) (engine.Tensor, error) {
	t, ok := m.Tensors[name]
	if !ok {
		return engine.Tensor{}, &engine.ConfigError{File: "memory", What: name, Want: "a tensor", Got: "nothing"}
	}
	return t, nil
}
