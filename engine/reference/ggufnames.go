package reference

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
)

// ggufOuter are the tensors outside the layers, ggufInner those of layer n below
// "blk.n.", each with its Hugging Face name.
var (
	ggufOuter = map[string]string{
		"token_embd.weight":  embedName,
		"output_norm.weight": finalNormName,
		"output.weight":      headName,
	}
	ggufInner = map[string]string{
		"attn_norm.weight":   "input_layernorm.weight",
		"attn_q.weight":      "self_attn.q_proj.weight",
		"attn_q.bias":        "self_attn.q_proj.bias",
		"attn_k.weight":      "self_attn.k_proj.weight",
		"attn_k.bias":        "self_attn.k_proj.bias",
		"attn_v.weight":      "self_attn.v_proj.weight",
		"attn_v.bias":        "self_attn.v_proj.bias",
		"attn_output.weight": "self_attn.o_proj.weight",
		"attn_output.bias":   "self_attn.o_proj.bias",
		"ffn_norm.weight":    "post_attention_layernorm.weight",
		"ffn_gate.weight":    "mlp.gate_proj.weight",
		"ffn_up.weight":      "mlp.up_proj.weight",
		"ffn_down.weight":    "mlp.down_proj.weight",
	}
)

// ropeFactors divide the frequencies of the rotary embedding, as Llama 3's
// scaling does.
const ropeFactors = "rope_freqs.weight"

// hfName is the Hugging Face name of a tensor; false for one that has none here.
func hfName(name string) (string, bool) {
	if hf, ok := ggufOuter[name]; ok {
		return hf, true
	}
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return "", false
	}
	number, inner, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseUint(number, 10, 31)
	hf, ok := ggufInner[inner]
	if err != nil || !ok || strconv.FormatUint(n, 10) != number { // "blk.01." would be a second layer 1
		return "", false
	}
	return layerPrefix(int(n)) + hf, true
}

// name gives the tensors their Hugging Face names. One that has none changes what
// the model computes and is refused: a GGUF file holds nothing that its engine
// doesn't use.
func (st *ggufStore) name(a engine.Arch) error {
	st.names, st.heads = map[string]string{}, map[string]int{}
	for _, t := range st.file.Tensors() {
		if t.Name == ropeFactors {
			if err := neutralFactors(st.file, t); err != nil {
				return err
			}
			continue
		}
		hf, ok := hfName(t.Name)
		if !ok || strings.HasSuffix(hf, "o_proj.bias") && !a.OutputBias() {
			return &engine.UnsupportedError{What: fmt.Sprintf("%s: tensor %s", st.path(), t.Name), Why: fmt.Sprintf("a %s has none in the reference engine", a.Family)}
		}
		st.names[hf] = t.Name
		if a.Family != "llama" {
			continue // llama.cpp turns other families' rows as they lie
		}
		switch {
		case strings.Contains(hf, "self_attn.q_proj."):
			st.heads[hf] = a.Heads
		case strings.Contains(hf, "self_attn.k_proj."):
			st.heads[hf] = a.KVHeads
		}
	}
	return nil
}

// neutralFactors refuses factors that change a frequency.
func neutralFactors(f *gguf.File, t gguf.Tensor) error {
	if err := f.Supported(t); err != nil {
		return err
	}
	factors := make([]float32, t.Elements())
	if err := f.Float32s(t.Name, factors); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	for i, v := range factors {
		if v != 1 || math.IsNaN(float64(v)) {
			return &engine.UnsupportedError{What: fmt.Sprintf("%s: tensor %s: element %d: %v", f.Name(), t.Name, i, v),
				Why: "only the default rotary embedding is implemented, whose factors are 1"}
		}
	}
	return nil
}
