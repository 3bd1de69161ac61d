// Package golden holds expected values: what the trusted reference recorded,
// with provenance and hashes, and how much deviation from it is allowed, and
// why that much.
//
// A [Set] is a dump folder that transformers recorded, with a [Manifest] beside
// it that names every file, the checkpoint, the reference's own source modules
// and the precision floor of each row. [Set.Verify] holds all of it to its
// hashes; a file that no manifest names is as wrong as one that is missing.
//
// A [Recording] is the manifest of goldens of a user's own checkpoint, which
// `plumbline record` writes; [OpenFolder] opens either.
//
// A [Budget] is never a bare number: it carries the measurement it came from.
// Package golden/metric has the formulas that the budgets bound.
//
// # Limits and non-goals
//
// The package judges nothing, runs no engine, and records nothing: the module's goldens
// come from tools/goldens alone, never from an engine of ours. A user's recording may be
// our reference's own: then it shows change, not truth ([Set.ShowsChangeOnly]).
package golden
