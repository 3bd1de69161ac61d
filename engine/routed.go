package engine

import "context"

// Routed is a reference of a model with routed experts: what its routers choose can
// be seen, and given.
type Routed interface {
	// CaptureProbes runs a prompt token by token, and along the tokens of output
	// behind it, and returns places at every position; the last token of output is
	// not run. ProbeLogits has as many rows as the others.
	CaptureProbes(ctx context.Context, ids, output []int, probes []Probe) (map[Probe]Matrix, error)
	// TraceBatch runs prompts as one batch, padded on the left with the token pad, and
	// hands each stage to each, in the order of computation. Positions are those of
	// the slots, padding included, and no prompt attends to padding.
	TraceBatch(ctx context.Context, prompts [][]int, pad int, each func(Stage) error) error
	// Logits applies the final norm and the head to one row of the residual stream.
	Logits(ctx context.Context, row []float64) ([]float64, error)
	// WithRoutes returns the same model, whose runs use given experts where the routes
	// have some and leave the others to the routers. A run of one sequence takes the
	// first routes, a batch one for each prompt; positions count a prompt's tokens,
	// and those behind it, padding not at all. Routes that don't fit are a
	// [*RouteError].
	WithRoutes(routes ...Routes) (Routed, error)
}

// GateRunner is a router without a model around it.
type GateRunner interface {
	// Route routes rows of the hidden size, [positions][hidden]: what the experts are
	// given, behind the norm.
	Route(ctx context.Context, rows [][]float64) (Routing, error)
}
