// Package dumpfmt reads and writes what a dump is on disk: layer dumps, logit
// dumps, safetensors files and the folders that hold them. It uses the
// standard library only.
//
// # Formats
//
// All integers and floats are little-endian.
//
//   - [FloatLayers], the float layer dump: u64 rows, u64 hidden size, u64
//     prompt fingerprint, u64 capture mode, then rows*hidden float32, row-major.
//     Row 0 is the embedding of the last prompt token, row i the residual
//     stream after layer i-1. The capture mode is 1. Nothing may follow.
//   - [Int8Layers], the int8 layer dump: the same 32 bytes, then per row i64 m,
//     i64 e and hidden int8 codes; the value of a code is code*m*2^e. Bytes
//     after the last row are kept as a note ([Int8Layers.TrailingBytes]).
//   - [FloatLogits] and [Int32Logits], the logit dumps: u64 rows, u64 vocab,
//     then rows*vocab float32 or int32. No rows is 16 bytes of zero. Which type
//     it is follows from what the side declares, not from the bytes.
//   - [Target], a teacher's target file: 30 bytes of magic, then per prediction point
//     "ROW1", u64 ordinal, u64 vocab, 32 bytes of prefix hash, u64 payload length
//     and vocab float32. [VerifyTarget] holds one to its plan, byte by byte.
//   - [Safetensors]: a u64 header length, a JSON header, the tensors.
//   - [Raw]: float32 and nothing else; its caller knows how many. [RawBuffer] is for
//     folders of many small ones.
//   - [NPY] and [NPZ], numpy's files of one array and of named ones: float32 in
//     row-major order.
//   - [Folder]: engine.json for the side, and per case NAME.json with
//     NAME.layers.bin, NAME.logits.bin and NAME.probes.safetensors. NAME has no
//     control characters. Row i of the logits chose output token i, so there
//     are as many as output_ids, where those are told.
//
// # Contract of the readers
//
// A reader works over an io.ReaderAt and a size. Every count and offset is
// checked against the size before anything is allocated or multiplied, so that
// a lying header costs nothing. Values are read by row or by chunk into the
// caller's memory: a reader holds no more than a header, or one row where a
// method says so. A file that a constructor accepted is well-formed as a whole,
// with two exceptions: the scale of an int8 row is checked when the row is read
// ([Int8Layers.CheckScales] reads them all); a member of an archive is checked
// when it is opened. Values are not judged: NaN is data here. Readers are safe for
// concurrent use.
//
// # Contract of the writers
//
// A writer fills a file in the final folder; Commit syncs it and links it to the
// final name, over an existing file only where [WriteOptions] says so. Anything
// else, a wrong count included, leaves no file. On Linux the file has no other
// name, so that even a process that is killed leaves nothing. Where a system or a file
// system can't do that, and where a file is overwritten, such a process leaves a
// hidden one, .NAME.tmp-RANDOM, which is never read, in nobody's way, and safe to
// remove once no writer runs. The values are written as given; a file that its own
// reader would refuse is not written.
//
// # Errors
//
// [FormatError] is a broken file ([SizeError] one of another size than its
// tensor), [UnsupportedError] a file that may be right but isn't handled here,
// [FingerprintError] a sound dump of another prompt, [NoCasesError] a folder
// without a case, and [UsageError] a caller's mistake.
// What the operating system reports (no such file, an I/O error) stays
// reachable through errors.Is. An error's text is one line: names that would
// not show as they stand are quoted ([Printable]).
//
// # Limits and non-goals
//
// Sub-byte safetensors types are unsupported. JSON files are limited to 64 MiB
// and safetensors headers to 100 MB, as in the format's own implementation.
// Writing needs a file system with hard links, unless overwriting. The package
// judges no values and guesses no types.
package dumpfmt
