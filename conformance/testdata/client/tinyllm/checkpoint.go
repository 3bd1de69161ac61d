package tinyllm

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// config is what the engine needs of config.json.
type config struct {
	ModelType string  `json:"model_type"`
	Hidden    int     `json:"hidden_size"`
	Layers    int     `json:"num_hidden_layers"`
	Heads     int     `json:"num_attention_heads"`
	KVHeads   int     `json:"num_key_value_heads"`
	MLP       int     `json:"intermediate_size"`
	Vocab     int     `json:"vocab_size"`
	Epsilon   float64 `json:"rms_norm_eps"`
	Rope      struct {
		Theta float64 `json:"rope_theta"`
	} `json:"rope_parameters"`
	Theta float64 `json:"rope_theta"` // where older checkpoints have it
	Tied  bool    `json:"tie_word_embeddings"`
}

// matrix is a weight of out rows and in columns.
type matrix struct {
	out, in int
	w       []float32
	bias    []float32 // nil without one
}

type layer struct {
	attnNorm, mlpNorm []float32
	q, k, v, o        matrix
	gate, up, down    matrix
}

// Load reads a Qwen2 checkpoint: a folder with config.json and model.safetensors.
func Load(dir string) (*Model, error) {
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	m := &Model{}
	c := &m.config
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("tinyllm: config.json: %w", err)
	}
	if c.ModelType != "qwen2" || !c.Tied {
		return nil, fmt.Errorf("tinyllm: config.json: got model_type %q, tied head %t, want a qwen2 with a tied head", c.ModelType, c.Tied)
	}
	if c.Theta == 0 {
		c.Theta = c.Rope.Theta
	}
	f, err := dumpfmt.OpenSafetensors(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := reader{f: f}
	m.embedding = r.matrix("model.embed_tokens", c.Vocab, c.Hidden, false)
	m.finalNorm = r.tensor("model.norm.weight", c.Hidden)
	head := c.Hidden / c.Heads
	for i := range c.Layers {
		at := fmt.Sprintf("model.layers.%d.", i)
		m.layers = append(m.layers, layer{
			attnNorm: r.tensor(at+"input_layernorm.weight", c.Hidden),
			mlpNorm:  r.tensor(at+"post_attention_layernorm.weight", c.Hidden),
			q:        r.matrix(at+"self_attn.q_proj", c.Heads*head, c.Hidden, true),
			k:        r.matrix(at+"self_attn.k_proj", c.KVHeads*head, c.Hidden, true),
			v:        r.matrix(at+"self_attn.v_proj", c.KVHeads*head, c.Hidden, true),
			o:        r.matrix(at+"self_attn.o_proj", c.Hidden, c.Heads*head, false),
			gate:     r.matrix(at+"mlp.gate_proj", c.MLP, c.Hidden, false),
			up:       r.matrix(at+"mlp.up_proj", c.MLP, c.Hidden, false),
			down:     r.matrix(at+"mlp.down_proj", c.Hidden, c.MLP, false),
		})
	}
	return m, r.err
}

// reader keeps the first error, so that a model is read in one go.
type reader struct {
	f   *dumpfmt.Safetensors
	err error
}

func (r *reader) matrix(name string, out, in int, bias bool) matrix {
	m := matrix{out: out, in: in, w: r.tensor(name+".weight", out*in)}
	if bias {
		m.bias = r.tensor(name+".bias", out)
	}
	return m
}

// tensor reads count bfloat16 or float32 values.
func (r *reader) tensor(name string, count int) []float32 {
	if r.err != nil {
		return nil
	}
	t, ok := r.f.Tensor(name)
	if !ok {
		r.err = fmt.Errorf("tinyllm: %s: got no tensor %s", r.f.File(), name)
		return nil
	}
	size := map[dumpfmt.DType]int{"BF16": 2, "F32": 4}[t.DType]
	if t.Bytes != int64(count*size) || size == 0 {
		r.err = fmt.Errorf("tinyllm: %s: tensor %s: got %d bytes of %s, want %d values of BF16 or F32", r.f.File(), name, t.Bytes, t.DType, count)
		return nil
	}
	raw := make([]byte, t.Bytes)
	if r.err = r.f.ReadBytes(name, 0, raw); r.err != nil {
		return nil
	}
	out := make([]float32, count)
	for i := range out {
		if size == 2 {
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		} else {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}
	return out
}
