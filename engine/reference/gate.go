package reference

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/plumbline-go/plumbline/engine"
)

// routed are the choices of a gate on T rows.
type routed struct {
	scores  *graph.Node // [T, experts]: what experts are chosen by
	ids     *graph.Node // [T, k], int32
	weights *graph.Node // [T, k]
}

// routerLogits are a router's on x [T, H], [T, experts]. Nothing of a router is
// rounded to bfloat16: the model computes it in float32.
func routerLogits(p params, e engine.Experts, x *graph.Node) *graph.Node {
	var r rounder
	r.bfloat16 = e.Gate.Fault == engine.GateBFloat16
	var blocks []*graph.Node
	for _, w := range p.slots["mlp.gate.weight"] {
		blocks = append(blocks, r.held(w))
	}
	return r.held(linearBlocks(r.held(x), blocks))
}

// gate chooses e.PerToken experts for each row of logits [T, experts]. bias
// [1, experts] is that of a sigmoid gate.
func gate(e engine.Experts, logits, bias *graph.Node) routed {
	out := routed{scores: expertScores(e.Gate, logits)}
	switch {
	case e.Gate.Scoring == engine.ScoringSigmoid:
		out.scores = graph.Add(out.scores, bias)
	case e.Gate.Fault == engine.GateSoftmaxChosen:
		out.scores = logits
	}
	if e.Gate.Groups > 0 {
		out.scores = inBestGroups(e.Gate, out.scores)
	}
	out.ids = best(out.scores, e.PerToken, e.Gate.Fault == engine.GateLastWins)
	out.weights = expertWeights(e, logits, out.ids)
	return out
}

// expertScores are the scores that weights are made of, [T, experts].
func expertScores(g engine.Gate, logits *graph.Node) *graph.Node {
	r := rounder{g.Fault == engine.GateBFloat16}
	if g.Scoring == engine.ScoringSigmoid {
		return r.held(graph.Sigmoid(logits))
	}
	return r.held(softmax(logits))
}

// expertWeights weighs the experts ids [T, k].
func expertWeights(e engine.Experts, logits, ids *graph.Node) *graph.Node {
	g := e.Gate
	var w *graph.Node
	if g.Fault == engine.GateSoftmaxChosen {
		w = softmax(pick(logits, ids))
	} else {
		w = pick(expertScores(g, logits), ids)
	}
	scaled := true
	if g.Normalise && e.PerToken > 1 {
		w = graph.Div(w, graph.AddScalar(graph.ReduceAndKeep(w, graph.ReduceSum, -1), 1e-20))
		scaled = g.Scoring == engine.ScoringSigmoid
	}
	if scaled && g.Scale != 1 {
		w = graph.MulScalar(w, g.Scale)
	}
	return w
}

// pick are the values [T, k] of x [T, n] at ids [T, k].
func pick(x, ids *graph.Node) *graph.Node {
	t, n, k := x.Shape().Dimensions[0], x.Shape().Dimensions[1], ids.Shape().Dimensions[1]
	at := graph.Equal(graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, t, k, n), 2),
		graph.BroadcastToDims(graph.Reshape(ids, t, k, 1), t, k, n))
	wide := graph.BroadcastToDims(graph.Reshape(x, t, 1, n), t, k, n)
	return graph.ReduceSum(graph.Where(at, wide, graph.ZerosLike(wide)), -1)
}

// best are the indices of the k largest values of each row of x [T, n], the
// largest first, int32. Of equal ones the lowest index comes first, or the highest
// with last.
func best(x *graph.Node, k int, last bool) *graph.Node {
	t, n := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	column := graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, t, n), 1)
	if last {
		x = graph.Reverse(x, 1)
	}
	ids := make([]*graph.Node, k)
	for i := range ids {
		id := graph.Reshape(graph.ArgMax(x, 1, dtypes.Int32), t, 1)
		x = masked(x, graph.NotEqual(column, graph.BroadcastToDims(id, t, n)))
		if ids[i] = id; last {
			ids[i] = graph.AddScalar(graph.Neg(id), float64(n-1))
		}
	}
	return graph.Concatenate(ids, 1)
}

// inBestGroups masks the scores [T, experts] of all groups but the best ones.
func inBestGroups(g engine.Gate, scores *graph.Node) *graph.Node {
	t, n := scores.Shape().Dimensions[0], scores.Shape().Dimensions[1]
	size := n / g.Groups
	grouped := graph.Reshape(scores, t*g.Groups, size)
	of := graph.ReduceMax(grouped, 1)
	if g.Scoring == engine.ScoringSigmoid {
		of = graph.ReduceSum(pick(grouped, best(grouped, 2, false)), 1)
	}
	chosen := best(graph.Reshape(of, t, g.Groups), g.TopGroups, g.Fault == engine.GateLastWins)
	dims := []int{t, g.TopGroups, g.Groups, size}
	group := graph.Iota(scores.Graph(), shapes.Make(dtypes.Int32, dims...), 2)
	hits := graph.Equal(group, graph.BroadcastToDims(graph.Reshape(chosen, t, g.TopGroups, 1, 1), dims...))
	count := graph.ReduceSum(graph.ConvertDType(hits, dtypes.Int32), 1)
	keep := graph.Reshape(graph.GreaterThan(count, graph.ZerosLike(count)), t, n)
	if g.Scoring == engine.ScoringSigmoid && g.Fault != engine.GateMaskZero {
		return masked(scores, keep)
	}
	return graph.Where(keep, scores, graph.ZerosLike(scores))
}
