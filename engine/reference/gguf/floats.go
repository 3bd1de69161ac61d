package gguf

import (
	"encoding/binary"
	"math"

	"github.com/plumbline-go/plumbline/engine/reference/internal/half"
)

// The decoders below take whole blocks. All products in them are exact: a half
// has 11 significant bits, the scale of a sub-block and a quantised value
// together at most 13 more, and float32 holds 24. What is rounded is one sum per
// value at most, so neither the order of factors nor a fused multiply-add can
// change a bit.

// halfAt reads a half at the front of p.
func halfAt(p []byte) float32 { return half.Float32(binary.LittleEndian.Uint16(p)) }

func f32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func f16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = halfAt(src[2*i:])
	}
}

// bf16 is the upper half of a float32.
func bf16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}
