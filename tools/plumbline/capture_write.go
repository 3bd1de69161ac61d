package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/tools/internal/selfcheck"
)

// writeCase checks one outcome, decodes, and writes the case. A *selfcheck.Error
// means that nothing of it was written.
func (a *app) writeCase(ctx context.Context, ref capturer, w *dumpfmt.FolderWriter, r promptRow, c reference.Captured, f captureFlags) (capturedCase, error) {
	ids, rows := r.file.TokenIDs, c.Trace.Rows()
	out := capturedCase{Name: r.name, Tokens: len(ids), Shared: c.Shared}
	embedding, err := ref.Embedding(ids[len(ids)-1])
	if err != nil {
		return out, err
	}
	if err := selfcheck.Finite(rows); err != nil {
		return out, err
	}
	norm, err := ref.FinalNorm(ctx, rows[len(rows)-1])
	if err != nil {
		return out, err
	}
	if err := selfcheck.Endpoint(rows, selfcheck.Ends{LastHidden: c.LastHidden, NormOfLast: norm, Embedding: embedding}); err != nil {
		return out, err
	}
	if err := selfcheck.Interior(rows, c.WholeRows); err != nil {
		return out, err
	}
	out.Rows, out.HiddenSize = len(rows), len(rows[0])
	out.Fingerprint = fmt.Sprintf("0x%016X", dumpfmt.Fingerprint(r.file.Text))

	file := r.file
	var logits [][]float64
	if !f.noLogits {
		if file.Stop == nil {
			file.Stop = f.stop.ids
		}
		d, err := ref.Decode(ctx, ids, engine.DecodeOptions{MaxNew: f.maxNew, Stop: file.Stop})
		if err != nil {
			return out, fmt.Errorf("%s: %w", r.name, err)
		}
		if file.Decoded, err = a.detokenise(d.OutputIDs, file.Stop); err != nil {
			return out, fmt.Errorf("%s: %w", r.name, err)
		}
		file.OutputIDs, logits = d.OutputIDs, d.Logits
		out.Decoded = file.Decoded
		out.OutputIDs, out.LogitRows, out.StopReason = d.OutputIDs, len(d.Logits), &d.StopReason
	}
	var probes *probed
	if len(f.wanted) > 0 {
		if probes, err = captureProbes(ctx, ref, ids, file.OutputIDs, f.wanted, rows); err != nil {
			return out, fmt.Errorf("%s: %w", r.name, err)
		}
		out.Probes, out.Positions = len(probes.names), probes.positions()
	}
	cw, err := w.Case(r.name, file)
	if err != nil {
		return out, err
	}
	if err := writeRows(cw, rows); err != nil {
		return out, err
	}
	if logits != nil {
		if err := writeLogits(cw, logits); err != nil {
			return out, err
		}
	}
	if probes != nil {
		if err := writeProbes(cw, probes); err != nil {
			return out, err
		}
	}
	return out, cw.Commit()
}

func writeRows(cw *dumpfmt.CaseWriter, rows [][]float64) error {
	d, err := cw.FloatLayers(len(rows), len(rows[0]))
	if err != nil {
		return err
	}
	defer func() { _ = d.Abort() }()
	if err := asFloat32(rows, d.WriteRow); err != nil {
		return err
	}
	return d.Commit()
}

func writeLogits(cw *dumpfmt.CaseWriter, rows [][]float64) error {
	d, err := cw.FloatLogits(dumpfmt.LogitHeader{Rows: len(rows), Vocab: len(rows[0])})
	if err != nil {
		return err
	}
	defer func() { _ = d.Abort() }()
	if err := asFloat32(rows, d.WriteRow); err != nil {
		return err
	}
	return d.Commit()
}

func writeProbes(cw *dumpfmt.CaseWriter, p *probed) error {
	w, err := cw.Probes(p.specs())
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }()
	if err := p.write(w); err != nil {
		return err
	}
	return w.Commit()
}

// describeCapture is the folder's engine.json.
func describeCapture(i engine.Info, f captureFlags) dumpfmt.EngineFile {
	e := dumpfmt.EngineFile{
		Name: i.Name, Version: i.Version, Layers: i.Layers, Logits: i.Logits, DType: i.DType,
		Weights: i.Weights, Activations: i.Activations, KVCache: i.KVCache, Model: i.Model,
		Extra: map[string]json.RawMessage{"capture": json.RawMessage(`"token by token, one graph per layer"`)},
	}
	positions := "every position but the last output token's"
	if f.noLogits {
		positions = "every position"
	}
	if f.probes != "" {
		e.Probes = "f32, " + positions + ": " + f.probes
	}
	if f.noLogits {
		e.Logits = ""
	} else {
		e.Extra["decode"] = json.RawMessage(`"greedy: one prefill, then token by token"`)
	}
	return e
}
