package reference

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// schedule says where each step of one incremental run reads and writes: the
// prompt's ids with the planted faults of the architecture resolved against the
// prompt's length. Without faults it is ids, position and position again.
type schedule struct {
	arch engine.Arch
	ids  []int
	// base is how many slots of the cache are taken by something else: position
	// pos is written to slot base+pos, and attends to the slots up to there.
	base int
}

// id is the token embedded at position pos.
func (s schedule) id(pos int) int {
	if s.arch.Fault.EmbedFirst && pos == len(s.ids)-1 {
		return s.ids[0]
	}
	return s.ids[pos]
}

// fromEnd resolves a position that counts from the end of the prompt.
func (s schedule) fromEnd(pos int) int {
	if pos < 0 {
		return len(s.ids) + pos
	}
	return pos
}

// rotation is the position that rotates q and k of a layer at position pos. A
// DecodeFrom before the prompt's start shifts every step, which RoPE can't see.
func (s schedule) rotation(layer, pos int) (q, k int) {
	k = pos
	if f := s.arch.Fault; f.DecodeShift != 0 && pos >= s.fromEnd(f.DecodeFrom) {
		k += f.DecodeShift
	}
	return k + s.arch.PerLayer[layer].QueryOffset, k
}

// nowhere is a cache slot that no cache has: writing there writes nothing.
const nowhere = -1

// write is the cache slot that a layer writes at position pos. A linear layer has
// none: nowhere keeps its recurrent state as it was.
func (s schedule) write(layer, pos int) int {
	f := s.arch.Fault
	stale := s.fromEnd(f.StalePosition)
	if f.StaleCache && layer == f.StaleLayer && (pos == stale || f.StaleOnward && pos > stale) {
		return nowhere
	}
	return s.base + pos
}

// chunkOffset is what the positions of a chunk that starts at position from are
// rotated too far.
func (s schedule) chunkOffset(from int) int {
	if from == 0 {
		return 0
	}
	return s.arch.Fault.ChunkShift
}

// checkArch refuses an architecture that can't be computed as it stands.
func checkArch(a engine.Arch) error {
	bad := func(what, got, want string) error {
		return &engine.ConfigError{File: "architecture", What: what, Got: got, Want: want}
	}
	if _, ok := families[a.Family]; !ok {
		return &engine.UnsupportedError{What: fmt.Sprintf("model family %q", a.Family), Why: knownFamilies}
	}
	for _, d := range []struct {
		name string
		n    int
	}{{"layers", a.Layers}, {"hidden size", a.Hidden}, {"intermediate size", a.Intermediate}, {"attention heads", a.Heads},
		{"key-value heads", a.KVHeads}, {"head dimension", a.HeadDim}, {"vocabulary", a.Vocab}} {
		if d.n < 1 {
			return bad(d.name, fmt.Sprint(d.n), "at least 1")
		}
	}
	if len(a.PerLayer) != a.Layers {
		return bad("layer parameters", fmt.Sprint(len(a.PerLayer)), fmt.Sprintf("one per layer, %d", a.Layers))
	}
	if f := a.Fault; f.StaleCache && (f.StaleLayer < 0 || f.StaleLayer >= a.Layers) {
		return bad("fault: stale layer", fmt.Sprint(f.StaleLayer), fmt.Sprintf("0 to %d", a.Layers-1))
	}
	if f := a.Fault; f.ConvLate && f.ConvLayer >= 0 && (f.ConvLayer >= a.Layers || !a.PerLayer[f.ConvLayer].Linear) {
		return bad("fault: late convolution", fmt.Sprintf("layer %d", f.ConvLayer), "a linear layer, or a negative number for all")
	}
	for i, l := range a.PerLayer {
		if !(l.RopeTheta > 0) || !(l.NormEps >= 0) {
			return bad(fmt.Sprintf("layer %d", i), fmt.Sprintf("rope_theta %v, eps %v", l.RopeTheta, l.NormEps), "rope_theta > 0, eps >= 0")
		}
		if err := checkHeads(a, i, bad); err != nil {
			return err
		}
		if err := checkLinear(a, i, bad); err != nil {
			return err
		}
	}
	if err := checkLatent(a, bad); err != nil {
		return err
	}
	if !(a.EmbedScale >= 0) || !(a.LogitCap >= 0) {
		return bad("embedding scale and logit cap", fmt.Sprintf("%v and %v", a.EmbedScale, a.LogitCap), "both at least 0")
	}
	return nil
}

// checkHeads refuses attention of a layer that can't be computed.
func checkHeads(a engine.Arch, layer int, bad func(what, got, want string) error) error {
	l, kv, d := a.PerLayer[layer], a.KVHeadsOf(layer), a.HeadDimOf(layer)
	switch {
	case kv < 1 || a.Heads%kv != 0:
		return bad("attention heads", fmt.Sprint(a.Heads), fmt.Sprintf("a multiple of the %d key-value heads", kv))
	case d < 1 || d%2 != 0 && a.Latent.KVRank == 0:
		return bad("head dimension", fmt.Sprint(d), "an even number (rotary pairs)")
	case l.Window < 0 || l.RopePairs < 0 || l.RopePairs > d/2 || !(l.RopeFactor >= 0):
		return bad(fmt.Sprintf("layer %d", layer), fmt.Sprintf("window %d, %d rotary pairs, rope factor %v", l.Window, l.RopePairs, l.RopeFactor),
			fmt.Sprintf("none negative, at most %d pairs", d/2))
	case a.Family != "gemma4_text" && (l.KVHeads != 0 || l.HeadDim != 0 || l.KeyIsValue || l.SkipNorm != ""):
		return bad(fmt.Sprintf("layer %d", layer), "heads or norms of its own", "those of the model, in the family "+a.Family)
	}
	return nil
}

// checkLinear refuses what a linear layer can't be computed with, and what belongs
// to one elsewhere.
func checkLinear(a engine.Arch, layer int, bad func(what, got, want string) error) error {
	l, d, name := a.PerLayer[layer], a.DeltaNet, fmt.Sprintf("layer %d", layer)
	switch {
	case a.Family != "qwen3_5" && (l.Linear || l.RotaryDim != 0 || l.GateMissing):
		return bad(name, "a linear layer, a rotary part or a gate", "none, in the family "+a.Family)
	case l.RotaryDim < 0 || l.RotaryDim > a.HeadDimOf(layer) || l.RotaryDim%2 != 0:
		return bad(name, fmt.Sprintf("%d rotary channels", l.RotaryDim), fmt.Sprintf("an even number of at most %d", a.HeadDimOf(layer)))
	case !l.Linear:
		return nil
	case min(d.KeyHeads, d.ValueHeads, d.KeyDim, d.ValueDim, d.Kernel) < 1 || d.ValueHeads%d.KeyHeads != 0:
		return bad("linear layers", fmt.Sprintf("%d key heads of %d, %d value heads of %d, a kernel of %d", d.KeyHeads, d.KeyDim, d.ValueHeads, d.ValueDim, d.Kernel),
			"each at least 1, and a multiple of the key heads as value heads")
	}
	return nil
}
