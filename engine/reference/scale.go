package reference

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// softmaxScale is true for transformers' variant.
type softmaxScale bool

// WithTransformersScale leaves mscale² out of a DeepSeek-V2's softmax scale, as
// transformers' DeepseekV2 classes do (seen in 5.13.1). The model's own file, and
// an engine without the option, multiplies 1/sqrt(d) by it where the config has a
// mscale_all_dim. [Engine.Describe] says which of both an engine does. Another
// family refuses the option.
func WithTransformersScale() Option {
	return func(s *settings) error {
		s.scale = true
		return nil
	}
}

func (s softmaxScale) apply(a *engine.Arch) error {
	if !s {
		return nil
	}
	if a.Family != deepseekV2 {
		return &engine.UnsupportedError{What: fmt.Sprintf("transformers' softmax scale in the family %q", a.Family), Why: "only DeepSeek-V2 has two"}
	}
	for n := range a.PerLayer {
		a.PerLayer[n].ScoreFactor = 0
	}
	return nil
}

// scaleNote says what attention scores are multiplied by, of a model where that is
// in question.
func (e *Engine) scaleNote() string {
	note := ", softmax scale 1/sqrt(d)"
	switch {
	case e.arch.Latent.KVRank == 0:
		return ""
	case bool(e.set.scale):
		note = ", softmax scale transformers' 1/sqrt(d), without mscale²"
	}
	for n, l := range e.arch.PerLayer {
		switch f := l.ScoreFactor; {
		case f != e.arch.PerLayer[0].ScoreFactor:
			return fmt.Sprintf("%s with factors that differ from layer %d on", note, n)
		case n == 0 && f != 0:
			note += fmt.Sprintf("*mscale², %.6g", f)
		}
	}
	return note
}
