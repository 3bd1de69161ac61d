package quant

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// EmulateLayer implements engine.Yardstick: decoder layer n on the residual rows
// in, [positions][hidden], of the positions from 0 on. The result has every part
// but a router's, each in memory of its own.
//
// The rows of in and mid are taken as they are: a scheme with RowsInt8 rounds
// only the resid_mid and resid_post of the result. k_rope and v are what the KV
// cache is given, and not what it keeps: an engine has them in float before it
// stores them. In the same way attn_norm and attn_out are the linears' inputs
// before they are rounded. With mid, resid_mid is still the one that follows from
// in.
//
// A planted fault acts as on a prompt of len(in) tokens. A wrong n, or rows of
// another length or number, are the caller's mistake and an error.
func (e *Emulation) EmulateLayer(ctx context.Context, scheme engine.Scheme, n int, in, mid [][]float64) (engine.LayerRun, error) {
	if err := e.check(scheme); err != nil {
		return nil, err
	}
	if err := e.checkLayer(n, in, mid); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("quant: layer %d: %w", n, err)
	}
	l, err := e.prepared(scheme).layers[n]()
	if err != nil {
		return nil, err
	}
	p, out := newPass(e.arch, e.opt, scheme, len(in)), engine.LayerRun{}
	p.tap = func(_ int, part engine.Part, x []float64) { out[part] = rowsOf(x, len(in)) }
	p.begin(0, len(in))
	p.fill(in)
	if err := p.attentionHalf(n, l, new(kv)); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("quant: layer %d: MLP: %w", n, err)
	}
	if mid != nil {
		p.fill(mid)
	}
	if err := p.mlpHalf(n, l); err != nil {
		return nil, err
	}
	return out, nil
}

// EmulateEmbedding implements engine.Yardstick: [tokens][hidden], rounded as the
// scheme's table is and, with RowsInt8, per row. The tokens count as a prompt
// where a planted fault asks.
func (e *Emulation) EmulateEmbedding(ctx context.Context, scheme engine.Scheme, ids []int) ([][]float64, error) {
	s, err := e.start(scheme, ids, false)
	if err != nil {
		return nil, err
	}
	if err := s.check(ids); err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("quant: %w", err)
	}
	if err := s.embed(ids); err != nil {
		return nil, err
	}
	return rowsOf(s.p.x, len(ids)), nil
}

func (e *Emulation) checkLayer(n int, in, mid [][]float64) error {
	switch {
	case n < 0 || n >= e.arch.Layers:
		return fmt.Errorf("quant: layer: got %d, want 0 to %d", n, e.arch.Layers-1)
	case len(in) == 0:
		return fmt.Errorf("quant: layer %d: got no input rows, want at least one", n)
	case mid != nil && len(mid) != len(in):
		return fmt.Errorf("quant: layer %d: resid_mid: got %d rows, want %d as in the input", n, len(mid), len(in))
	}
	for _, rows := range []struct {
		what string
		rows [][]float64
	}{{"input", in}, {"resid_mid", mid}} {
		for t, row := range rows.rows {
			if len(row) != e.arch.Hidden {
				return fmt.Errorf("quant: layer %d: %s: row %d: got %d values, want %d", n, rows.what, t, len(row), e.arch.Hidden)
			}
		}
	}
	return nil
}

// fill makes rows the residual stream.
func (p *pass) fill(rows [][]float64) {
	for t, row := range rows {
		copy(p.x[t*p.arch.Hidden:], row)
	}
}

// rowsOf copies x [n, width].
func rowsOf(x []float64, n int) [][]float64 {
	flat, width := append([]float64(nil), x...), len(x)/n
	rows := make([][]float64, n)
	for t := range rows {
		rows[t] = flat[t*width : (t+1)*width : (t+1)*width]
	}
	return rows
}
