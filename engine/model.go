package engine

import "cmp"

// Arch is a decoder-only transformer in the terms that engines compute with.
// A loader fills it from a config.json; engine/mutant plants faults in it.
type Arch struct {
	// Family is the model_type, e.g. "qwen2".
	Family string
	// Layers, Hidden, Intermediate, Heads, KVHeads, HeadDim and Vocab are the
	// dimensions; Heads*HeadDim need not equal Hidden. Layers may have KVHeads and
	// HeadDim of their own: see KVHeadsOf and HeadDimOf.
	Layers, Hidden, Intermediate, Heads, KVHeads, HeadDim, Vocab int
	// TiedHead is true when the output projection is the embedding table.
	TiedHead bool
	// AttentionBias is true for a llama or a qwen3_5 whose q, k, v and o projections
	// have biases. Of other families it says nothing: ask QKVBias and OutputBias.
	AttentionBias bool
	// MaxPositions is the longest prompt the model declares; 0 if undeclared.
	MaxPositions int
	// FinalNormEps is the epsilon of the final RMSNorm.
	FinalNormEps float64
	// EmbedScale multiplies the rows of the embedding table; 0 means 1.
	EmbedScale float64
	// LogitCap, where above 0, is the c of logits that are c*tanh(x/c) of what the
	// head gives.
	LogitCap float64
	// Latent is the attention of a model whose cache keeps one latent row per
	// position; its zero value is attention with keys and values of their own.
	Latent Latent
	// DeltaNet has the dimensions of the layers that are linear; it is zero in a
	// model without.
	DeltaNet DeltaNet
	// PerLayer has one entry per decoder layer.
	PerLayer []LayerParams
	// Fault is a planted deviation. A faithful model has none.
	Fault Fault
}

// Latent is multi-head latent attention (DeepSeek-V2, arXiv:2405.04434). The keys
// and values of all heads are made of one latent row per position, beside which
// the cache keeps one rotated key that all heads share. With it HeadDim is the
// dimension of queries and keys, its last RopeDim ones rotate, in pairs 2i and
// 2i+1, and every head has keys and values.
type Latent struct {
	// KVRank is the width of the latent row, 0 without latent attention. QRank is
	// that of the queries' own, 0 where one projection makes them.
	KVRank, QRank int
	// RopeDim is the dimension of the shared key, ValueDim that of a head's values.
	RopeDim, ValueDim int
}

// DeltaNet has the dimensions of gated DeltaNet layers (arXiv:2412.06464).
type DeltaNet struct {
	// KeyHeads queries and keys of KeyDim, and ValueHeads values of ValueDim. A key
	// head serves ValueHeads/KeyHeads value heads that follow each other.
	KeyHeads, ValueHeads, KeyDim, ValueDim int
	// Kernel is how many positions the convolution sees, its own included.
	Kernel int
}

// Channels is what the convolution goes over: queries, keys and values, in this
// order.
func (d DeltaNet) Channels() int { return 2*d.KeyHeads*d.KeyDim + d.ValueHeads*d.ValueDim }

// LayerParams are the constants of one decoder layer.
type LayerParams struct {
	// RopeTheta is the rotary base.
	RopeTheta float64
	// RopePairs is how many of a head's rotary pairs turn, the fastest first; 0
	// means all. Their frequencies are those of the whole head.
	RopePairs int
	// RotaryDim, where above 0, is how many leading channels of a head have rotary
	// pairs, as if they were the whole head: frequencies and pairs are those of so
	// many channels, and the others stay as they are.
	RotaryDim int
	// RopeFactor divides the rotary frequencies; 0 means 1.
	RopeFactor float64
	// Yarn bends the rotary frequencies; its zero value doesn't.
	Yarn Yarn
	// ScoreFactor multiplies attention scores beside 1/sqrt(HeadDim); 0 means 1.
	ScoreFactor float64
	// Experts are those of a layer with a router, whose Count is above 0.
	Experts Experts
	// NormEps is the epsilon of all RMSNorms of the layer.
	NormEps float64
	// KVHeads and HeadDim are the layer's own where layers differ; 0 means those
	// of the Arch. The number of query heads is that of the Arch.
	KVHeads, HeadDim int
	// Window is how many positions a query attends to, its own included; 0 means
	// all before it.
	Window int
	// KeyIsValue is true for a layer without a v projection, whose values are
	// made of what the k projection gives, before k's norm and RoPE.
	KeyIsValue bool
	// Linear is true for a layer of gated DeltaNet in the place of attention: it has
	// a state in the place of keys and values, and no rotary embedding.
	Linear bool
	// QueryOffset is added to the position that rotates q, not k. A constant
	// shift of both would be a no-op under RoPE. 0 in a faithful model.
	QueryOffset int
	// ScaleShift, where above 0, has the layer read the scales of its quantised KV
	// cache from the layer so many before it, which has as many key-value heads. 0
	// in a faithful model; an engine whose cache has no scales refuses it.
	ScaleShift int
	// SkipNorm is PartQ, PartK or PartV where that norm is left out: in a faithful
	// model it is empty.
	SkipNorm Part
	// GateMissing leaves out the gate on the output of attention, where the family
	// has one. False in a faithful model.
	GateMissing bool
}

// Yarn is the rotary scaling YaRN (arXiv:2309.00071): frequencies that turn more
// than BetaFast times within Original positions stay, those that turn less than
// BetaSlow times are divided by Factor, and between them a ramp goes over the
// pairs.
type Yarn struct {
	// Factor is 0 without the scaling.
	Factor, BetaFast, BetaSlow float64
	// Original is the number of positions that the model was first made for.
	Original int
	// TableFactor multiplies the cosines and sines; 0 means 1.
	TableFactor float64
}

// Experts are the feed-forward of a layer with a router: for each position the
// router chooses PerToken of Count experts and weighs what they give; shared
// experts are added for every position.
type Experts struct {
	Count, PerToken int
	// Shared is how many experts every position has; they are one feed-forward of
	// Shared*Intermediate. Intermediate is the width of one expert.
	Shared, Intermediate int
	// Gate is how the router's scores become choices.
	Gate Gate
}

// Scoring is how a gate makes scores of the router's logits.
type Scoring string

// The scorings.
const (
	// ScoringSoftmax is DeepSeek-V2's: a softmax over all experts, and the
	// scores choose. What is in no chosen group counts as 0, and the weights are
	// divided by their sum or multiplied by Scale.
	ScoringSoftmax Scoring = "softmax"
	// ScoringSigmoid is DeepSeek-V3's (arXiv:2412.19437): sigmoids, to which a
	// bias per expert is added for the choice alone. What is in no chosen group
	// counts as -Inf, and the weights are divided by their sum and multiplied by
	// Scale.
	ScoringSigmoid Scoring = "sigmoid"
)

// Gate is how a router chooses experts and weighs them. The higher score is
// chosen, the lower index where two are equal.
type Gate struct {
	Scoring Scoring
	// Groups is how many groups the experts are divided into, of which the
	// TopGroups best are chosen from; 0 means that all experts are. A group is as
	// good as its best expert, with sigmoids as the sum of its best two.
	Groups, TopGroups int
	// Normalise divides the weights by their sum.
	Normalise bool
	// Scale multiplies the weights: of a softmax gate, those that aren't
	// normalised.
	Scale float64
	// Fault is a planted deviation; empty in a faithful model.
	Fault GateFault
}

// GateFault is a deviation of a gate that its constants can't express.
type GateFault string

// The faults of a gate.
const (
	// GateSoftmaxChosen makes the softmax over the chosen logits alone.
	GateSoftmaxChosen GateFault = "softmax over the chosen"
	// GateLastWins chooses the highest index among equal scores.
	GateLastWins GateFault = "last wins"
	// GateMaskZero has experts in no chosen group count as 0 with sigmoids too.
	GateMaskZero GateFault = "mask 0"
	// GateBFloat16 rounds the router's input, weight, logits and scores to
	// bfloat16.
	GateBFloat16 GateFault = "bfloat16"
)

// Fault is a deviation that no weight or layer constant can express. The zero
// value plants nothing. StaleCache, DecodeShift and EmbedFirst act where one
// sequence is run token by token: a batched run of the same engine has no cache
// to be stale and no decode step. The others say where they act.
type Fault struct {
	// StaleCache, when set, keeps the KV cache of layer StaleLayer from being
	// written at StalePosition: the row keeps what a reset cache holds, zeros.
	// A negative StalePosition counts from the end of the prompt.
	//
	// In a linear layer it keeps the recurrent state: the position reads what the
	// one before it left, and leaves that. Its convolution is told of the position.
	StaleCache                bool
	StaleLayer, StalePosition int
	// StaleOnward has StaleCache go on at all positions behind StalePosition.
	StaleOnward bool
	// ConvLate has the convolution of linear layer ConvLayer, of all of them where it
	// is negative, read a state that is shifted by one position: it sees the position
	// itself, not the one before it, and those before that. It acts where one
	// sequence is run token by token.
	ConvLate  bool
	ConvLayer int
	// DecodeShift is added to the position that rotates q and k, from
	// position DecodeFrom on; 0 plants nothing. A negative DecodeFrom counts
	// from the end of the prompt.
	DecodeShift, DecodeFrom int
	// EmbedFirst embeds the first prompt token in place of the last.
	EmbedFirst bool
	// ChunkShift is added to the position that rotates q and k in all chunks of
	// a prompt but its first. It acts on decodes with DecodeOptions.Chunk > 1.
	ChunkShift int
	// KeepCache has every decode leave its keys and values in the cache, in
	// front of the next one's, which attends to them: the counter of positions
	// is reset between two requests and the cache isn't. It acts on Decode,
	// prompt and new tokens, from the engine's second decode on.
	KeepCache bool
	// CacheBitsLost is how many bits a quantised KV cache has less than its engine
	// was asked for. An engine whose cache isn't quantised refuses it.
	CacheBitsLost int
	// BatchPaddingUnmasked lets sequences of a batch attend to the padding in
	// front of them. It acts on batches where the prompts' lengths differ.
	BatchPaddingUnmasked bool
	// BatchRowStale keeps the KV cache of all sequences of a batch but its first
	// from being written in decode steps: the row keeps what a reset cache holds,
	// zeros. It acts on DecodeBatch, behind the prompts.
	BatchRowStale bool
}

// QKVBias reports whether the q, k and v projections have biases: those of every
// qwen2 do, those of others where AttentionBias says so.
func (a Arch) QKVBias() bool { return a.Family == "qwen2" || a.AttentionBias }

// OutputBias reports whether the output projection of attention has a bias.
func (a Arch) OutputBias() bool {
	return (a.Family == "llama" || a.Family == "qwen3_5") && a.AttentionBias
}

// KVHeadsOf is the number of key-value heads of a layer.
func (a Arch) KVHeadsOf(layer int) int { return cmp.Or(a.PerLayer[layer].KVHeads, a.KVHeads) }

// HeadDimOf is the dimension of a layer's heads.
func (a Arch) HeadDimOf(layer int) int { return cmp.Or(a.PerLayer[layer].HeadDim, a.HeadDim) }

// RoutedAt reports whether a layer has a router.
func (a Arch) RoutedAt(layer int) bool { return a.PerLayer[layer].Experts.Count > 0 }

// ValueDimOf is the dimension of what a head of a layer gives.
func (a Arch) ValueDimOf(layer int) int { return cmp.Or(a.Latent.ValueDim, a.HeadDimOf(layer)) }

// Clone returns a copy that shares no memory with a.
func (a Arch) Clone() Arch {
	a.PerLayer = append([]LayerParams(nil), a.PerLayer...)
	return a
}

// Tensor is a weight in row-major order. bfloat16 and float16 are upcast, which
// is exact.
type Tensor struct {
	Shape []int
	Data  []float32
}

// Weights is a checkpoint: an architecture and its tensors under their Hugging
// Face names. Implementations return shared memory: callers must not write it.
type Weights interface {
	Arch() Arch
	// Tensor returns the named tensor, or a *ConfigError when it is missing.
	Tensor(name string) (Tensor, error)
}

// Encoder is what Weights also are when a tokenizer lies beside them.
type Encoder interface {
	// Encode returns the ids of a text: special tokens that stand in it are
	// recognised, none is added. An error means that there are none to be had.
	Encode(text string) ([]int, error)
}
