package reference

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
)

// heldByHand are float32 bits and those of the nearest bfloat16 value, which has the
// upper 16 bits alone; by hand.
var heldByHand = []struct {
	why      string
	in, want uint32
}{
	{"one", 0x3f800000, 0x3f800000},
	{"below the middle", 0x3f807fff, 0x3f800000},
	{"the middle, down to even", 0x3f808000, 0x3f800000},
	{"above the middle", 0x3f808001, 0x3f810000},
	{"the middle, up to even", 0x3f818000, 0x3f820000},
	{"the middle, negative", 0xbf818000, 0xbf820000},
	{"up into the next power of two", 0x3fffc000, 0x40000000},
	{"the largest below that", 0x3fff7fff, 0x3fff0000},
	{"minus zero", 0x80000000, 0x80000000},
	{"the smallest float32", 0x00000001, 0x00000000},
	{"half the smallest bfloat16", 0x00008000, 0x00000000},
	{"above that", 0x00008001, 0x00010000},
	{"subnormal up to normal", 0x007f8000, 0x00800000},
	{"the largest bfloat16", 0x7f7f0000, 0x7f7f0000},
	{"rounded down to it", 0x7f7f7fff, 0x7f7f0000},
	{"rounded to infinity", 0x7f7f8000, 0x7f800000},
	{"infinity", 0x7f800000, 0x7f800000},
	{"minus infinity", 0xff800000, 0xff800000},
	{"NaN", 0x7fc00000, 0x7fc00000},
}

// heldByGraph runs values through a graph of one rounding.
func heldByGraph(t *testing.T, r rounder, in []float32) []float32 {
	t.Helper()
	b, err := newBackend(DefaultBackend)
	require.NoError(t, err)
	x, err := graph.NewExec(b, func(x *graph.Node) *graph.Node { return r.held(x) })
	require.NoError(t, err)
	out, err := x.Call(tensors.FromValue(in))
	require.NoError(t, err)
	var got []float32
	require.NoError(t, tensors.ConstFlatData(out[0], func(flat []float32) { got = append(got, flat...) }))
	return got
}

func TestHeldRoundsToNearestEven(t *testing.T) {
	r := BFloat16.rounder()
	var in []float32
	for _, c := range heldByHand {
		in = append(in, math.Float32frombits(c.in))
	}
	got, host := heldByGraph(t, r, in), heldValues(r, in)
	for i, c := range heldByHand {
		require.Equalf(t, c.want, math.Float32bits(got[i]), "graph: %s", c.why)
		require.Equalf(t, c.want, math.Float32bits(host[i]), "host: %s", c.why)
		require.Equalf(t, c.want, math.Float32bits(float32(r.value(float64(in[i])))), "value: %s", c.why)
	}
	for _, d := range []DType{Float32, Float64} {
		for i, v := range heldByGraph(t, d.rounder(), in) {
			require.Equal(t, heldByHand[i].in, math.Float32bits(v), d)
		}
		require.Equal(t, math.Pi, d.rounder().value(math.Pi), d)
		require.Same(t, &in[0], &heldValues(d.rounder(), in)[0], d)
	}
}

// nearest is the value with 8 significant bits that is nearest to x, by arithmetic
// instead of bits.
func nearest(x float64) float64 {
	_, e := math.Frexp(x)
	step := math.Ldexp(1, max(e-8, -133))
	return math.RoundToEven(x/step) * step
}

func TestHeldRoundsRandomValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	in := make([]float32, 1<<16)
	for i := range in {
		in[i] = math.Float32frombits(rng.Uint32())
		for in[i]-in[i] != 0 || math.Abs(float64(in[i])) >= 0x1.ffp127 {
			in[i] = math.Float32frombits(rng.Uint32())
		}
		if i%4 == 0 { // ties
			in[i] = math.Float32frombits(math.Float32bits(in[i])&0xffff0000 | 0x8000)
		}
	}
	r := BFloat16.rounder()
	got, host := heldByGraph(t, r, in), heldValues(r, in)
	for i, v := range in {
		if want := nearest(float64(v)); float64(got[i]) != want || float64(host[i]) != want {
			t.Fatalf("%x: got %x in a graph, %x on the host, want %x", v, got[i], host[i], want)
		}
	}
}

// TestHeldValuesAreNotCopiedInVain: the weights of a bfloat16 checkpoint stay one
// copy, and nobody's weights are changed.
func TestHeldValuesAreNotCopiedInVain(t *testing.T) {
	r := BFloat16.rounder()
	exact := []float32{1, -0.5, 0, float32(math.Copysign(0, -1)), 3.140625}
	require.Same(t, &exact[0], &heldValues(r, exact)[0])
	data := []float32{1, 2, 3.14159274, 4, 5.00000095}
	require.Equal(t, []float32{1, 2, 3.140625, 4, 5}, heldValues(r, data))
	require.Equal(t, []float32{1, 2, 3.14159274, 4, 5.00000095}, data)
}
