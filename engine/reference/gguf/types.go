package gguf

import "fmt"

// Type is the type of a tensor's elements, by its number in the format.
type Type uint32

// The types that Float32s reads.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q2_K Type = 10
	Q3_K Type = 11
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

// layout is how a type lies in a file: elements in blocks of fixed size.
type layout struct {
	name            string
	elements, bytes int64
	// decode dequantises blocks; nil for a type that isn't read.
	decode func(dst []float32, src []byte)
}

// layouts are the types of the format. The sizes of those that aren't read are
// there so that a file with one is still checked to its end.
var layouts = map[Type]layout{
	F32:  {"F32", 1, 4, f32},
	F16:  {"F16", 1, 2, f16},
	BF16: {"BF16", 1, 2, bf16},
	Q4_0: {"Q4_0", 32, 18, q4_0},
	Q4_1: {"Q4_1", 32, 20, q4_1},
	Q5_0: {"Q5_0", 32, 22, q5_0},
	Q5_1: {"Q5_1", 32, 24, q5_1},
	Q8_0: {"Q8_0", 32, 34, q8_0},
	Q2_K: {"Q2_K", 256, 84, q2_K},
	Q3_K: {"Q3_K", 256, 110, q3_K},
	Q4_K: {"Q4_K", 256, 144, q4_K},
	Q5_K: {"Q5_K", 256, 176, q5_K},
	Q6_K: {"Q6_K", 256, 210, q6_K},

	9:  {"Q8_1", 32, 40, nil},
	15: {"Q8_K", 256, 292, nil},
	16: {"IQ2_XXS", 256, 66, nil},
	17: {"IQ2_XS", 256, 74, nil},
	18: {"IQ3_XXS", 256, 98, nil},
	19: {"IQ1_S", 256, 50, nil},
	20: {"IQ4_NL", 32, 18, nil},
	21: {"IQ3_S", 256, 110, nil},
	22: {"IQ2_S", 256, 82, nil},
	23: {"IQ4_XS", 256, 136, nil},
	24: {"I8", 1, 1, nil},
	25: {"I16", 1, 2, nil},
	26: {"I32", 1, 4, nil},
	27: {"I64", 1, 8, nil},
	28: {"F64", 1, 8, nil},
	29: {"IQ1_M", 256, 56, nil},
	34: {"TQ1_0", 256, 54, nil},
	35: {"TQ2_0", 256, 66, nil},
	39: {"MXFP4", 32, 17, nil},
	40: {"NVFP4", 64, 36, nil},
	41: {"Q1_0", 128, 18, nil},
}

// readable names the types that Float32s reads, for messages.
const readable = "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K and Q6_K are read"

// String is the type's name in the format.
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	return fmt.Sprintf("number %d", uint32(t))
}

// Readable reports whether Float32s reads tensors of the type: F32, F16, BF16,
// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and the K-quants Q2_K to Q6_K.
func (t Type) Readable() bool { return layouts[t].decode != nil }
