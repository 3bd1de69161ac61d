// Package suite binds the parts that package conformance leaves open: the GoMLX
// reference, the int8 emulation as the yardstick, a second int8 engine as the
// candidate that needs no download, and the planted faults. The suite's own
// tests and `plumbline selftest` share it.
//
// It decides nothing: which checks there are, and their bounds, is conformance's.
package suite
