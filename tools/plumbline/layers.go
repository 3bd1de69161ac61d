package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/tools/internal/selfcheck"
)

type layersFlags struct {
	promptFlags
	dump, probes string
}

func newLayers(a *app) *cobra.Command {
	f := layersFlags{promptFlags: promptFlags{needsText: true}}
	cmd := &cobra.Command{
		Use:   "layers {PROMPT | --case NAME.json} --model DIR --dump FILE",
		Short: "Capture the reference's residual stream for one prompt, self-checked",
		Long: `Runs the prompt through the reference token by token with a KV cache and writes the
last prompt token's embedding and its residual stream after every decoder layer
(raw, before the final norm) as a float layer dump.

Three checks come first, and no dump is written when one fails: the last row is
not the state after the final norm, but gives it; row 0 is the last token's
embedding; and a second composition of the same arithmetic has the same bits in
every row.

--probes writes all places inside the model but the logits too, float32 over all
positions of the prompt, from a further run that has to have the capture's bits.

` + promptHelp + ` The dump's fingerprint is that of the text.`,
		Example: `  plumbline layers "What is the capital of France?" --model ./qwen2 --dump out/capital.layers.bin
  plumbline layers --case prompts/capital.json --model ./qwen2 --dump out/capital.layers.bin
  plumbline layers "$(cat templated.txt)" --templated --ids 2001,340,198 --model ./qwen2 --dump out/x.layers.bin
  PLUMBLINE_MODEL=./qwen2 plumbline layers --case capital.json --dump x.layers.bin --json`,
		Args: onePrompt,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := need([2]string{"dump", f.dump}); err != nil {
				return err
			}
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return runLayers(cmd.Context(), a, f)
		},
	}
	a.modelFlag(cmd, reference.Float32, dtypes())
	a.overwriteFlag(cmd)
	f.register(cmd)
	cmd.Flags().StringVar(&f.dump, "dump", "", "the layer dump to write; its folder is made")
	cmd.Flags().StringVar(&f.probes, "probes", "", "a safetensors file to write, NAME.probes.safetensors in a dump folder")
	return cmd
}

// layersResult is what --json prints.
type layersResult struct {
	Dump        string   `json:"dump"`
	Rows        int      `json:"rows"`
	HiddenSize  int      `json:"hidden_size"`
	Fingerprint string   `json:"prompt_fingerprint"`
	CaptureMode int      `json:"capture_mode"`
	DType       string   `json:"dtype"`
	Engine      string   `json:"engine"`
	Checks      []string `json:"checks_passed"`
	// What --probes wrote.
	Probes    string `json:"probes,omitempty"`
	Count     int    `json:"probe_count,omitempty"`
	Positions int    `json:"probe_positions,omitempty"`
}

// probedReference is what layers needs of the reference.
type probedReference interface {
	engine.Reference
	prober
}

func runLayers(ctx context.Context, a *app, f layersFlags) error {
	if err := a.mayWrite("dump", f.dump); err != nil {
		return err
	}
	if f.probes != "" {
		if samePath(f.probes, f.dump) {
			return usageErrorf("--probes and --dump: got one file for both")
		}
		if err := a.mayWrite("probes", f.probes); err != nil {
			return err
		}
	}
	q, err := f.ask(a, 0)
	if err != nil {
		return err
	}
	ref, err := a.openReference()
	if err != nil {
		return err
	}
	return writeCapture(ctx, a, ref, q.Case, f)
}

// samePath reports whether two names are of one file, which may not be there yet.
func samePath(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && x == y
}

// writeCapture captures, checks and writes.
func writeCapture(ctx context.Context, a *app, ref probedReference, c engine.Case, f layersFlags) error {
	task := a.progress().Start("layers", 4)
	defer task.End()
	rows, lines, err := captureChecked(ctx, ref, c.TokenIDs, task.Step)
	var probes *probed
	if err == nil && f.probes != "" {
		probes, err = captureProbes(ctx, ref, c.TokenIDs, nil, hiddenProbes(ref.Weights().Arch()), rows)
	}
	if !a.json {
		if err := a.emit([]byte(strings.Join(lines, ""))); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("layers: no dump written: %w", err)
	}
	fingerprint := dumpfmt.Fingerprint(c.Text)
	if err := a.writeLayers(f, rows, fingerprint, probes); err != nil {
		return err
	}
	task.Step("written")
	task.End()
	if a.json {
		info := ref.Describe()
		r := layersResult{
			Dump: f.dump, Rows: len(rows), HiddenSize: len(rows[0]),
			Fingerprint: fmt.Sprintf("0x%016X", fingerprint), CaptureMode: dumpfmt.CaptureIncremental,
			DType: info.DType, Engine: strings.TrimSpace(info.Name + " " + info.Version),
			Checks: []string{"endpoint_self_check", "interior_row_oracle"},
		}
		if probes != nil {
			r.Probes, r.Count, r.Positions = f.probes, len(probes.names), probes.positions()
		}
		return a.emitJSON(r)
	}
	text := fmt.Sprintf("layer_dump_written: %d rows x %d hidden_size, prompt_fingerprint=0x%016X -> %s\n",
		len(rows), len(rows[0]), fingerprint, f.dump)
	if probes != nil {
		text += fmt.Sprintf("probes_written: %d probes x %s -> %s\n", len(probes.names), plural(probes.positions(), "position"), f.probes)
	}
	return a.emit([]byte(text))
}

// captureChecked captures the rows and runs the three checks. The lines report
// what was passed, also when a later check fails.
func captureChecked(ctx context.Context, ref engine.Reference, ids []int, step func(string)) (rows [][]float64, lines []string, err error) {
	trace, err := ref.Capture(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	rows = trace.Rows()
	if err := selfcheck.Finite(rows); err != nil {
		return nil, nil, err
	}
	step("captured")
	lines = append(lines, fmt.Sprintf("capture: token by token with a KV cache, one graph per layer, %d rows x %d hidden_size\n",
		len(rows), len(rows[0])))

	hidden, err := ref.LastHidden(ctx, ids)
	if err != nil {
		return nil, lines, err
	}
	embedding, err := ref.Embedding(ids[len(ids)-1])
	if err != nil {
		return nil, lines, err
	}
	norm, err := ref.FinalNorm(ctx, rows[len(rows)-1])
	if err != nil {
		return nil, lines, err
	}
	if err := selfcheck.Endpoint(rows, selfcheck.Ends{LastHidden: hidden, NormOfLast: norm, Embedding: embedding}); err != nil {
		return nil, lines, err
	}
	step("ends checked")
	lines = append(lines, fmt.Sprintf("endpoint_self_check: OK, row %d is not the state after the final norm, row 0 is the embedding of the last prompt token\n", len(rows)-1))

	oracle, err := ref.CaptureWholeStep(ctx, ids)
	if err != nil {
		return nil, lines, err
	}
	if err := selfcheck.Interior(rows, oracle); err != nil {
		return nil, lines, err
	}
	step("rows checked")
	lines = append(lines, fmt.Sprintf("interior_row_oracle: OK, all %d rows have the bits of the whole-step composition\n", len(rows)))
	return rows, lines, nil
}

// writeLayers writes the dump, and the probes if there are any.
func (a *app) writeLayers(f layersFlags, rows [][]float64, fingerprint uint64, probes *probed) error {
	o := dumpfmt.WriteOptions{Overwrite: a.overwrite}
	w, err := dumpfmt.CreateFloatLayers(f.dump,
		dumpfmt.LayerHeader{Rows: len(rows), Width: len(rows[0]), Fingerprint: fingerprint, Mode: dumpfmt.CaptureIncremental}, o)
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }()
	if err := asFloat32(rows, w.WriteRow); err != nil {
		return err
	}
	if probes != nil {
		p, err := dumpfmt.CreateSafetensors(f.probes, probes.specs(), nil, o)
		if err != nil {
			return err
		}
		defer func() { _ = p.Abort() }()
		if err := probes.write(p); err != nil {
			return err
		}
		if err := p.Commit(); err != nil {
			return err
		}
	}
	return w.Commit()
}
