// Package mutant plants one fault at a time, each named for the bug it stands
// for, in a checkpoint, in a reference engine or in a candidate's answers. A
// check that doesn't fail on its mutant is not a check.
//
// # Contract
//
// [All] lists the mutants. A mutant changes what it says and nothing else: a
// tensor that it doesn't touch is the same memory as before, rows that it
// doesn't touch have the same bits. There are five kinds.
//
//   - Engine faults deviate in a checkpoint's tensors, in the constants of a
//     layer, or in what engine.Fault can express. [Mutant.Weights] plants them;
//     whoever runs the result (a reference, an emulation) has the fault.
//     [Mutant.Reference] and [Mutant.Candidate] do so through a factory that the
//     caller gives.
//   - Capture faults leave the arithmetic alone and spoil what is captured:
//     rows, their scales, their number, the header. [Mutant.Reference] and
//     [Mutant.Candidate] wrap the clean side.
//   - Output faults spoil a decode, or what is dumped of it: its rows of logits,
//     its tokens, its end. Where another token than the clean one is chosen, the
//     rows behind it are those of the clean side, run on the prompt and the tokens
//     so far: the fault is the only one. A side that can't be run so, as one with
//     recorded answers, is an error then.
//   - Answer faults replace a candidate's answers as a whole.
//   - Probe faults spoil the probes of a candidate's answer, and nothing of an
//     answer without.
//
// Faults of the capture leave the probes of an answer as they are. Those of the
// decode leave the positions whose tokens are still the clean side's.
//
// # Where a fault must be named
//
// A fault in decoder layer L first shows in row L+1 (row 0 is the embedding).
// A capture fault at row i must be named at row i, as a fault of the dump: rows
// after it are healthy. A fault of the final norm or the head shows in the logits
// alone. Each mutant says which applies ([Mutant.Named]).
//
// # Limits and non-goals
//
// The package computes no forward pass and judges nothing. Effects are as large
// as the model makes them: what an int8 row can't show (norm-eps) is said in
// the mutant's documentation. Whole captures, outputs and probes are held in
// memory.
package mutant
