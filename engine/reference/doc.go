// Package reference is the trusted float engine: GoMLX on its pure Go backend.
// It implements [engine.Reference], [engine.Trace] and, through [Checkpoint],
// [engine.Weights]. It is the only package that imports GoMLX and
// go-huggingface.
//
// # Contract
//
// [Load] and [LoadFS] read a Hugging Face checkpoint or a GGUF file and refuse what
// would be computed wrong; [New] builds an engine from any [engine.Weights]; [Open] does
// both. An [Engine] runs a prompt token by token with a KV cache
// ([Engine.Capture], [Engine.LastHidden]), as one graph for the whole step
// ([Engine.CaptureWholeStep]) and as one prefill ([Engine.CaptureBatched]);
// [Engine.CaptureMany] runs many prompts and computes their common prefixes once;
// [Engine.Decode] goes on behind a prompt, run in one batch, in chunks or token by
// token, greedily or along given tokens, and keeps every logit row;
// [Engine.DecodeBatch] does so for several prompts as one padded batch; a [Session]
// is a prompt as one batch and then a step for each token that its caller gives.
// [Engine.CaptureProbes] keeps any place of the model at every position.
// Weights are inputs of the graphs: one compiled layer graph serves all layers of
// a kind, and the backend holds one copy of each weight. The embedding table stays in
// host memory; the head is uploaded by the first call that needs it.
//
// An Engine and its traces are safe for concurrent use. Runs share the weights
// and the compiled graphs and nothing else.
//
// # Arithmetic
//
// In float32 every step rounds to float32 where transformers' does: RMSNorm,
// softmax and the rotary tables included (the tables' powers,
// sines and cosines are computed in float64 and rounded once). In float64
// everything is float64, the rotary tables too: that is the yardstick of
// float32 error. [BFloat16] is float32 with each value rounded, to nearest even, that
// transformers' bfloat16 run holds in that dtype: weights, embeddings, what a linear, a
// norm, an activation, a rotation, attention or a residual addition gives, the cache,
// the logits; sums, norms and softmax are float32 inside. On transformers' own rows
// its places have transformers' bits but for 1 value in 1,000 to 100,000, where a sum
// lies next to a tie; over tens of layers such values grow to what bfloat16 itself
// strays, as they do between two orders of summation.
//
// In float32 rows agree with transformers' to about 1e-6 relative L2. On the "go"
// backend the bits do not depend on GOMAXPROCS, on the KV capacity up to 1024, nor
// on whether the step is one graph or a graph per layer, nor on which probes a step
// has as outputs. They do depend on how many
// positions or sequences a matrix product has: chunks, batches and steps of the
// same tokens differ by rounding. They also depend on the build's SIMD level;
// [Engine.Describe] says it.
//
// # Limits and non-goals
//
// The families qwen2, llama, gemma4_text, qwen3_5 and deepseek_v2 are implemented;
// any other is an [engine.UnsupportedError]. The first two have full causal attention with the
// default rotary embedding. Of Gemma 4 there is the text model: local layers with a
// sliding window and global ones, with heads, head dimensions and rotary embeddings
// of their own (proportional ones too), norms of q, k and v, values made of keys,
// capped logits. Its experts, embeddings per layer, keys and values shared between
// layers, and the nested config of the whole model are refused by the name of their
// key. Its probes q, k and v are behind their norms, mlp_out is behind its post
// norm, and resid_post is resid_mid + mlp_out times the layer's factor. A window is
// a mask: the cache keeps all positions.
//
// Of Qwen3.5 there is the text model, in a file of its own (qwen3_5_text) or as part
// of the whole model, whose vision tower is left alone ([Checkpoint.Notes]); models
// with experts are refused. Its linear layers are gated DeltaNets: by the recurrent
// rule token by token, at a cost that doesn't depend on the position, and in chunks of
// 64 where several positions run at once. What they keep is no cache of positions: it
// is continued, copied whole where prefixes are shared, and never cut. They have no
// probes q, k, v, q_rope and k_rope. attn_out is what the mixer's last projection gets:
// behind the gate of attention, behind the gated norm of a DeltaNet. In bfloat16 the
// recurrent state is rounded between two calls, as transformers' cache has it, and the
// norm of queries and keys has the roots of torch's kernels for CPUs with AVX2.
//
// Of DeepSeek-V2 there is all: latent attention with queries of a rank of their own
// or without, YaRN, dense layers and layers with routed and shared experts, each of
// its ways to choose them, and DeepSeek-V3's in its place; no biases, and nothing
// else of a DeepSeek-V3. The formulas are those of the model's own file, of which
// transformers' classes leave out mscale² in the softmax scale
// ([WithTransformersScale]) and the normalisation of weights; [Engine.Describe] says
// which scale there is. The cache keeps the normed latent row and the rotated key of
// each position; keys and values of the heads are made of them anew in each step, as
// the model's file does: nothing is absorbed into the queries. Probes q, k and v are
// those of all heads; a rotary pair are neighbours, as in the checkpoint. A router
// stays in float32 in [BFloat16], and the chosen experts' outputs are added up in
// it. Latent rows are never quantised.
//
// Which experts run is decided on the host between two graphs, so that those that
// nobody chose cost a row of the router; in the whole step, one graph, also a branch
// that isn't taken. [Engine.Forced] gives a run experts in the place of those that its
// routers choose, [Engine.RouteRows] routes given rows, [Router] without a model, and
// [Engine.TraceBatch] shows every layer of a padded batch with its routes.
//
// With [WithKVCache] the cache of token-by-token runs is quantised: such an engine
// is a candidate, to be held beside the dense one, and so is one in [BFloat16], which
// has no quantised cache. There is no sampling. Nothing is downloaded: a checkpoint is
// local, or in an
// [io/fs.FS].
//
// Weights are float32 in memory. Those of a GGUF file are dequantised exactly
// (package gguf, for qwen2 and llama) and have their Hugging Face names and row order; its keys give
// the architecture, the tokenizer and the chat template. A rotary scaling that
// isn't neutral is refused, by key, by config and by rope_freqs.weight.
//
// The go backend's matrix products keep addresses as uintptr, which the checks
// that -race turns on take for a fault: run the race detector with
// -gcflags=all=-d=checkptr=0.
package reference
