// Package overlap has one goroutine take what another one makes, so that a value is
// looked at while the next one is computed.
//
// Order is kept, at most two values wait, and the first error ends both sides. It is
// no pool: there is one taker.
package overlap
