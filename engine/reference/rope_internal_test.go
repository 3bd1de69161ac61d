package reference

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainRope is the default rotary embedding.
func plainRope(theta float64, dim int) ropeSpec {
	return ropeSpec{theta: theta, dim: dim, pairs: dim / 2, factor: 1}
}

// TestRopeTableMatchesTorch: bits of cos and sin from torch 2.15 by the formulas
// of transformers 5.13.1's Qwen2RotaryEmbedding.
func TestRopeTableMatchesTorch(t *testing.T) {
	for _, c := range []struct {
		theta         float64
		dim, position int
		cos, sin      []uint32
	}{
		{1e6, 16, 61,
			[]uint32{0xbe8425e6, 0xbe1711e5, 0xbeb37f93, 0x3f7115e7, 0x3f7f861c, 0x3f7ffc25, 0x3f7fffe1, 0x3f7fffff},
			[]uint32{0xbf77537f, 0xbf7d32e3, 0x3f6fc08c, 0x3eac34d0, 0x3d79b37b, 0x3c31b8d7, 0x3afcd619, 0x39b3d878}},
		{1e4, 8, 1000,
			[]uint32{0x3f0ff813, 0x3f5cc0ee, 0xbf56cd64, 0x3f0a5141},
			[]uint32{0x3f53ae61, 0xbf01a12e, 0xbf0b44f8, 0x3f576aa4}},
		{1e6, 16, 30000,
			[]uint32{0xbf18af9b, 0x3f6a5e0e, 0x3f7f3a9e, 0x3f163d01, 0x3e1df496, 0x3f154141, 0x3f152f59, 0x3f7c5d9e},
			[]uint32{0xbf4d7b7b, 0x3ecdfd50, 0xbd9ed48a, 0xbf4f4758, 0xbf7cef9f, 0xbf4ffce8, 0x3f5009c1, 0x3e2beed9}},
	} {
		t.Run(fmt.Sprintf("theta %g position %d", c.theta, c.position), func(t *testing.T) {
			cos, sin := ropeTable(Float32, plainRope(c.theta, c.dim), c.position)
			exactCos, exactSin := ropeTable(Float64, plainRope(c.theta, c.dim), c.position)
			require.Len(t, cos, c.dim)
			require.Len(t, sin, c.dim)
			var apart float64
			for i, bits := range c.cos {
				wantCos, wantSin := float64(math.Float32frombits(bits)), float64(math.Float32frombits(c.sin[i]))
				// One unit in the last place at 1: torch's cosf and sinf are not
				// correctly rounded. The angle is the same float32.
				for _, pair := range [][2]float64{{cos[i], wantCos}, {sin[i], wantSin}, {cos[i+c.dim/2], wantCos}, {sin[i+c.dim/2], wantSin}} {
					if d := math.Abs(pair[0] - pair[1]); !(d <= 0x1p-24) {
						t.Errorf("pair %d: got %v, want %v", i, pair[0], pair[1])
					}
				}
				apart = max(apart, math.Abs(exactCos[i]-wantCos), math.Abs(exactSin[i]-wantSin))
			}
			// The float32 angle is part of the model: at high positions the
			// float64 table is another one.
			if c.position >= 30000 && !(apart > 1e-4) {
				t.Errorf("float64 table is %v from torch's float32 one, want more than 1e-4", apart)
			}
		})
	}
}

// TestRopeTableFloat64 compares with cos and sin of angles worked out by hand:
// theta^(-2i/d) = 10000^(-i/2) = 1, 0.01 for d = 4.
func TestRopeTableFloat64(t *testing.T) {
	cos, sin := ropeTable(Float64, plainRope(10000, 4), 3)
	for i, angle := range []float64{3, 0.03, 3, 0.03} {
		if !(math.Abs(cos[i]-math.Cos(angle)) < 1e-15) || !(math.Abs(sin[i]-math.Sin(angle)) < 1e-15) {
			t.Errorf("element %d: got %v, %v for angle %v", i, cos[i], sin[i], angle)
		}
	}
}
