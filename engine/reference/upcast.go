package reference

import (
	"encoding/binary"
	"math"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// elementSize is the size in bytes of a dtype that upcast knows.
func elementSize(d dumpfmt.DType) (int, bool) {
	switch d {
	case dumpfmt.F32:
		return 4, true
	case dumpfmt.BF16, dumpfmt.F16:
		return 2, true
	}
	return 0, false
}

// upcast converts little-endian values to float32, which is exact.
func upcast(d dumpfmt.DType, raw []byte) []float32 {
	size, _ := elementSize(d)
	out := make([]float32, len(raw)/size)
	for i := range out {
		switch d {
		case dumpfmt.F32:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		case dumpfmt.BF16:
			// bfloat16 is the upper half of a float32.
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		case dumpfmt.F16:
			out[i] = halfToFloat(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}
	return out
}

// halfToFloat converts an IEEE 754 binary16: 1 sign, 5 exponent (bias 15) and
// 10 fraction bits.
func halfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent, fraction := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero or subnormal: fraction * 2^-24, exact in float32
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent-15+127)<<23 | fraction<<13)
}
