// Package engine is the contract between Plumbline and an inference engine.
//
// Three sides take part in a comparison. A [Candidate] is the engine under
// test: a folder of dumps ([Dir]), and later a program or a Go value. A
// [Reference] is the trusted float engine that runs in the same process and
// can be asked for more than a dump holds: one layer on a given input, a
// batched run, a second composition of the same arithmetic. A [Yardstick] is a
// second low-precision implementation; how far it strays from the reference
// says how far an honest candidate of the same scheme may stray.
//
// # Conventions
//
// Row 0 of a residual capture is the embedding of the last prompt token, row i
// (i >= 1) is the residual stream after decoder layer i-1, before the final
// norm ([RowProbe] gives the names). All values travel as float64, in which
// every float32, bfloat16 and scaled int8 value is exact, so that == on two of
// them is bit identity of the values they came from (NaN excepted).
//
// # Limits and non-goals
//
// The package judges nothing (package conformance does), computes nothing
// (reference and quant do), and never writes. Token ids are the interface;
// text is carried along only because its fingerprint ties a dump to its prompt.
package engine
