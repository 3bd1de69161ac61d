// Package kernel compares the tensors of attention, layer by layer and position
// by position, with those of a reference, and holds them to the bounds of a
// kernel's own test: what a team needs that quantises a KV cache or writes an
// attention kernel.
//
// # Contract
//
// An [Inventory] says which tensors there are, as a value: layers and their types,
// positions, ops, shapes, file names. [Compare] reads both sides of every one of
// them, in order, in one pass and constant memory, and gives a [Row] for each: its
// figures, or why there are none. A tensor that is absent, of another size or
// unreadable is a row, never silence. [Judge] takes the rows, from tensors or from
// a recorded CSV ([ReadCSV]), and comes to two verdicts:
//
//   - [Script], what the Python script tq_c0_diff.py would say of these rows, its
//     false greens included; and
//   - [Verdict], Plumbline's own, which decides. It needs every tensor, finite
//     values, and a reference that isn't all zero, before any number counts.
//     [Verdict.Differs] says where and why the two part.
//
// Bounds are [Thresholds], each with its source. Figures are those of
// golden/metric: numpy's order of addition, nRMSE = sqrt(sum sq diff / sum sq ref)
// in float64.
//
// # Limits and non-goals
//
// The package runs no engine and draws nothing. Tensors are float32, row-major,
// [heads, head width]. Nothing here knows which layer introduced an error: a
// tensor's difference includes what earlier layers passed on.
package kernel
