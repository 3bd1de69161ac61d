package engine

import "context"

// Reference is the trusted float engine. Every method that runs the model
// takes token ids (at least one, each below the vocabulary) and honours ctx.
type Reference interface {
	// Weights returns the checkpoint that the reference runs.
	Weights() Weights
	// Describe returns what identity claims depend on: backend, build, dtype,
	// KV capacity. Its Layers is LayersFloat32 and DType float32 or float64;
	// anything else is a candidate's arithmetic.
	Describe() Info
	// Capture runs the prompt token by token with a KV cache, one compiled
	// graph per layer, and keeps the last token's rows and the KV cache.
	Capture(ctx context.Context, ids []int) (Trace, error)
	// CaptureWholeStep is the second composition of the same arithmetic: one
	// graph holds the whole step. It shares no capture code with Capture.
	CaptureWholeStep(ctx context.Context, ids []int) ([][]float64, error)
	// CaptureBatched runs the prompt as one prefill and returns the last
	// position's rows.
	CaptureBatched(ctx context.Context, ids []int) ([][]float64, error)
	// LastHidden returns the model's own last hidden state, after the final
	// norm, for the last prompt token, from a separate incremental run.
	LastHidden(ctx context.Context, ids []int) ([]float64, error)
	// Embedding returns the embedding row of a token, straight from the table, or
	// times Arch.EmbedScale where the model has one.
	Embedding(id int) ([]float64, error)
	// FinalNorm applies the final norm to one row.
	FinalNorm(ctx context.Context, row []float64) ([]float64, error)
	// Logits applies the final norm and the head to one row of the residual
	// stream: one value per vocabulary entry.
	Logits(ctx context.Context, row []float64) ([]float64, error)
	// Head returns the output projection, [vocab, hidden]: the embedding table
	// where the checkpoint ties them.
	Head() (Tensor, error)
	// Decode decodes a prompt greedily, or along given tokens.
	Decode(ctx context.Context, ids []int, o DecodeOptions) (Decoded, error)
	// DecodeBatch decodes several prompts together along given tokens, as one
	// batch: prompts of unequal lengths are padded on the left, and the padding is
	// masked. forced has one list per prompt, at least one token each and as many
	// in all. The result is, per prompt, the rows that Decode gives with Forced,
	// but for rounding, whatever the order of the prompts and their company.
	DecodeBatch(ctx context.Context, prompts, forced [][]int) ([][][]float64, error)
	// LayerAll runs decoder layer n on the residual rows in, [positions][hidden],
	// of the positions from 0 on, all in one pass: keys and values come from the
	// same rows. The result has every part that the layer has, those of a router
	// excepted. With mid, of the shape of in, the MLP half runs on those rows and
	// not on the layer's own resid_mid: mlp_out and resid_post follow from mid, all
	// other parts from in.
	LayerAll(ctx context.Context, n int, in, mid [][]float64) (LayerRun, error)
	// Float64 returns the same model in float64 on the same graphs: the
	// yardstick of float32 error. It is the receiver if that is float64.
	Float64() (Reference, error)
	// Float32 returns the same model in float32, or the receiver if that is
	// float32.
	Float32() (Reference, error)
}

// Trace is the outcome of one incremental run.
type Trace interface {
	// Rows returns layers+1 rows of the last prompt token. Read only.
	Rows() [][]float64
	// Layer returns f_n(in): decoder layer n applied to the row in, at the last
	// prompt position, with this run's KV cache for the earlier positions.
	Layer(ctx context.Context, n int, in []float64) ([]float64, error)
}

// Yardstick is a second low-precision implementation of the reference's model.
type Yardstick interface {
	// Emulate runs the prompt token by token with its own KV cache and returns
	// the last token's layers+1 rows.
	Emulate(ctx context.Context, scheme Scheme, ids []int) ([][]float64, error)
	// EmulateLogits runs the prompt and the tokens behind it, and returns one
	// logit row per token of output: row i is what the model says after the
	// prompt and output[:i].
	EmulateLogits(ctx context.Context, scheme Scheme, ids, output []int) ([][]float64, error)
	// EmulateLayer is Reference.LayerAll in the arithmetic of a scheme: in and mid
	// are rows that an engine of the scheme had, its own rounding included.
	EmulateLayer(ctx context.Context, scheme Scheme, n int, in, mid [][]float64) (LayerRun, error)
	// EmulateEmbedding returns the residual stream before layer 0 for tokens, one
	// row each.
	EmulateEmbedding(ctx context.Context, scheme Scheme, ids []int) ([][]float64, error)
}
