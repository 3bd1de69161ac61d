package reference

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference/gguf"
)

// ggufConfig reads the architecture from the keys of a GGUF file. Dimensions,
// layer_norm_rms_epsilon and rope.freq_base have no default here; head_count_kv
// defaults to head_count and the length of a head to embedding_length / heads, as
// in llama.cpp. The head is tied when there is no output.weight.
func ggufConfig(f *gguf.File) (config, error) {
	arch, err := ggufArchitecture(f)
	if err != nil {
		return config{}, err
	}
	k := &ggufKeys{file: f, arch: arch, used: map[string]bool{}}
	k.refuseOthers()
	a := engine.Arch{
		Family:       arch,
		Layers:       k.integer("block_count", -1),
		Hidden:       k.integer("embedding_length", -1),
		Intermediate: k.integer("feed_forward_length", -1),
		Heads:        k.integer("attention.head_count", -1),
		MaxPositions: k.integer("context_length", 0),
	}
	a.KVHeads = k.integer("attention.head_count_kv", a.Heads)
	a.HeadDim = k.headDim(a)
	a.Vocab = k.vocabulary()
	_, untied := f.Tensor("output.weight")
	a.TiedHead = !untied
	if families[arch].optionalBias {
		// No key says it. Where one bias is, all must be.
		for _, t := range f.Tensors() {
			hf, ok := hfName(t.Name)
			a.AttentionBias = a.AttentionBias || ok && strings.HasSuffix(hf, ".bias")
		}
	}
	eps, ok := k.float("attention.layer_norm_rms_epsilon")
	if !ok || !(eps > 0 && eps < 1) {
		k.fail("attention.layer_norm_rms_epsilon", orNothing(ok, eps), "a number between 0 and 1")
	}
	theta, ok := k.float("rope.freq_base")
	if !ok || !(theta > 0) || math.IsInf(theta, 0) {
		k.fail("rope.freq_base", orNothing(ok, theta), "a rotary base above 0 (a fallback of 10000 is not assumed)")
	}
	if k.err != nil {
		return config{}, k.err
	}
	a.FinalNormEps = eps
	a.PerLayer = make([]engine.LayerParams, min(a.Layers, 1<<16))
	for n := range a.PerLayer {
		a.PerLayer[n] = engine.LayerParams{RopeTheta: theta, NormEps: eps}
	}
	return config{arch: a, unused: k.unused(), layersFrom: k.full("block_count") + " of the file"}, checkArch(a)
}

// ggufArchitecture reads and checks the keys that say what the file is.
func ggufArchitecture(f *gguf.File) (string, error) {
	fail := func(key, got, want string) error {
		return &engine.ConfigError{File: f.Name(), What: "key " + key, Got: got, Want: want}
	}
	refuse := func(key string, v any, why string) error {
		return &engine.UnsupportedError{What: fmt.Sprintf("%s: %s %s", f.Name(), key, show(v)), Why: why}
	}
	const key = "general.architecture"
	v, ok := f.Value(key)
	arch, isText := v.(string)
	switch {
	case !ok:
		return "", fail(key, "nothing", `an architecture, e.g. "llama"`)
	case !isText:
		return "", fail(key, show(v), "a string")
	}
	if fam, ok := families[arch]; !ok || fam.config != nil { // a config.json of its own kind
		return "", refuse(key, arch, "of GGUF files the reference engine reads qwen2 and llama only")
	}
	if v, ok := f.Value("general.type"); ok && v != "model" {
		return "", refuse("general.type", v, `only "model" is read`)
	}
	if v, ok := f.Value("split.count"); ok {
		if n, whole := toInteger(v); !whole || n > 1 {
			return "", refuse("split.count", v, "only models in one file are read")
		}
	}
	// Version 1 had other layouts under the same type numbers.
	if v, ok := f.Value("general.quantization_version"); ok {
		if n, whole := toInteger(v); !whole || n != 2 {
			return "", refuse("general.quantization_version", v, "the blocks are those of version 2")
		}
	}
	return arch, nil
}

// headDim is the length of a head, which four keys have a say in.
func (k *ggufKeys) headDim(a engine.Arch) int {
	d := a.Hidden / max(1, a.Heads)
	key := k.integer("attention.key_length", d)
	value := k.integer("attention.value_length", key)
	rotated := k.integer("rope.dimension_count", key)
	_, given := k.value("attention.key_length")
	switch {
	case !given && d*a.Heads != a.Hidden:
		k.fail("attention.key_length", fmt.Sprintf("nothing, and %d / %d heads is not whole", a.Hidden, a.Heads), "the length of a head")
	case value != key:
		k.refuse("attention.value_length", value, fmt.Sprintf("it must be the attention.key_length of %d", key))
	case rotated != key:
		k.refuse("rope.dimension_count", rotated, fmt.Sprintf("it must be %d: the whole head is rotated", key))
	}
	return key
}

// vocabulary is the number of tokens: of the list, of the key vocab_size, which
// must agree, or else of the rows of the embedding table.
func (k *ggufKeys) vocabulary() int {
	n := k.integer("vocab_size", 0)
	v, ok := k.file.Value("tokenizer.ggml.tokens")
	if tokens, isList := v.([]string); ok && isList {
		if n > 0 && n != len(tokens) {
			k.fail("vocab_size", fmt.Sprint(n), fmt.Sprintf("%d, the length of tokenizer.ggml.tokens", len(tokens)))
		}
		n = len(tokens)
	}
	if n == 0 {
		if t, ok := k.file.Tensor("token_embd.weight"); ok {
			n = t.Shape[0]
		}
	}
	return n
}
