package engine

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Func is a Go value as a candidate: what it declares, and a function that
// answers one case, which Evaluate calls from several goroutines at a time.
//
//	engine.Func{
//		Side: engine.Info{Name: "mine", Layers: engine.LayersFloat32},
//		Answer: func(ctx context.Context, req engine.Request) (*engine.Response, error) {
//			rows := mine.Run(req.Case.TokenIDs)
//			layers, err := engine.FloatRows(req.Case.Text, rows)
//			return &engine.Response{Layers: layers, PromptIDs: req.Case.TokenIDs}, err
//		},
//	}
//
// Places inside the model go into Response.Probes, one Matrix each over all
// positions:
//
//	probes := engine.ProbeValues{engine.Block(0, engine.PartQ): {Rows: len(req.Case.TokenIDs), Width: 64, Data: q}}
type Func struct {
	Side   Info
	Answer func(ctx context.Context, req Request) (*Response, error)
}

var _ Candidate = Func{}

// Info returns Side.
func (f Func) Info(ctx context.Context) (Info, error) { return f.Side, ctx.Err() }

// Run calls Answer. A panic and an answer that is nil are a *NoAnswerError: one
// case must not cost the others.
func (f Func) Run(ctx context.Context, req Request) (resp *Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, &NoAnswerError{Case: req.Case.Name, Why: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.Answer == nil {
		return nil, &NoAnswerError{Case: req.Case.Name, Why: "Func.Answer is nil"}
	}
	resp, err = f.Answer(ctx, req)
	if err == nil && resp == nil {
		err = &NoAnswerError{Case: req.Case.Name, Why: "got neither a response nor an error"}
	}
	return resp, err
}
