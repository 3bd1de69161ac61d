package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/tools/internal/selfcheck"
)

type layersFlags struct {
	system, ids, caseFile, dump string
}

func newLayers(a *app) *cobra.Command {
	var f layersFlags
	cmd := &cobra.Command{
		Use:   "layers {PROMPT --ids 1,2,… | --case NAME.json} --model DIR --dump FILE",
		Short: "Capture the reference's residual stream for one prompt, self-checked",
		Long: `Runs the prompt through the reference token by token with a KV cache and writes the
last prompt token's embedding and its residual stream after every decoder layer
(raw, before the final norm) as a float layer dump.

Three checks come first, and no dump is written when one fails: the last row is
not the state after the final norm, but gives it; row 0 is the last token's
embedding; and a second composition of the same arithmetic has the same bits in
every row.

PROMPT is, until plumbline has a tokenizer, the already templated text: its
fingerprint goes into the dump, --ids are run. With --case, the case file's text
and token_ids are used.`,
		Example: `  plumbline layers --case prompts/capital.json --model ./qwen2 --dump out/capital.layers.bin
  plumbline layers "$(cat templated.txt)" --ids 151644,8948,198 --model ./qwen2 --dump out/x.layers.bin
  PLUMBLINE_MODEL=./qwen2 plumbline layers --case capital.json --dump x.layers.bin --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("got %s, want one PROMPT", plural(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("system") {
				return usageErrorf("--system needs a chat template, which isn't there yet: PROMPT is the already templated text")
			}
			c, err := f.prompt(args)
			if err != nil {
				return err
			}
			return runLayers(cmd.Context(), a, c, f.dump)
		},
	}
	a.modelFlag(cmd)
	a.overwriteFlag(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.system, "system", "", "system prompt of the chat template; refused as long as there is none")
	fl.StringVar(&f.ids, "ids", "", "the prompt's token ids, comma separated")
	fl.StringVar(&f.caseFile, "case", "", "NAME.json of a dump folder, in place of PROMPT and --ids")
	fl.StringVar(&f.dump, "dump", "", "the layer dump to write; its folder is made")
	return cmd
}

// prompt is what the command line asks to run.
func (f *layersFlags) prompt(args []string) (engine.Case, error) {
	if err := need([2]string{"dump", f.dump}); err != nil {
		return engine.Case{}, err
	}
	if f.caseFile != "" {
		if len(args) > 0 || f.ids != "" {
			return engine.Case{}, usageErrorf("--case brings text and ids of its own: got PROMPT or --ids beside it")
		}
		c, err := dumpfmt.ReadCaseFile(f.caseFile)
		return engine.Case{Name: f.caseFile, Text: c.Text, TokenIDs: c.TokenIDs}, err
	}
	switch {
	case len(args) == 0 && f.ids != "":
		return engine.Case{}, usageErrorf("--ids without PROMPT: the dump's fingerprint is that of the templated text")
	case len(args) == 0:
		return engine.Case{}, usageErrorf("no prompt: give PROMPT with --ids, or --case")
	case f.ids == "":
		return engine.Case{}, usageErrorf("PROMPT without --ids: plumbline has no tokenizer yet, give the templated text and its ids")
	}
	ids, err := parseIDs(f.ids)
	return engine.Case{Name: "PROMPT", Text: args[0], TokenIDs: ids}, err
}

func parseIDs(s string) ([]int, error) {
	var ids []int
	for i, field := range strings.Split(s, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(field), 10, 32)
		if err != nil || id < 0 {
			return nil, usageErrorf("--ids: element %d: got %q, want a token id", i, field)
		}
		ids = append(ids, int(id))
	}
	return ids, nil
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
}

func runLayers(ctx context.Context, a *app, c engine.Case, path string) error {
	if err := a.mayWrite(path); err != nil {
		return err
	}
	ref, err := a.openReference()
	if err != nil {
		return err
	}
	return writeCapture(ctx, a, ref, c, path)
}

// writeCapture captures, checks and writes.
func writeCapture(ctx context.Context, a *app, ref engine.Reference, c engine.Case, path string) error {
	task := a.progress().Start("layers", 4)
	defer task.End()
	rows, lines, err := captureChecked(ctx, ref, c.TokenIDs, task.Step)
	if !a.json {
		if err := a.emit([]byte(strings.Join(lines, ""))); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("layers: no dump written: %w", err)
	}
	fingerprint := dumpfmt.Fingerprint(c.Text)
	if err := a.writeLayers(path, rows, fingerprint); err != nil {
		return err
	}
	task.Step("written")
	task.End()
	if a.json {
		info := ref.Describe()
		return a.emitJSON(layersResult{
			Dump: path, Rows: len(rows), HiddenSize: len(rows[0]),
			Fingerprint: fmt.Sprintf("0x%016X", fingerprint), CaptureMode: dumpfmt.CaptureIncremental,
			DType: info.DType, Engine: strings.TrimSpace(info.Name + " " + info.Version),
			Checks: []string{"endpoint_self_check", "interior_row_oracle"},
		})
	}
	return a.emit(fmt.Appendf(nil, "layer_dump_written: %d rows x %d hidden_size, prompt_fingerprint=0x%016X -> %s\n",
		len(rows), len(rows[0]), fingerprint, path))
}

// mayWrite finds an existing file, or a folder of that name, before the work,
// not after it. The writer
// checks again.
func (a *app) mayWrite(path string) error {
	st, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--dump: %w", err)
	}
	if strings.HasSuffix(path, string(filepath.Separator)) || err == nil && !st.Mode().IsRegular() {
		kind := "a folder"
		if err == nil && !st.IsDir() {
			kind = "no regular file (" + st.Mode().Type().String() + ")"
		}
		return fmt.Errorf("--dump %s: got %s, want a file to write", dumpfmt.Printable(path), kind)
	}
	if a.overwrite {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%w: --overwrite replaces it", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	return nil
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

// writeLayers writes the rows as float32, which loses nothing of a float32 run.
func (a *app) writeLayers(path string, rows [][]float64, fingerprint uint64) error {
	w, err := dumpfmt.CreateFloatLayers(path,
		dumpfmt.LayerHeader{Rows: len(rows), Width: len(rows[0]), Fingerprint: fingerprint, Mode: dumpfmt.CaptureIncremental},
		dumpfmt.WriteOptions{Overwrite: a.overwrite})
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }()
	row := make([]float32, len(rows[0]))
	for _, r := range rows {
		for i, x := range r {
			row[i] = float32(x)
		}
		if err := w.WriteRow(row); err != nil {
			return err
		}
	}
	return w.Commit()
}
