package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/tools/internal/selfcheck"
)

type captureFlags struct {
	prompts, out, system string
	maxNew               int
	stop                 stopFlags
	noLogits             bool
	probes               string
	wanted               []engine.Probe // of probes
}

func newCapture(a *app) *cobra.Command {
	var f captureFlags
	cmd := &cobra.Command{
		Use:   "capture --model DIR --prompts FILE --out FOLDER",
		Short: "Capture the reference's rows and logits for many prompts as a dump folder",
		Long: `Runs every prompt of a JSONL file through the reference and writes a dump folder:
engine.json, and for each prompt NAME.json, NAME.layers.bin (the last prompt
token's residual stream, as plumbline layers captures it) and NAME.logits.bin (a
greedy decode: one prefill, then token by token, every logit row kept). Prompts
with a common prefix share its computation; every number has the bits of a run of
its own.

` + promptLines + ` "stop" is the
line's own list of ids that end the decode. NAME.json gets what was run: text, token_ids,
output_ids, decoded, stop, and the line's other keys.

--probes NAME,… writes places inside the model too, NAME.probes.safetensors: float32
over all positions of the prompt and of the output but its last token, which is never
run. The names are embed, final_norm, logits, and blocks.N.PART with PART attn_norm, q,
k, v, q_rope, k_rope, attn_out, resid_mid, mlp_out or resid_post, and of a layer with
experts router_logits, router_scores, route_ids, route_weights or shared_out;
blocks.*.PART stands for every layer's that has it, "all" for every place but the logits.

Each case passes the three self-checks of plumbline layers; one that doesn't is
not written, the others are, and the exit code is 2. The folder appears as a
whole, when the last case is done: after Ctrl-C, or any other error, there is
none, and a folder that --overwrite was to replace is as it was.`,
		Example: `  plumbline capture --model ./qwen2 --prompts prompts.jsonl --out ref
  plumbline capture --model ./qwen2 --prompts prompts.jsonl --out ref --max-new 32 --stop 2002,2000
  plumbline capture --model ./qwen2 --prompts prompts.jsonl --out ref --probes embed,blocks.*.resid_mid,final_norm
  plumbline gate --model ./qwen2 --candidate ref`,
		Args: exactArgs(0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.stop.check(cmd); err != nil {
				return err
			}
			return a.capture(cmd.Context(), f)
		},
	}
	a.modelFlag(cmd, reference.Float32, dtypes())
	a.overwriteFlag(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.prompts, "prompts", "", "the prompts, one JSON object a line")
	fl.StringVar(&f.out, "out", "", "the dump folder to write, new or empty")
	fl.IntVar(&f.maxNew, "max-new", engine.DefaultMaxNew, "most tokens to decode for each prompt")
	f.stop.register(cmd, "ids that end the decode of a line without its own")
	fl.StringVar(&f.system, "system", defaultSystem, "system prompt of a line without its own")
	fl.StringVar(&f.probes, "probes", "", "places inside the model to write too, comma separated")
	fl.BoolVar(&f.noLogits, "no-logits", false, "no decode, layer dumps only")
	return cmd
}

// capturer is what capture needs of the reference.
type capturer interface {
	Weights() engine.Weights
	Describe() engine.Info
	Embedding(id int) ([]float64, error)
	FinalNorm(ctx context.Context, row []float64) ([]float64, error)
	CaptureMany(ctx context.Context, prompts [][]int, o reference.ManyOptions, each func(reference.Captured) error) error
	Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error)
	prober
}

func (a *app) capture(ctx context.Context, f captureFlags) error {
	if err := need([2]string{"prompts", f.prompts}, [2]string{"out", f.out}); err != nil {
		return err
	}
	if f.maxNew < 1 {
		return usageErrorf("--max-new: got %d, want at least 1; --no-logits decodes nothing", f.maxNew)
	}
	if got, bad := unsound(f.system); bad {
		return usageErrorf("--system: got %s, want %s", got, soundText)
	}
	rows, err := a.readPrompts(f.prompts, f.system)
	if err != nil {
		return err
	}
	ckpt, err := a.checkpoint()
	if err != nil {
		return err
	}
	if !f.noLogits {
		if f.stop.ids, err = f.stop.within(a, ckpt.Arch().Vocab); err != nil {
			return err
		}
	}
	if f.probes != "" {
		if f.wanted, err = parseProbes(f.probes, ckpt.Arch()); err != nil {
			return err
		}
	}
	ref, err := a.openReference()
	if err != nil {
		return err
	}
	return a.capturePrompts(ctx, ref, rows, f)
}

// capturedCase is what a case's result says, in print and in JSON.
type capturedCase struct {
	Name        string             `json:"name"`
	Rows        int                `json:"rows,omitempty"`
	HiddenSize  int                `json:"hidden_size,omitempty"`
	Fingerprint string             `json:"prompt_fingerprint,omitempty"`
	LogitRows   int                `json:"logit_rows,omitempty"`
	OutputIDs   []int              `json:"output_ids,omitempty"`
	Decoded     *string            `json:"decoded,omitempty"`
	StopReason  *engine.StopReason `json:"stop_reason,omitempty"`
	Probes      int                `json:"probes,omitempty"`
	Positions   int                `json:"probe_positions,omitempty"`
	Shared      int                `json:"shared_tokens"`
	Tokens      int                `json:"prompt_tokens"`
	// Failed is the self-check that the case did not pass.
	Failed string `json:"failed,omitempty"`
}

func (c capturedCase) String() string {
	if c.Failed != "" {
		return fmt.Sprintf("%s: not written: %s\n", c.Name, c.Failed)
	}
	s := fmt.Sprintf("%s: %d rows x %d hidden_size, self-checks OK, %d of %d tokens shared", c.Name, c.Rows, c.HiddenSize, c.Shared, c.Tokens)
	if c.StopReason != nil {
		s += fmt.Sprintf(", %s, stop_reason %d, output_ids %s", plural(c.LogitRows, "logit row"), *c.StopReason,
			strings.Trim(fmt.Sprint(c.OutputIDs), "[]"))
	}
	if c.Probes > 0 {
		s += fmt.Sprintf(", %s x %s", plural(c.Probes, "probe"), plural(c.Positions, "position"))
	}
	return s + "\n"
}

func (a *app) capturePrompts(ctx context.Context, ref capturer, rows []promptRow, f captureFlags) (err error) {
	maxNew := f.maxNew
	if f.noLogits {
		maxNew = 0
	}
	if err := checkPrompts(f.prompts, rows, ref.Weights().Arch(), maxNew); err != nil {
		return err
	}
	folder, err := startFolder(f.out, a.overwrite)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer func() { err = errors.Join(err, folder.discard()) }()
	cases, failed, err := a.captureInto(ctx, ref, folder.temp, rows, f, "capture")
	if err != nil {
		return fmt.Errorf("capture: nothing written: %w", err)
	}
	if failed < len(rows) {
		if err := folder.publish(); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if err := a.reportCapture(f.out, cases, failed); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("capture: %d of %s not written: a self-check failed", failed, plural(len(rows), "case"))
	}
	return nil
}

// captureInto captures the prompts into a dump folder that is made here. A case that
// fails a self-check is left out, and says so.
func (a *app) captureInto(ctx context.Context, ref capturer, dir string, rows []promptRow, f captureFlags, what string) (cases []capturedCase, failed int, err error) {
	w, err := dumpfmt.CreateFolder(dir, describeCapture(ref.Describe(), f), dumpfmt.WriteOptions{})
	if err != nil {
		return nil, 0, err
	}
	task := a.progress().Start(what, len(rows))
	defer task.End()
	cases = make([]capturedCase, len(rows))
	prompts := make([][]int, len(rows))
	for i, r := range rows {
		prompts[i] = r.file.TokenIDs
	}
	err = ref.CaptureMany(ctx, prompts, reference.ManyOptions{Oracle: true}, func(c reference.Captured) error {
		out, err := a.writeCase(ctx, ref, w, rows[c.Index], c, f)
		var bad *selfcheck.Error
		if errors.As(err, &bad) {
			out.Failed, err = bad.Error(), nil
			failed++
		}
		cases[c.Index] = out
		task.Step(rows[c.Index].name)
		return err
	})
	return cases, failed, err
}

// captureResult is what --json prints.
type captureResult struct {
	Folder  string         `json:"folder"`
	Written int            `json:"written"`
	Failed  int            `json:"failed"`
	Checks  []string       `json:"checks"`
	Cases   []capturedCase `json:"cases"`
}

func (a *app) reportCapture(out string, cases []capturedCase, failed int) error {
	if a.json {
		return a.emitJSON(captureResult{Folder: out, Written: len(cases) - failed, Failed: failed,
			Checks: []string{"capture", "endpoint_self_check", "interior_row_oracle"}, Cases: cases})
	}
	var b strings.Builder
	for _, c := range cases {
		b.WriteString(c.String())
	}
	if failed < len(cases) {
		fmt.Fprintf(&b, "dump_folder_written: %d of %s -> %s\n", len(cases)-failed, plural(len(cases), "case"), out)
	}
	return a.emit([]byte(b.String()))
}
