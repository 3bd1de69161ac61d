// Package seeded loads the seeded checkpoint of package fixtures without an engine, for
// the tests below engine.
//
// # Contract
//
// The weights implement [engine.Weights], in float32; they are read once a
// process and shared.
//
// # Limits and non-goals
//
// It reads that one file, whose bytes a test of the generator pins, and is no
// safetensors reader: dumpfmt has that.
package seeded
