// Package conformance is the product: the checks that tell whether an
// inference engine still computes its model, and where the first wrong number
// is.
//
// [Evaluate] runs every check that applies and returns a [Report]; [Run] does
// the same inside `go test`. A [Check] is pure: evidence in, findings out. Its
// Rule is printed with each failure, its Controls name the planted faults
// (package engine/mutant) that it must fail on; [Prove] shows that it does.
//
// A client's test is
//
//	func TestConformance(t *testing.T) {
//		ref, err := reference.Open("/models/qwen2")
//		if err != nil {
//			t.Fatal(err)
//		}
//		conformance.Run(t, conformance.Config{
//			Reference: ref,
//			Yardstick: quant.New(ref),
//			Candidate: engine.Dir("/abs/path/to/dumps"),
//		})
//	}
//
// # Contract
//
// A candidate conforms only when every Core check was judged on at least one
// case and passed wherever it applied. Nothing judged is never a success. The
// error that Evaluate returns is about the run (a bad model, a cancelled
// context), never about the candidate's answers: those are in the report.
//
// # Where the first wrong number is
//
// From last-token dumps each layer is run on the candidate's own row with the
// reference's KV cache, which keeps the layers behind a fault high and can hide a
// second, smaller one. From places at every position ([Places], the files
// NAME.probes.safetensors) each layer is run on the candidate's own rows with keys
// and values from those rows: no layer inherits from another, and each that is out
// of budget is a source.
//
// # Teacher targets
//
// [Teacher] is a plan, a target and evidence, judged beside the candidate: the files by
// checks of the candidate, whose they are, the reference's rows and the writer of
// targets by checks of the reference. The target is streamed, and the reference run
// along it with two rows in memory.
//
// # Routes and traces
//
// A flipped route hides every other fault: the row has other experts from there on. So
// [Routes] are judged twice. By its own routes the reference has to choose what was
// recorded wherever the margin is above what scores may be off by; another set below
// that is a TIE, and what comes behind either is not judged. By the recorded routes,
// forced on it, it has to have the recorded rows. A candidate is judged on its own
// choices: the reference and the yardstick are run with those forced, so that every row
// is compared, and the yardstick says how far scores move and how often near ties fall
// otherwise. [Trace] is a trace document with the tokens and tensors that it was made
// of; its checks say nothing of the model.
//
// # Limits and non-goals
//
// The package runs no model of its own: the reference engine, the yardstick
// and the mutants come in through [Config]. It reads no flags and prints
// nothing.
package conformance
