// Package teacher reads and writes what pins a teacher model's exact logits: a plan,
// with the token ids and the points at which a row is wanted; a target file, with
// those rows; and evidence, which binds both by hash and holds greedy trajectories.
// The formats are those of the script qwen_teacher_reference.py, bit for bit.
//
// # Contract
//
// [Read] and [Check] hold a plan to everything that the script demands, in its order,
// and to rules of our own for what it leaves open: fields and their order, types,
// ids, ordinals, totals and limits, the plan's own hash. A [Problem] says which rule,
// which example and point, what was found and what expected, and what the script
// makes of it ([Script]).
//
// [Execute] runs a plan on a [Session] in the script's schedule: one batched prefill
// to an example's first point, single steps from there, 32 greedy tokens after a
// generation prompt, the lowest id on ties. It holds one row at a time.
// [NewEvidence] and [EvidenceBytes] make the evidence, [Verify] holds a recorded target
// and its evidence to a plan.
//
// # Limits and non-goals
//
// A plan is held in memory and at most [MaxPlanBytes] long, a larger one is refused
// unread. The package runs no engine and knows no tokenizer: whether the ids are those
// of the plan's texts can't be told from a plan. Which hash a partition, a corpus or
// a rendered stream has isn't checked, only that it is one.
package teacher
