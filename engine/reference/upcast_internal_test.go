package reference

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TestUpcastIsExact goes through all 65,536 patterns of both 16-bit formats and
// compares with their definitions, (-1)^s * m * 2^e, in float64.
func TestUpcastIsExact(t *testing.T) {
	for _, f := range []struct {
		dtype               dumpfmt.DType
		fractionBits, biasE int
	}{{dumpfmt.F16, 10, 15}, {dumpfmt.BF16, 7, 127}} {
		raw := make([]byte, 2<<16)
		for i := range 1 << 16 {
			binary.LittleEndian.PutUint16(raw[2*i:], uint16(i))
		}
		got := upcast(f.dtype, raw)
		require.Len(t, got, 1<<16)
		top := 1<<(15-f.fractionBits) - 1
		for i, v := range got {
			fraction, exponent := i&(1<<f.fractionBits-1), i>>f.fractionBits&top
			var want float64
			switch {
			case exponent == top && fraction != 0:
				if !math.IsNaN(float64(v)) {
					t.Fatalf("%s 0x%04x: got %v, want NaN", f.dtype, i, v)
				}
				continue
			case exponent == top:
				want = math.Inf(1)
			case exponent == 0:
				want = math.Ldexp(float64(fraction), 1-f.biasE-f.fractionBits)
			default:
				want = math.Ldexp(float64(fraction+1<<f.fractionBits), exponent-f.biasE-f.fractionBits)
			}
			if i>>15 == 1 {
				want = math.Copysign(want, -1)
			}
			if math.Float64bits(float64(v)) != math.Float64bits(want) {
				t.Fatalf("%s 0x%04x: got %v, want %v", f.dtype, i, v, want)
			}
		}
	}
	one := make([]byte, 4)
	binary.LittleEndian.PutUint32(one, 0x40490fdb) // float32 pi
	require.Equal(t, []float32{math.Pi}, upcast(dumpfmt.F32, one))
}
