package reference_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// recordedV2 is what transformers computes with the model in testdata/deepseek, as
// testdata/record_deepseek.py says.
type recordedV2 struct {
	file    *dumpfmt.Safetensors
	model   *reference.Checkpoint
	prompts [][]int
	pad     int
}

func openV2(t testing.TB) recordedV2 {
	t.Helper()
	var r recordedV2
	var err error
	r.file, err = dumpfmt.OpenSafetensors("testdata/deepseek/recorded.safetensors")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(r.file.Metadata()["prompts"]), &r.prompts))
	require.NoError(t, json.Unmarshal([]byte(r.file.Metadata()["pad"]), &r.pad))
	r.model, err = reference.Load("testdata/deepseek")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.model.Close())
		require.NoError(t, r.file.Close())
	})
	return r
}

// at is a recorded tensor, in rows.
func (r recordedV2) at(t testing.TB, name string) [][]float64 {
	t.Helper()
	info, ok := r.file.Tensor(name)
	require.True(t, ok, name)
	width := info.Shape[len(info.Shape)-1]
	size := 4
	if info.DType == dumpfmt.BF16 {
		size = 2
	}
	n := 1
	for _, d := range info.Shape {
		n *= d
	}
	raw := make([]byte, n*size)
	require.NoError(t, r.file.ReadBytes(name, 0, raw))
	rows := make([][]float64, n/width)
	for i := range rows {
		for j := range width {
			at := raw[size*(i*width+j):]
			switch info.DType {
			case dumpfmt.BF16:
				rows[i] = append(rows[i], float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(at))<<16)))
			case dumpfmt.F32:
				rows[i] = append(rows[i], float64(math.Float32frombits(binary.LittleEndian.Uint32(at))))
			default:
				rows[i] = append(rows[i], float64(int32(binary.LittleEndian.Uint32(at))))
			}
		}
	}
	return rows
}

// real calls f for each slot of the batch that isn't padding.
func (r recordedV2) real(f func(row int)) {
	slots := len(r.prompts[0])
	for i, p := range r.prompts {
		for row := (i+1)*slots - len(p); row < (i+1)*slots; row++ {
			f(row)
		}
	}
}

// byID are a position's experts in the order of their ids, with their weights.
func byID(ids []int, weights []float64) ([]float64, []float64) {
	order := slices.Clone(ids)
	slices.Sort(order)
	var outIDs, outWeights []float64
	for _, id := range order {
		outIDs, outWeights = append(outIDs, float64(id)), append(outWeights, weights[slices.Index(ids, id)])
	}
	return outIDs, outWeights
}

func traced(t testing.TB, e engine.Reference, r recordedV2) (stages []engine.Stage) {
	t.Helper()
	require.NoError(t, e.(*reference.Engine).TraceBatch(bg, r.prompts, r.pad, func(s engine.Stage) error {
		stages = append(stages, s)
		return nil
	}))
	return stages
}

// TestDeepseekMatchesTransformers: rows, routes and places of a padded batch, with
// each of the two softmax scales. The bound is what float32 itself strays on this
// model: the engine's own distance from float64, measured here, for both sides.
func TestDeepseekMatchesTransformers(t *testing.T) {
	r := openV2(t)
	require.Empty(t, r.model.UnusedKeys())
	require.Empty(t, r.model.UnusedTensors())
	for run, opts := range map[string][]reference.Option{"official": nil, "transformers": {reference.WithTransformersScale()}} {
		t.Run(run, func(t *testing.T) {
			e := mustNew(t, r.model, opts...)
			exact, err := e.Float64()
			require.NoError(t, err)
			double, worst := traced(t, exact, r), 0.0
			for i, s := range traced(t, e, r) {
				want, stray := r.at(t, run+"/"+string(s.Probe)), 0.0
				r.real(func(row int) { stray = max(stray, relL2(wide(s.Rows.Row(row)), wide(double[i].Rows.Row(row)))) })
				bound := latentSpread * max(stray, step32)
				r.real(func(row int) {
					d := relL2(wide(s.Rows.Row(row)), want[row])
					worst = max(worst, d)
					require.LessOrEqual(t, d, bound, "%s, row %d", s.Probe, row)
					require.LessOrEqual(t, relL2(wide(double[i].Rows.Row(row)), want[row]), bound, "%s, row %d: float64", s.Probe, row)
				})
				if i > 1 { // control: the other scale
					other := r.at(t, map[string]string{"official": "transformers/", "transformers": "official/"}[run]+string(s.Probe))
					far := 0.0
					r.real(func(row int) { far = max(far, relL2(wide(s.Rows.Row(row)), other[row])) })
					require.Greater(t, far, 10*bound, s.Probe)
				}
				if s.Routing == nil {
					continue
				}
				p := run + "/" + strings.TrimSuffix(string(s.Probe), "resid_post")
				ids, weights, logits := r.at(t, p+"route_ids"), r.at(t, p+"route_weights"), r.at(t, p+"router_logits")
				r.real(func(row int) {
					gotIDs, gotWeights := byID(s.Routing.IDs[row], s.Routing.Weights[row])
					require.Equal(t, ids[row], gotIDs, "%s, row %d", s.Probe, row)
					require.LessOrEqual(t, relL2(gotWeights, weights[row]), 8*bound, "%s, row %d", s.Probe, row)
					require.LessOrEqual(t, relL2(s.Routing.Logits[row], logits[row]), 8*bound, "%s, row %d", s.Probe, row)
				})
			}
			t.Logf("rows within %.3g", worst)

			// The first prompt is the longest, so that it has no padding.
			var places []engine.Probe
			for n := range e.Weights().Arch().Layers {
				places = append(places, engine.Block(n, engine.PartAttnOut), engine.Block(n, engine.PartMLPOut))
				if n > 0 {
					places = append(places, engine.Block(n, engine.PartSharedOut))
				}
			}
			places = append(places, engine.ProbeLogits)
			got, ideal := probe(t, e, r.prompts[0], nil, places...), probe(t, exact.(*reference.Engine), r.prompts[0], nil, places...)
			for _, p := range places {
				want, stray := r.at(t, run+"/"+string(p)), 0.0
				for pos := range r.prompts[0] {
					stray = max(stray, relL2(wide(got[p].Row(pos)), wide(ideal[p].Row(pos))))
				}
				for pos := range r.prompts[0] {
					require.LessOrEqual(t, relL2(wide(got[p].Row(pos)), want[pos]), latentSpread*max(stray, step32), "%s, position %d", p, pos)
				}
			}
		})
	}
}

// TestDeepseekLayersInBFloat16MatchTransformers: each layer on transformers' own
// bfloat16 rows, by both ways to attend, bit for bit but for values beside a tie;
// the other way to attend and float32 are the controls.
func TestDeepseekLayersInBFloat16MatchTransformers(t *testing.T) {
	r := openV2(t)
	eager := mustNew(t, r.model, reference.WithDType(reference.BFloat16))
	fused := mustNew(t, r.model, reference.WithDType(reference.BFloat16), reference.WithFusedAttention())
	single := mustNew(t, r.model)
	slots := len(r.prompts[0])
	for run, side := range map[string]struct{ own, other *reference.Engine }{
		"official-bfloat16-eager/": {eager, fused}, "official-bfloat16-sdpa/": {fused, eager},
	} {
		t.Run(strings.TrimSuffix(run, "/"), func(t *testing.T) {
			places := []engine.Part{engine.PartAttnOut, engine.PartSharedOut, engine.PartMLPOut, engine.PartResidPost}
			var own, other, float float64
			for n := range 4 {
				in := r.at(t, run+string(engine.RowProbe(n)))[:slots]
				share := func(e *reference.Engine, part engine.Part) float64 {
					got, err := e.LayerAll(bg, n, in, nil)
					require.NoError(t, err)
					return share16(t, got[part], r.at(t, run+string(engine.Block(n, part)))[:slots])
				}
				for _, part := range places {
					if part == engine.PartSharedOut && n == 0 {
						continue
					}
					s := share(side.own, part)
					require.LessOrEqual(t, s, tolerated16(slots), "%s of layer %d", part, n)
					own, float = own+s, float+share(single, part)
				}
				other += share(side.other, engine.PartAttnOut)
			}
			t.Logf("shares that differ, in sum: %.4f, float32 %.4f; attention by the other way %.4f", own, float, other)
			require.Greater(t, other/4, control16*tolerated16(slots))
			require.Greater(t, float/15, 5*tolerated16(slots))
		})
	}
}

// TestV3RouterMatchesTransformers: negative scores, so that a mask of 0 would win.
func TestV3RouterMatchesTransformers(t *testing.T) {
	r := openV2(t)
	x := gates["V3"]
	weight, bias := r.at(t, "v3/weight"), r.at(t, "v3/bias")[0]
	projection := engine.Tensor{Shape: []int{16, 16}, Data: narrow(weight...)}
	route := func(x engine.Experts) engine.Routing {
		router, err := reference.NewRouter(x, projection, narrow(bias))
		require.NoError(t, err)
		got, err := router.Route(bg, r.at(t, "v3/input"))
		require.NoError(t, err)
		return got
	}
	x.Gate.Fault = engine.GateMaskZero
	got, faulty := route(gates["V3"]), route(x)
	ids, weights, logits, flips := r.at(t, "v3/route_ids"), r.at(t, "v3/route_weights"), r.at(t, "v3/router_logits"), 0
	for i := range ids {
		gotIDs, gotWeights := byID(got.IDs[i], got.Weights[i])
		require.Equal(t, ids[i], gotIDs, "row %d", i)
		// Sums of 16 terms, a sigmoid and a sum of four.
		require.LessOrEqual(t, relL2(got.Logits[i], logits[i]), 16*step32)
		require.LessOrEqual(t, relL2(gotWeights, weights[i]), 32*step32)
		if other, _ := byID(faulty.IDs[i], faulty.Weights[i]); !slices.Equal(other, ids[i]) {
			flips++
		}
	}
	require.Greater(t, flips, len(ids)/2)
}
