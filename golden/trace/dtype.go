package trace

import (
	"encoding/binary"
	"fmt"
	"math"
)

// DType is an element type by the name that PyTorch prints.
type DType string

// The element types that are handled. Values are held as float32, which has all of
// both.
const (
	BFloat16 DType = "torch.bfloat16"
	Float32  DType = "torch.float32"
)

func (t DType) check() error {
	if t != BFloat16 && t != Float32 {
		return &UsageError{"dtype", "name", fmt.Sprintf("%q", string(t)), string(BFloat16) + " or " + string(Float32)}
	}
	return nil
}

// holds reports whether the type has the value, which is finite.
func (t DType) holds(x float32) bool {
	const exponent = 0x7F800000
	bits := math.Float32bits(x)
	return bits&exponent != exponent && (t != BFloat16 || bits&0xFFFF == 0)
}

// append appends the little-endian bytes of values.
func (t DType) append(dst []byte, row []float32) []byte {
	for _, x := range row {
		bits := math.Float32bits(x)
		if t == BFloat16 {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(bits>>16))
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, bits)
		}
	}
	return dst
}

// Step is the distance from |x| to the next larger value of the type.
func (t DType) Step(x float64) float64 {
	bits, least := 24, -149
	if t == BFloat16 {
		bits, least = 8, -133
	}
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return math.Ldexp(1, least)
	}
	_, exp := math.Frexp(x)
	return math.Ldexp(1, max(exp-bits, least))
}
