// Package half converts IEEE 754 binary16 numbers.
//
// To float32 a conversion is exact, NaN and infinities included. The other way, and
// arithmetic, are none of its business: package engine/quant rounds to binary16.
package half
