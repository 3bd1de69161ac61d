// Package trace holds full-depth traces of mixture-of-experts models: what is run
// and compared, what is made of it, the document that it becomes, and the verdicts on
// routes. The document is that of the script v2_lite_trace.py, schema_version 1: the
// same keys in the same order, the same formulas and hashes.
//
// # Contract
//
// A [Plan] says under which conditions a source is run and which pairs of them are
// compared; [Standard] is the script's. A [Shape] says how many layers, gates and
// experts there are. [ReadSources] reads sources, [Plan.Tokenise] or the file itself
// gives their [Variant]s, and [PadLeft] makes a batch of them.
//
// An [Accumulator] takes hidden rows and routes, for all tokens of a variant, and
// cuts them into scopes: target_content, the tokens within a source's text, the same
// ids under every condition, and full_input. A [Writer] takes the sources' traces one by
// one; neither holds more for more of them. [Read] is strict, and a document that it
// read is written again byte for byte. [Compare] lists the differences of two.
//
// The checks are pure functions that return problems and how much they looked at:
// [CheckShape], [Plan.CheckContent], [CheckHashes], [CheckStatistics] and
// [CheckRecorded]. [JudgeRoute] tells a tie from a flip.
//
// # Figures
//
// Sums run in float64. A figure that the script reduces in float32 is rounded to
// float32 at the end, as are the differences of rows and each token's cosine and
// relative L2. PyTorch's own float32 sums are within 3e-7 of that, relative to
// max(1, |figure|). Hashes cover exact bytes.
//
// # Bad input
//
// Nothing is skipped: a value that isn't finite or isn't of the declared type, an
// expert that doesn't exist or comes twice, another number of rows, a stage or gate
// that never came, a source without content tokens are errors, and leave no
// document. [TokenError], [InputError], [SourceError] and [FormatError] are what is
// wrong with tokens, an engine's answer, a file of sources and a document;
// [UnsupportedError] is a document of another schema, [UsageError] a caller's mistake.
//
// # Limits and non-goals
//
// The package runs no engine and reads no tokenizer. Ordered route hashes depend on
// the order in which a router lists its top-k, which means nothing where it is
// unsorted: compare sets.
package trace
