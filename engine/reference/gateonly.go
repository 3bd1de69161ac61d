package reference

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// Router is a router without a model around it, for either gate. It is safe for
// concurrent use.
type Router struct {
	experts engine.Experts
	hidden  int
	set     settings
	dev     device
	weights []*tensors.Tensor // the projection's and, of a sigmoid gate, the bias

	rows, logits *graph.Exec
}

// NewRouter makes a router of its projection [x.Count, hidden] and, for a sigmoid
// gate, of its bias per expert; a softmax gate has none. Of x the shared experts
// and the width don't matter. What can't be computed is an [*engine.ConfigError].
func NewRouter(x engine.Experts, projection engine.Tensor, bias []float32, opts ...Option) (*Router, error) {
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	bad := func(what, got, want string) error {
		return &engine.ConfigError{File: "router", What: what, Got: got, Want: want}
	}
	x.Shared, x.Intermediate = 0, 1
	if got, want := checkExperts(x); got != "" {
		return nil, bad("experts", got, want)
	}
	if len(projection.Shape) != 2 || projection.Shape[0] != x.Count || len(projection.Data) != x.Count*projection.Shape[1] || len(projection.Data) == 0 {
		return nil, bad("projection", fmt.Sprintf("%d values of shape %v", len(projection.Data), projection.Shape), fmt.Sprintf("shape [%d, hidden]", x.Count))
	}
	want := 0
	if x.Gate.Scoring == engine.ScoringSigmoid {
		want = x.Count
	}
	if len(bias) != want {
		return nil, bad("bias", fmt.Sprintf("%d values", len(bias)), fmt.Sprint(want))
	}
	backend, err := newBackend(set.backend)
	if err != nil {
		return nil, err
	}
	r := &Router{experts: x, hidden: projection.Shape[1], set: set, dev: device{backend, set.dtype}}
	if r.weights, err = uploadSlot(r.dev, r.slots()[0], projection.Data); err != nil {
		return nil, err
	}
	if want > 0 {
		ts, err := uploadSlot(r.dev, r.slots()[1], bias)
		if err != nil {
			return nil, err
		}
		r.weights = append(r.weights, ts...)
	}
	e := Engine{dev: r.dev}
	return r, e.prepare([]namedGraph{{&r.rows, "router", r.rowsGraph}, {&r.logits, "gate", r.logitsGraph}})
}

func (r *Router) slots() []slot {
	all := []slot{{"mlp.gate.weight", []int{r.experts.Count, r.hidden}}}
	if r.experts.Gate.Scoring == engine.ScoringSigmoid {
		all = append(all, slot{"mlp." + gateBias, []int{r.experts.Count}})
	}
	return all
}

// rowsGraph routes rows [T, hidden], and logitsGraph logits [T, experts]. The
// outputs are the logits, the scores, the ids and the weights.
func (r *Router) rowsGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	p := c.params(rounder{}, r.slots())
	return r.gate(p, routerLogits(p, r.experts, x))
}

func (r *Router) logitsGraph(in []*graph.Node) []*graph.Node {
	c := cursor{in}
	x := c.take()
	return r.gate(c.params(rounder{}, r.slots()), x)
}

func (r *Router) gate(p params, logits *graph.Node) []*graph.Node {
	var bias *graph.Node
	if r.experts.Gate.Scoring == engine.ScoringSigmoid {
		bias = p.vector("mlp." + gateBias)
	}
	g := gate(r.experts, logits, bias)
	return []*graph.Node{logits, g.scores, g.ids, g.weights}
}

// Route routes rows of the hidden size, [positions][hidden]: what the experts are
// given, behind the norm.
func (r *Router) Route(ctx context.Context, rows [][]float64) (engine.Routing, error) {
	return r.run(ctx, r.rows, rows, r.hidden)
}

// RouteLogits goes on behind given logits, [positions][experts].
func (r *Router) RouteLogits(ctx context.Context, logits [][]float64) (engine.Routing, error) {
	return r.run(ctx, r.logits, logits, r.experts.Count)
}

func (r *Router) run(ctx context.Context, exec *graph.Exec, rows [][]float64, width int) (engine.Routing, error) {
	if len(rows) == 0 {
		return engine.Routing{}, errors.New("reference: router: got no rows, want at least 1")
	}
	var all []float64
	for i, row := range rows {
		if len(row) != width {
			return engine.Routing{}, fmt.Errorf("reference: router: row %d: got %d elements, want %d", i, len(row), width)
		}
		all = append(all, row...)
	}
	return guard(ctx, r.set.stepDeadline, func(*progress) (engine.Routing, error) {
		x, err := upload(r.dev, all, len(rows), width)
		if err != nil {
			return engine.Routing{}, err
		}
		out, err := call(exec, appendTensors([]any{x}, r.weights))
		if err != nil {
			return engine.Routing{}, err
		}
		var res engine.Routing
		if res.Logits, err = unstack(out[0], len(rows)); err != nil {
			return engine.Routing{}, err
		}
		if res.Scores, err = unstack(out[1], len(rows)); err != nil {
			return engine.Routing{}, err
		}
		if res.IDs, err = downloadIDs(out[2], len(rows)); err != nil {
			return engine.Routing{}, err
		}
		res.Weights, err = unstack(out[3], len(rows))
		return res, err
	})
}
