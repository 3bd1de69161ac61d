package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

type logitsFlags struct {
	promptFlags
	dump   string
	maxNew int
	stop   stopFlags
}

func newLogits(a *app) *cobra.Command {
	var f logitsFlags
	cmd := &cobra.Command{
		Use:   "logits {PROMPT | --ids 1,2,… | --case NAME.json} --model DIR --dump-logits FILE",
		Short: "Decode one prompt greedily with the reference, and keep every logit row",
		Long: `Runs the prompt through the reference in one batch and decodes greedily from there,
token by token with a KV cache. Each step takes the token of the largest logit, the
lowest id where several are equal; its row is kept as it was before that. The rows are
written as a float logit dump; the tokens, why the decode ended (1: at a stop id, which
is kept; 0: at --max-new) and their text go to standard output.

The text is without stop ids and special tokens, and has U+FFFD for what is no whole
character. --max-new 0 decodes nothing and writes a dump without rows.

` + promptHelp + ` A case's own stop ids end the decode, unless --stop is
given. --ids need no PROMPT.`,
		Example: `  plumbline logits "What is 12 + 15?" --model ./qwen2 --dump-logits out/sum.logits.bin
  plumbline logits "Hi" --system "Be brief." --max-new 32 --stop 2002,2000 --model ./qwen2 --dump-logits hi.logits.bin
  plumbline logits --case ref/capital.json --model ./qwen2 --dump-logits capital.logits.bin --json
  plumbline logits --ids 2001,340,198 --model ./qwen2 --dump-logits x.logits.bin`,
		Args: onePrompt,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := need([2]string{"dump-logits", f.dump}); err != nil {
				return err
			}
			if f.maxNew < 0 {
				return usageErrorf("--max-new: got %d, want 0 or more", f.maxNew)
			}
			if err := f.stop.check(cmd); err != nil {
				return err
			}
			if err := f.check(cmd, args); err != nil {
				return err
			}
			return runLogits(cmd.Context(), a, f)
		},
	}
	a.modelFlag(cmd, reference.Float32, dtypes())
	a.overwriteFlag(cmd)
	f.register(cmd)
	f.stop.register(cmd, "ids that end the decode")
	fl := cmd.Flags()
	fl.IntVar(&f.maxNew, "max-new", engine.DefaultMaxNew, "most tokens to decode")
	fl.StringVar(&f.dump, "dump-logits", "", "the logit dump to write; its folder is made")
	return cmd
}

func runLogits(ctx context.Context, a *app, f logitsFlags) error {
	if err := a.mayWrite("dump-logits", f.dump); err != nil {
		return err
	}
	q, err := f.ask(a, f.maxNew)
	if err != nil {
		return err
	}
	if q.Stop, err = f.stopIDs(a, q.Stop); err != nil {
		return err
	}
	ref, err := a.openReference()
	if err != nil {
		return err
	}
	return a.writeDecode(ctx, ref, q, f)
}

// stopIDs are the command line's, or the case's, or the default.
func (f *logitsFlags) stopIDs(a *app, own []int) ([]int, error) {
	ckpt, err := a.checkpoint()
	if err != nil {
		return nil, err
	}
	vocab := ckpt.Arch().Vocab
	if own == nil || f.stop.given {
		return f.stop.within(a, vocab)
	}
	if at, got, want := stopOutside(own, vocab); got != "" {
		return nil, fmt.Errorf("%s: stop[%d]: got %s, want %s", dumpfmt.Printable(f.caseFile), at, got, want)
	}
	return own, nil
}

// greedy is what logits needs of the reference.
type greedy interface {
	Describe() engine.Info
	Decode(ctx context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error)
}

// logitsResult is what --json prints.
type logitsResult struct {
	Dump         string `json:"dump"`
	PromptTokens int    `json:"prompt_tokens"`
	OutputIDs    []int  `json:"output_ids"`
	// StopReason is 1 when the last id is StopToken, one of Stop.
	StopReason  engine.StopReason `json:"stop_reason"`
	StopToken   *int              `json:"stop_token"`
	Stop        []int             `json:"stop"`
	WallSeconds float64           `json:"wall_time_seconds"`
	LogitRows   int               `json:"logit_rows"`
	Vocab       int               `json:"vocab"`
	// Decoded is null without a tokenizer, Fingerprint for ids without a text.
	Decoded     *string `json:"decoded"`
	Fingerprint *string `json:"prompt_fingerprint"`
	DType       string  `json:"dtype"`
	Engine      string  `json:"engine"`
}

// String is what the same run prints for people and scripts.
func (r *logitsResult) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompt_tokens: %d\n", r.PromptTokens)
	fmt.Fprintf(&b, "output_ids: %s\n", strings.Trim(fmt.Sprint(r.OutputIDs), "[]"))
	fmt.Fprintf(&b, "stop_reason: %d\n", r.StopReason)
	fmt.Fprintf(&b, "wall_time_seconds: %.3f\n", r.WallSeconds)
	fmt.Fprintf(&b, "logit_rows_dumped: %d rows x %d vocab -> %s\n", r.LogitRows, r.Vocab, r.Dump)
	fmt.Fprintf(&b, "---DECODED---\n%s\n", stringOr(r.Decoded, ""))
	return b.String()
}

// writeDecode decodes, writes the dump and tells the result.
func (a *app) writeDecode(ctx context.Context, ref greedy, q asked, f logitsFlags) error {
	task := a.progress().Start("logits", 2)
	defer task.End()
	began := time.Now()
	var d engine.Decoded
	if f.maxNew > 0 {
		var err error
		if d, err = ref.Decode(ctx, q.TokenIDs, engine.DecodeOptions{MaxNew: f.maxNew, Stop: q.Stop}); err != nil {
			return fmt.Errorf("logits: no dump written: %w", err)
		}
	}
	seconds := time.Since(began).Seconds()
	task.Step("decoded")
	info := ref.Describe()
	r := logitsResult{
		Dump: f.dump, PromptTokens: len(q.TokenIDs), OutputIDs: append([]int{}, d.OutputIDs...),
		StopReason: d.StopReason, Stop: q.Stop, WallSeconds: seconds, LogitRows: len(d.Logits),
		DType: info.DType, Engine: strings.TrimSpace(info.Name + " " + info.Version),
	}
	if d.StopReason == engine.StopToken {
		r.StopToken = &r.OutputIDs[len(r.OutputIDs)-1]
	}
	if len(d.Logits) > 0 {
		r.Vocab = len(d.Logits[0])
	}
	if q.hasText {
		print := fmt.Sprintf("0x%016X", dumpfmt.Fingerprint(q.Text))
		r.Fingerprint = &print
	}
	var err error
	if r.Decoded, err = a.detokenise(d.OutputIDs, q.Stop); err != nil {
		return fmt.Errorf("logits: no dump written: %w", err)
	}
	if err := a.writeLogits(f.dump, d.Logits, r.Vocab); err != nil {
		return fmt.Errorf("logits: no dump written: %w", err)
	}
	task.Step("written")
	task.End()
	if a.json {
		return a.emitJSON(r)
	}
	return a.emit([]byte(r.String()))
}

// writeLogits writes a dump; one without rows has no vocabulary either.
func (a *app) writeLogits(path string, rows [][]float64, vocab int) error {
	w, err := dumpfmt.CreateFloatLogits(path, dumpfmt.LogitHeader{Rows: len(rows), Vocab: vocab}, dumpfmt.WriteOptions{Overwrite: a.overwrite})
	if err != nil {
		return err
	}
	defer func() { _ = w.Abort() }()
	if err := asFloat32(rows, w.WriteRow); err != nil {
		return err
	}
	return w.Commit()
}
