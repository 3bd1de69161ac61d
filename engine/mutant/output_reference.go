package mutant

import (
	"context"
	"errors"
	"slices"

	"github.com/plumbline-go/plumbline/engine"
)

// spoiledOutput is a reference whose decodes have an output fault.
type spoiledOutput struct {
	engine.Reference
	m  Mutant
	at int
}

func (s spoiledOutput) Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error) {
	clean, err := s.Reference.Decode(ctx, ids, o)
	if err != nil || len(clean.Logits) == 0 {
		return clean, err
	}
	site := outputSite{at: s.at, stop: o.Stop, most: o.MaxNew, forced: o.Forced != nil,
		goOn: func(ctx context.Context, behind []int, n int, stop []int) (output, error) {
			return decodeOn(ctx, s.Reference, ids, behind, n, stop, o)
		}}
	switch {
	case site.forced:
		site.most = len(o.Forced)
	case site.most == 0:
		site.most = engine.DefaultMaxNew
	}
	out := outputOf(clean)
	if err := s.m.output(ctx, site, &out); err != nil {
		return engine.Decoded{}, s.m.errorf("decode: %w", err)
	}
	return engine.Decoded{OutputIDs: out.ids, Logits: out.rows, StopReason: out.reason}, nil
}

// DecodeBatch has the fault in each sequence. What goes on with another token is
// decoded alone.
func (s spoiledOutput) DecodeBatch(ctx context.Context, prompts, forced [][]int) ([][][]float64, error) {
	clean, err := s.Reference.DecodeBatch(ctx, prompts, forced)
	if err != nil {
		return nil, err
	}
	rows := make([][][]float64, len(clean))
	for i, c := range clean {
		out := outputOf(engine.Decoded{Logits: c})
		for _, row := range out.rows {
			out.ids = append(out.ids, chosen(row))
		}
		o := engine.DecodeOptions{Forced: forced[i]}
		site := outputSite{at: s.at, most: len(c), forced: true,
			goOn: func(ctx context.Context, behind []int, n int, stop []int) (output, error) {
				return decodeOn(ctx, s.Reference, prompts[i], behind, n, stop, o)
			}}
		if err := s.m.output(ctx, site, &out); err != nil {
			return nil, s.m.errorf("batch, sequence %d: %w", i, err)
		}
		rows[i] = out.rows
	}
	return rows, nil
}

// outputOf copies a decode, which others may have been given too.
func outputOf(d engine.Decoded) output {
	o := output{ids: slices.Clone(d.OutputIDs), reason: d.StopReason}
	for _, row := range d.Logits {
		o.rows = append(o.rows, slices.Clone(row))
	}
	return o
}

// decodeOn is an outputSite's goOn of a reference.
func decodeOn(ctx context.Context, ref engine.Reference, ids, behind []int, n int, stop []int, o engine.DecodeOptions) (output, error) {
	from := 0
	if o.Forced != nil {
		from = len(behind)
		o.Forced = slices.Concat(behind, o.Forced[from:])
	} else {
		ids = slices.Concat(ids, behind)
		o.MaxNew, o.Stop = n, stop
	}
	d, err := ref.Decode(ctx, ids, o)
	if err != nil {
		return output{}, err
	}
	if len(d.Logits) < from {
		return output{}, errors.New("got fewer rows than forced tokens")
	}
	out := outputOf(d)
	out.rows, out.ids = out.rows[from:], out.ids[from:]
	return out, nil
}
