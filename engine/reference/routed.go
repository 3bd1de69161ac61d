package reference

import "github.com/plumbline-go/plumbline/engine"

var (
	_ engine.Routed     = (*Engine)(nil)
	_ engine.GateRunner = (*Router)(nil)
)

// WithRoutes is [Engine.Forced] as an [engine.Routed] has it.
func (e *Engine) WithRoutes(routes ...engine.Routes) (engine.Routed, error) {
	view, err := e.Forced(routes...)
	if err != nil {
		return nil, err
	}
	return view, nil
}
