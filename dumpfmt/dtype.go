package dumpfmt

// DType is the element type of a safetensors tensor.
type DType string

// The element types that are handled: those of the format with whole bytes.
const (
	BOOL   DType = "BOOL"
	U8     DType = "U8"
	I8     DType = "I8"
	F8E5M2 DType = "F8_E5M2"
	F8E4M3 DType = "F8_E4M3"
	F8E8M0 DType = "F8_E8M0"
	I16    DType = "I16"
	U16    DType = "U16"
	F16    DType = "F16"
	BF16   DType = "BF16"
	I32    DType = "I32"
	U32    DType = "U32"
	F32    DType = "F32"
	C64    DType = "C64"
	I64    DType = "I64"
	U64    DType = "U64"
	F64    DType = "F64"
)

const knownDTypes = "BOOL, U8, I8, F8_E5M2, F8_E4M3, F8_E8M0, I16, U16, F16, BF16, I32, U32, F32, C64, I64, U64, F64"

// Size returns the bytes per element, 0 for a type that isn't handled.
func (t DType) Size() int {
	switch t {
	case BOOL, U8, I8, F8E5M2, F8E4M3, F8E8M0:
		return 1
	case I16, U16, F16, BF16:
		return 2
	case I32, U32, F32:
		return 4
	case C64, I64, U64, F64:
		return 8
	}
	return 0
}
