package reference

import (
	"cmp"
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
	latent                   engine.Latent
	scoreFactor              float64
	experts                  engine.Experts
}

func kindOf(a engine.Arch, n int) layerKind {
	l, f := a.PerLayer[n], a.Fault
	if l.Linear {
		return layerKind{linear: true, convLate: f.ConvLate && (f.ConvLayer < 0 || f.ConvLayer == n)}
	}
	return layerKind{
		kvHeads: a.KVHeadsOf(n), headDim: a.HeadDimOf(n), window: l.Window, keyIsValue: l.KeyIsValue, skipNorm: l.SkipNorm,
		foreignScales: l.ScaleShift != 0, ungated: l.GateMissing,
		latent: a.Latent, scoreFactor: cmp.Or(l.ScoreFactor, 1), experts: l.Experts,
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

	// Of a layer with experts; see finish.
	chosen, expert, combine, weigh *graph.Exec
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
	graphs := []namedGraph{
		{&g.decode, "decode layer", g.decodeGraph},
		{&g.probed, "probed decode layer", g.probedGraph},
		{&g.prefill, "prefill layer", g.prefillGraph},
		{&g.rows, "layer on given rows", g.layerAllGraph},
		{&g.mlpRows, "MLP half on given rows", g.mlpAllGraph},
		{&g.chunk, "chunk layer", g.chunkGraph},
		{&g.batchPrefill, "batched prefill layer", g.batchPrefillGraph},
		{&g.batchDecode, "batched decode layer", g.batchDecodeGraph},
	}
	if kind.experts.Count > 0 {
		graphs = append(graphs, namedGraph{&g.chosen, "experts of one token", g.chosenGraph}, namedGraph{&g.expert, "one expert", g.expertGraph},
			namedGraph{&g.combine, "sum of experts", g.combineGraph}, namedGraph{&g.weigh, "weights of given experts", g.weighGraph})
	}
	return g, e.prepare(graphs)
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
// how many positions a query attends to, 0 for all. p are the layer's weights.
func (g *layerGraphs) attention(p params) attention {
	return attention{rounder: g.rounder, inside: g.inside, times: families[g.arch.Family].scale(g.headDim) * g.scoreFactor, window: g.window, unfold: g.unfold(p)}
}

// layer is the decoder layer of the family; see decoderLayer.
func (g *layerGraphs) layer(p params, x, eps *graph.Node, rq, rk rotary, attend func(q, k, v *graph.Node) *graph.Node) layerNodes {
	return families[g.arch.Family].layer(g, p, x, eps, rq, rk, attend)
}

// overRoot is the scale of scores in most families, 1/sqrt(headDim).
func overRoot(headDim int) float64 { return 1 / math.Sqrt(float64(headDim)) }
