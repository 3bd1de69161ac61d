// Package quant emulates an int8 engine in plain Go.
//
// The emulation is a second low-precision implementation of the reference's
// model: the yardstick that says how far an honest int8 engine may stray
// ([Emulation.Emulate]; [Emulation.EmulateLayer] for one layer on given rows), and
// an engine under test of its own ([Emulation.Candidate]), which decodes greedily
// with a KV cache and tells of any probe at every position.
//
// # Scheme
//
// Everything that is rounded is rounded symmetrically: code = round(x/scale),
// clamped to ±127, scale = max|x|/127, ties to even.
//
//   - weights of every projection: one scale per output channel (row);
//   - inputs of every projection: one scale per token; the input of q, k and v,
//     that of o_proj, that of gate and up, that of down_proj;
//   - the embedding table: one scale for the whole table, and so for a head that is
//     tied to it; a head of its own is quantised as any projection;
//   - products: exact integer sums, then scaled; biases are added in float64;
//   - RMSNorm, RoPE, softmax, SiLU and the KV cache: float64;
//   - with engine.Scheme.RowsInt8, embed, resid_mid and resid_post are rounded
//     to int8 per row too, and the rounded row is what the next step gets. The
//     scale of such a row has 31 significant bits, so that it fits the m*2^e of
//     an int8 layer dump without loss.
//
// [engine.Scheme] may ask for other arithmetic, that of ggml's CPU kernels:
//
//   - FloatWeights: weights, head and embedding table are the checkpoint's own
//     values, in its memory; products are float32 sums of at most 1040 factors,
//     added in float64;
//   - ActivationBlock: inputs of every projection and of the head in blocks of so
//     many channels. Codes are made with the block's max|x|/127, and stand for
//     multiples of its float16, as Q8_0 and Q8_1 keep it;
//   - KVCache: keys (after RoPE) and values as float16, or as Q8_0 in blocks of
//     32 channels of a head, in ggml's order of channels: a llama's keys have those
//     that RoPE turns together side by side. Queries are rounded as keys are, and the softmax's
//     weights to float16 where the values are float16, since ggml's products take
//     both sides in one format.
//
// Not emulated, for they are small beside those roundings: float32 norms,
// RoPE, softmax and SiLU; the float16 of a Q8_1 block's sum, which meets the
// minimum of a Q4_1 or Q5_1 block; float16 accumulation of flash attention; the
// blocks of 256 that meet K-quants.
//
// Options make variants that are no less honest (another rounding of ties, an
// int8 KV cache, coarser weight scales, finer embedding scales). A suite that
// uses the plain emulation as yardstick takes a variant as candidate, never the
// yardstick itself; [Variants] lists them, and their spread is what a factor
// between candidate and yardstick has to leave room for.
//
// # Exactness
//
// Integer products are computed as float32 sums of integer-valued factors. They
// are exact as long as every partial sum stays below 2^24: 127*127*1040 does, so
// a longer reduction is split into blocks of 1040 and the blocks are added in
// float64. The order of summation therefore changes nothing, and a prompt is
// run as one batch per layer with the results of a token-by-token run. A decode
// goes on from the prompt's KV cache, and gives the bits of a run from the start.
// Products of a scheme with FloatWeights or ActivationBlock are not exact; their
// order is fixed all the same, so that a batch still has the bits of single tokens.
// Large products and attention use all processors (GOMAXPROCS), and no bit
// depends on how many there are.
//
// # Limits and non-goals
//
// The architecture is that of Qwen2 or of a llama. Planted faults (engine.Fault) and per-layer
// constants are honoured as package engine documents them; the prompt is run token
// by token in effect, so they act on it and on the decode alike; those of chunks,
// batches and consecutive requests have nothing to act on. Probes are kept in
// memory, as float32, and only those that were asked for. Codes are kept as one
// byte per weight beside the float weights that they came from, which the caller's
// Weights keeps alive; those of a matrix of at most 131072 weights as float32 too.
package quant
