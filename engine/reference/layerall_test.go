package reference_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// otherRows are rows that no layer made.
func otherRows(n, width int, scale float64) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, width)
		for j := range out[i] {
			out[i][j] = scale * math.Sin(float64(7*i*width+3*j+1))
		}
	}
	return out
}

func TestLayerAllMatchesNaiveLoops(t *testing.T) {
	w := untied()
	w.arch.PerLayer[2].QueryOffset = 2
	a := w.arch
	for _, side := range []struct {
		dtype reference.DType
		bound float64
	}{{reference.Float32, logitBound(a)}, {reference.Float64, float64Bound}} {
		e := mustNew(t, w, reference.WithDType(side.dtype))
		for _, tokens := range []int{1, 9, 60} {
			for n := range a.Layers {
				in, mid := otherRows(tokens, a.Hidden, 0.7), otherRows(tokens, a.Hidden, 1.3)
				m, want := naive{a: a, w: w}, engine.LayerRun{}
				m.see = func(p engine.Probe, _ int, values []float64) {
					_, part, _ := p.Block()
					want[part] = append(want[part], values)
				}
				want[engine.PartResidPost] = m.layer(n, in)

				near := func(got engine.LayerRun, want engine.LayerRun) {
					t.Helper()
					require.Len(t, got, 10)
					for part, rows := range want {
						require.Len(t, got[part], tokens, "%s", part)
						for pos, row := range rows {
							if d := relL2(got[part][pos], row); !(d <= side.bound) {
								t.Errorf("%s: layer %d: %s: position %d: relative L2 %.3g, want at most %.3g", side.dtype, n, part, pos, d, side.bound)
							}
						}
					}
				}
				got, err := e.LayerAll(bg, n, in, nil)
				require.NoError(t, err)
				near(got, want)

				// The MLP half on other rows; all else stays.
				m.see = nil
				want[engine.PartMLPOut], want[engine.PartResidPost] = nil, nil
				load := func(s string) []float64 { return m.tensor(fmt.Sprintf("model.layers.%d.%s", n, s)) }
				for _, x := range mid {
					h := m.norm(x, load("post_attention_layernorm.weight"), a.PerLayer[n].NormEps)
					g, u := m.mul(load("mlp.gate_proj.weight"), h, nil), m.mul(load("mlp.up_proj.weight"), h, nil)
					for i := range g {
						g[i] = g[i] / (1 + math.Exp(-g[i])) * u[i]
					}
					out := m.mul(load("mlp.down_proj.weight"), g, nil)
					want[engine.PartMLPOut] = append(want[engine.PartMLPOut], out)
					post := append([]float64(nil), x...)
					for i, v := range out {
						post[i] += v
					}
					want[engine.PartResidPost] = append(want[engine.PartResidPost], post)
				}
				split, err := e.LayerAll(bg, n, in, mid)
				require.NoError(t, err)
				near(split, want)
				require.Equal(t, got[engine.PartResidMid], split[engine.PartResidMid])
			}
		}
	}
}

// On the rows of a run each layer gives the next rows of the run.
func TestLayerAllContinuesARun(t *testing.T) {
	w := untied()
	e, ids := mustNew(t, w), prompt(12, 50)
	got := probe(t, e, ids, nil, residual(w.arch)...)
	rows := func(i int) (out [][]float64) {
		m := got[engine.RowProbe(i)]
		for pos := range m.Rows {
			out = append(out, wide(m.Row(pos)))
		}
		return out
	}
	for n := range w.arch.Layers {
		run, err := e.LayerAll(bg, n, rows(n), nil)
		require.NoError(t, err)
		for pos, want := range rows(n + 1) {
			require.False(t, !(relL2(run[engine.PartResidPost][pos], want) <= logitBound(w.arch)), "layer %d, position %d", n, pos)
			if n > 0 { // and no other layer does
				require.Greater(t, relL2(run[engine.PartResidPost][pos], rows(n)[pos]), 1e-3)
			}
		}
	}
}

func TestLayerAllRefusals(t *testing.T) {
	w := untied()
	e, h := mustNew(t, w), w.arch.Hidden
	for want, c := range map[string]struct {
		n       int
		in, mid [][]float64
	}{
		fmt.Sprintf("reference: layer: got %d, want 0 to %d", w.arch.Layers, w.arch.Layers-1):     {w.arch.Layers, otherRows(2, h, 1), nil},
		fmt.Sprintf("reference: layer: got -1, want 0 to %d", w.arch.Layers-1):                    {-1, otherRows(2, h, 1), nil},
		"reference: layer 0: got 0 rows and 0 of resid_mid, want at least 1, and none or as many": {0, nil, nil},
		"reference: layer 1: got 2 rows and 3 of resid_mid, want at least 1, and none or as many": {1, otherRows(2, h, 1), otherRows(3, h, 1)},
		fmt.Sprintf("reference: row: got %d elements, want %d", h-1, h):                           {0, otherRows(2, h-1, 1), nil},
		fmt.Sprintf("reference: row: got %d elements, want %d", h+1, h):                           {0, otherRows(2, h, 1), otherRows(2, h+1, 1)},
	} {
		_, err := e.LayerAll(bg, c.n, c.in, c.mid)
		require.EqualError(t, err, want)
	}
}
