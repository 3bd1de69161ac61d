package reference

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// layerKind is what makes the graphs of one layer others than those of another:
// all that isn't an input of theirs.
type layerKind struct {
	kvHeads, headDim, window int
	keyIsValue               bool
	skipNorm                 engine.Part
	foreignScales            bool
	linear                   bool // a gated DeltaNet: none of the above
	convLate                 bool
	ungated                  bool
}

func kindOf(a engine.Arch, n int) layerKind {
	l, f := a.PerLayer[n], a.Fault
	if l.Linear {
		return layerKind{linear: true, convLate: f.ConvLate && (f.ConvLayer < 0 || f.ConvLayer == n)}
	}
	return layerKind{
		kvHeads: a.KVHeadsOf(n), headDim: a.HeadDimOf(n), window: l.Window, keyIsValue: l.KeyIsValue, skipNorm: l.SkipNorm,
		foreignScales: l.ScaleShift != 0, ungated: l.GateMissing,
	}
}

// layerGraphs are the graphs of all layers of a kind; each is compiled by its
// first run per shape.
type layerGraphs struct {
	layerKind
	rounder
	inside rounder // attention's
	arch   engine.Arch
	kv     KVQuant
	slots  []slot

	decode, probed, prefill, chunk *graph.Exec
	batchPrefill, batchDecode      *graph.Exec
	rows, mlpRows                  *graph.Exec
}

// newLayerGraphs prepares the graphs of a kind of layers.
func (e *Engine) newLayerGraphs(kind layerKind) (*layerGraphs, error) {
	r := e.set.dtype.rounder()
	g := &layerGraphs{layerKind: kind, rounder: r, inside: r, arch: e.arch, kv: e.kv, slots: layerSlots(e.arch, kind)}
	if e.set.fused {
		g.inside = rounder{}
	}
	if g.linear {
		return g, e.prepare(g.deltaGraphs())
	}
	return g, e.prepare([]namedGraph{
		{&g.decode, "decode layer", g.decodeGraph},
		{&g.probed, "probed decode layer", g.probedGraph},
		{&g.prefill, "prefill layer", g.prefillGraph},
		{&g.rows, "layer on given rows", g.layerAllGraph},
		{&g.mlpRows, "MLP half on given rows", g.mlpAllGraph},
		{&g.chunk, "chunk layer", g.chunkGraph},
		{&g.batchPrefill, "batched prefill layer", g.batchPrefillGraph},
		{&g.batchDecode, "batched decode layer", g.batchDecodeGraph},
	})
}

type namedGraph struct {
	exec **graph.Exec
	name string
	fn   func([]*graph.Node) []*graph.Node
}

func (e *Engine) prepare(graphs []namedGraph) error {
	for _, g := range graphs {
		x, err := graph.NewExec(e.dev.backend, g.fn)
		if err != nil {
			return fmt.Errorf("reference: graph %s: %w", g.name, err)
		}
		*g.exec = x.WithName(g.name).SetMaxCache(-1)
	}
	return nil
}

// attention is how the layers' scores are made: what they are multiplied by, and
// how many positions a query attends to, 0 for all.
func (g *layerGraphs) attention() attention {
	return attention{rounder: g.rounder, inside: g.inside, times: families[g.arch.Family].scale(g.headDim), window: g.window}
}

// layer is the decoder layer of the family; see decoderLayer.
func (g *layerGraphs) layer(p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes {
	return families[g.arch.Family].layer(g, p, x, eps, rq, rk, attend)
}

// overRoot is the scale of scores in most families, 1/sqrt(headDim).
func overRoot(headDim int) float64 { return 1 / math.Sqrt(float64(headDim)) }
