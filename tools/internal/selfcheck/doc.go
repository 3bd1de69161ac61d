// Package selfcheck holds the checks that a residual capture must pass before it
// may be written, for `plumbline layers`.
//
// # Contract
//
// [Finite] refuses rows with NaN or infinities. [Endpoint] holds the two ends of
// a capture to what is known of them: the last row is not the state after the
// final norm, its final norm is that state, and row 0 is the last token's
// embedding. [Interior] holds every
// row to a second composition of the same arithmetic. They guard the capture's
// wiring, not the model's arithmetic, and compare bits, since each pair comes
// from the same arithmetic; a final norm may be one rounding off.
//
// # Limits and non-goals
//
// A fault that both sides of a comparison share goes unseen. No tolerance: rows
// of two engines belong to package conformance.
package selfcheck
