// Package engine is the contract between Plumbline and an inference engine.
//
// Three sides take part in a comparison. A [Candidate] is the engine under
// test: a folder of dumps ([Dir]), a program ([Exec], [Protocol]) or a Go value
// ([Func]). A [Reference] is the trusted float engine that runs in the same
// process and can be asked for more than a dump holds: one layer on a given
// input, a batched run, a second composition of the same arithmetic; where the model has
// routed experts, it is also [Routed] and can be told which to use. A [Yardstick] is a
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
// Beside its dumps a candidate may offer places inside the model at every
// position ([Response].Probes): NAME.probes.safetensors in a dump folder, the
// file that {probes} or "probes" names for a program, [ProbeValues] for a Go
// value. [Request].Probes says which are wanted. A name that is no place in any
// model is malformed, as is a position that the case has no token for.
//
// # Programs as candidates
//
// [Exec] runs a command once per case, [Protocol] keeps one process that speaks
// JSON lines. Both give the program a temporary folder to write its dumps into,
// with the same names for every case ("case.layers.bin", …), and read it as the
// dump folder of one case. A program runs in a process group of its own, which
// is ended as a whole: asked (SIGTERM), and after a grace killed. What it left
// running when it exited is killed too, so that nothing writes into files that
// are being read; a helper that must outlive it needs a session of its own.
//
// What can go wrong is one of: a [MalformedError] (an answer that is broken or
// another prompt's), an [UnsupportedError] (the program says so), a
// [NoAnswerError] (it reports an error of its own), a [ProcessError] (it
// crashed, was late, or wrote nothing; with exit code, signal and the end of its
// standard error), a [SetupError] (it can't be run at all), and a [CommandError]
// (the command line makes no sense; nothing was run). A failed run's files are
// never read: half an answer is none.
//
// How a dump is read is declared, never guessed from its bytes: by the options,
// by an engine.json that the program writes, or in the handshake; declarations
// that disagree are an error. An author can have the way between his program
// and Plumbline tested with two fakes, [SmokeRight] and [SmokeWrong].
//
// # Limits and non-goals
//
// The package judges nothing (package conformance does), computes nothing
// (reference and quant do), and writes nothing but the temporary folders of
// programs. Token ids are the interface; text is carried along only because its
// fingerprint ties a dump to its prompt. Process groups exist on Unix alone:
// elsewhere only the program itself is ended. A program that starts a session
// of its own gets away.
package engine
