package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// linearAttention is the kind of layers in layer_types that gated DeltaNets have.
const linearAttention = "linear_attention"

// textConfig is the key of the text model in the config of a whole one.
const textConfig = "text_config"

// qwen35Config reads the config of a Qwen3.5, whose text model is in text_config,
// or that of a text model. Dimensions have no default here. As in transformers,
// every fourth layer has full attention where nothing is said, and a quarter of
// each head turns.
func qwen35Config(r *configReader, family string) (engine.Arch, []*configReader) {
	r.wantClass(family)
	text, nested := r, []*configReader(nil)
	tied := r.flag("tie_word_embeddings")
	if family == "qwen3_5" {
		r.raw("vision_config") // Checkpoint.Notes says what became of it
		if text = r.object(textConfig); text == nil {
			r.fail(textConfig, "nothing", "the config of the text model")
			return engine.Arch{}, nil
		}
		nested = append(nested, text)
		text.readAsText()
		var inner bool
		if text.value("tie_word_embeddings", &inner, "true or false") && inner != tied {
			text.fail("tie_word_embeddings", fmt.Sprint(inner), fmt.Sprintf("%v, as the model's own says, or its default", tied))
		}
	}
	a := engine.Arch{
		Family:        "qwen3_5",
		Layers:        text.integer("num_hidden_layers", -1),
		Hidden:        text.integer("hidden_size", -1),
		Intermediate:  text.integer("intermediate_size", -1),
		Heads:         text.integer("num_attention_heads", -1),
		KVHeads:       text.integer("num_key_value_heads", -1),
		HeadDim:       text.integer("head_dim", -1),
		Vocab:         text.integer("vocab_size", -1),
		MaxPositions:  text.integer("max_position_embeddings", 0),
		AttentionBias: text.flag("attention_bias"),
		TiedHead:      tied,
		FinalNormEps:  text.normEps(),
	}
	if act, ok := text.text("hidden_act"); ok && act != "silu" {
		text.refuse(fmt.Sprintf("hidden_act %q", act), "only silu is implemented")
	}
	kinds := text.hybridKinds(a.Layers)
	if slices.Contains(kinds, linearAttention) {
		a.DeltaNet = engine.DeltaNet{
			KeyHeads:   text.integer("linear_num_key_heads", -1),
			ValueHeads: text.integer("linear_num_value_heads", -1),
			KeyDim:     text.integer("linear_key_head_dim", -1),
			ValueDim:   text.integer("linear_value_head_dim", -1),
			Kernel:     text.integer("linear_conv_kernel_dim", -1),
		}
	}
	theta, ropes := ropeConfig(text)
	turning := text.rotaryPart(a.HeadDim, ropes)
	for _, kind := range kinds {
		l := engine.LayerParams{RopeTheta: theta, NormEps: a.FinalNormEps, Linear: kind == linearAttention}
		if !l.Linear {
			l.RotaryDim = turning
		}
		a.PerLayer = append(a.PerLayer, l)
	}
	nested = append(nested, ropes...)
	if text != r {
		nested = append(nested, r.agree(append([]*configReader{text}, ropes...))...)
	}
	return a, nested
}

// agree refuses a whole model's keys that contradict what was read of its text model:
// a loader that looks in the other place would compute something else. It returns the
// nested objects that it read.
func (r *configReader) agree(text []*configReader) []*configReader {
	outer := []*configReader{r}
	for _, key := range []string{"rope_parameters", "rope_scaling"} {
		if sub := r.object(key); sub != nil {
			outer = append(outer, sub)
		}
	}
	for _, o := range outer {
		for _, key := range slices.Sorted(maps.Keys(o.keys)) {
			if o.used[key] || string(o.keys[key]) == "null" {
				continue
			}
			for _, in := range text {
				inner := in.keys[key]
				if !in.used[key] || string(inner) == "null" {
					continue
				}
				if got, _ := o.raw(key); !sameJSON(got, inner) {
					o.fail(key, string(got), fmt.Sprintf("%s, the value of %s", inner, in.prefix+key))
				}
			}
		}
	}
	return outer[1:]
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// readAsText checks a nested text model as the top level of a file was checked.
func (r *configReader) readAsText() {
	const want = "qwen3_5_text"
	if kind, ok := r.text("model_type"); ok && kind != want {
		r.refuse(fmt.Sprintf("model_type %q", kind), "the text model of a qwen3_5 is "+want)
	}
	for _, key := range []string{textConfig, "vision_config"} {
		if raw, ok := r.raw(key); ok {
			r.refuse(key+" "+string(raw), "a text model has no model in it")
		}
	}
	r.refuseOthers()
}

// hybridKinds are the kinds of the layers: those of layer_types, or full attention
// in every layer whose number, counted from 1, full_attention_interval divides.
func (r *configReader) hybridKinds(layers int) []string {
	every := r.integer("full_attention_interval", 0)
	byInterval := func(interval int) []string {
		kinds := make([]string, min(layers, 1<<16))
		for i := range kinds {
			kinds[i] = linearAttention
			if (i+1)%interval == 0 {
				kinds[i] = globalLayer
			}
		}
		return kinds
	}
	var kinds []string
	if !r.value("layer_types", &kinds, "a list of layer types") {
		if every == 0 {
			every = 4
		}
		return byInterval(every)
	}
	if len(kinds) != layers {
		r.fail("layer_types", fmt.Sprintf("%d entries", len(kinds)), fmt.Sprintf("one per layer, %d", layers))
	}
	for i, k := range kinds {
		if k != linearAttention && k != globalLayer {
			r.refuse(fmt.Sprintf("layer_types[%d] %q", i, k), "only "+linearAttention+" and "+globalLayer+" are implemented")
		}
	}
	if every > 0 && !slices.Equal(kinds, byInterval(every)) {
		r.fail("full_attention_interval", fmt.Sprint(every), "the interval of layer_types, or none")
	}
	return kinds
}

// rotaryPart is how many channels of a head turn, 0 for all, and where positions
// have several dimensions, a check that they are the same in text.
func (r *configReader) rotaryPart(headDim int, ropes []*configReader) int {
	factor, said := r.float("partial_rotary_factor")
	for _, rope := range ropes {
		inner, ok := rope.float("partial_rotary_factor")
		switch {
		case !ok:
		case said && inner != factor:
			rope.fail("partial_rotary_factor", fmt.Sprint(inner), fmt.Sprintf("%v, which the file says elsewhere", factor))
		default:
			factor, said = inner, true
		}
		rope.textPositions()
	}
	if !said {
		factor = 0.25
	}
	turning := int(float64(headDim) * factor)
	switch {
	case !(factor > 0 && factor <= 1) || turning < 2 || turning%2 != 0:
		r.fail("partial_rotary_factor", fmt.Sprintf("%v of %d channels", factor, headDim), "an even number of channels, at least 2")
	case turning == headDim:
		return 0
	}
	return turning
}

// textPositions reads how the rotary frequencies are shared out among the time, the
// height and the width of a position. A token of text has one number for all three,
// so that every way is the same; it must be one, all the same.
func (r *configReader) textPositions() {
	r.flag("mrope_interleaved")
	var sections []int
	const want = "three whole numbers, none negative"
	if r.value("mrope_section", &sections, want) && (len(sections) != 3 || slices.Min(sections) < 0) {
		r.fail("mrope_section", fmt.Sprint(sections), want)
	}
}
