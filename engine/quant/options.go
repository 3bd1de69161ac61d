package quant

// Option makes a variant of the emulation.
type Option func(*options)

type options struct {
	ties             rounding
	kvInt8           bool
	embedPerRow      bool
	weightsPerTensor bool
	cache            *Cache
	// floatWeights is the scheme's: no option sets it.
	floatWeights bool
}

// WithCache shares quantised tensors with other emulations. Without it an
// emulation has a cache of its own.
func WithCache(c *Cache) Option { return func(o *options) { o.cache = c } }

// KVCacheInt8 rounds the rows of the KV cache (k after RoPE) to int8, with one
// scale per head and position, whatever the scheme has.
func KVCacheInt8() Option { return func(o *options) { o.kvInt8 = true } }

// RoundHalfAway rounds ties away from zero, not to even.
func RoundHalfAway() Option { return func(o *options) { o.ties = halfAway } }

// EmbeddingPerRow gives each row of the embedding table a scale of its own.
func EmbeddingPerRow() Option { return func(o *options) { o.embedPerRow = true } }

// WeightsPerTensor gives each weight one scale, not one per output channel.
func WeightsPerTensor() Option { return func(o *options) { o.weightsPerTensor = true } }

// Variant is a named set of options.
type Variant struct {
	Name    string
	Options []Option
}

// Variants lists emulations that are as honest as the plain one. How far they
// lie from it is the spread that a clean candidate may show.
func Variants() []Variant {
	return []Variant{
		{"kv-int8", []Option{KVCacheInt8()}},
		{"half-away", []Option{RoundHalfAway()}},
		{"embed-per-row", []Option{EmbeddingPerRow()}},
		{"weights-per-tensor", []Option{WeightsPerTensor()}},
		{"kv-int8-half-away-embed-per-row", []Option{KVCacheInt8(), RoundHalfAway(), EmbeddingPerRow()}},
		{"kv-int8-weights-per-tensor", []Option{KVCacheInt8(), WeightsPerTensor()}},
	}
}
