package reference

import (
	"encoding/binary"
	"math"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine/reference/internal/half"
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
			out[i] = half.Float32(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	}
	return out
}
