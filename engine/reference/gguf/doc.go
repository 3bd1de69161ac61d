// Package gguf reads GGUF files: what llama.cpp and the engines around it keep
// models in. A file is a header of typed keys and tensor infos, and the tensors'
// data, most of it quantised in blocks.
//
// # Contract
//
// [Open] and [New] check the whole header before any of it is used: each count
// and length against the bytes that are left, each key and name once, no array
// in an array, dimensions whose product doesn't overflow, the alignment, and that
// the tensors lie behind each other, in the order of their infos, and end with the
// file. A file that breaks a rule is a [*FormatError] with the byte offset, what a
// sound file may have and isn't read here an [*engine.UnsupportedError]. Memory
// grows with the bytes of the file, not with what it claims.
//
// [File.Float32s] dequantises a tensor: exactly the float32 that the format
// defines, bit for bit what gguf-py's dequantize gives.
//
// The layout is that of the format's specification,
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. It is stricter in
// one thing, as llama.cpp is: tensors out of order, with holes or overlaps are
// refused. Bytes behind the last tensor's padding are refused as well.
//
// # Why it isn't go-huggingface that reads
//
// Its reader trusts counts before it has seen the bytes, gives another tensor's
// data when the infos aren't in the order of the offsets, opens nothing but paths
// and parses the header once more; dequantising a model of 135 million weights
// takes it three times as long.
//
// # Limits
//
// Versions 2 and 3, little-endian, one file (no splits). Of the block types those
// that [Type.Readable] names.
package gguf
