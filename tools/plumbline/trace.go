package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden/trace"
)

type traceFlags struct {
	sources, output, capturedAt, report string
	domains                             []string
	perDomain                           int
	scale, attention, against           string
}

// The values of --scale, --attention and --against.
const (
	scaleOfficial, scaleTransformers = "official", "transformers"
	attentionFused, attentionEager   = "fused", "eager"
	againstNone                      = "none"
)

func newTrace(a *app) *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace --model DIR --sources FILE|DIR --output FILE",
		Short: "Trace every layer and router of a mixture of experts over texts in eight conditions",
		Long: `Runs texts through a mixture of experts, each under eight conditions (without and with a
system text, behind the tokens eos, bos, "x" and "."), one left-padded batch per text,
and writes the document of the script v2_lite_trace.py, schema_version 1: hidden
statistics and hashes of every stage, loads and weights of every router, ten pairs of
conditions compared on the tokens of the text alone, and their summary.

--sources is a JSONL file of {"id", "domain", "text"}, or a folder of DOMAIN.jsonl with
{"id", "text"}. A row may bring its own token ids, "variants": {CONDITION: {"token_ids",
"content_positions", "boundary_crossing_tokens"}}, which then count; where all rows do,
the model needs no tokenizer. --domains and --per-domain take some, in the order of the
file; without them all are run.

The result, on standard output, is the script's: output, sha256, bytes, counts, seconds.
The document appears when the last text is done; after Ctrl-C, or any error, there is
none. With the same --captured-at two documents differ in what the machine did alone
(plumbline trace compare).

--report DIR looks at each choice of experts: how close it was, the k-th minus the
k+1-th score, as a histogram, and by layer and condition where a second run, in
--against's arithmetic and with the same experts forced on it, would have chosen
others. A choice within the band of the arithmetic's own error is a TIE, above it a FLIP. The
band follows a percentile of that error, so a sound run has FLIPs: 66 of 44512 rows on a
27-layer random model, at most 2 in a cell. Suspicious is a layer or a condition that
stands out. The figures are printed on standard error; DIR gets trace.md, route-margins.svg, flips.svg.

--scale is the factor of attention scores of a DeepSeek-V2 with YaRN: the model's own
file multiplies 1/sqrt(d) by mscale², transformers' classes don't. --attention says where bfloat16
rounds in it: once (fused, torch's default there) or at every step (eager). The
document's execution block names both.`,
		Example: `  plumbline trace --model ./v2-lite-chat --sources sources --per-domain 4 --output trace.json
  plumbline trace --model ./v2-lite-chat --sources texts.jsonl --domains code,prose --output trace.json --report routes
  plumbline trace compare trace.json other.json`,
		Args: exactArgs(0, "sources and output are flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("per-domain") && f.perDomain < 1 {
				return usageErrorf("--per-domain: got %d, want at least 1", f.perDomain)
			}
			return a.trace(cmd.Context(), f)
		},
	}
	a.modelFlag(cmd, reference.BFloat16, dtypes())
	a.overwriteFlag(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.sources, "sources", "", "the texts: a JSONL file, or a folder of DOMAIN.jsonl")
	fl.StringVar(&f.output, "output", "", "the document to write")
	fl.StringSliceVar(&f.domains, "domains", nil, "the domains to trace, comma separated (default: all)")
	fl.IntVar(&f.perDomain, "per-domain", 0, "how many texts of each domain to trace (default: all)")
	fl.StringVar(&f.capturedAt, "captured-at", "", "the time that the document names (default: now)")
	fl.StringVar(&f.scale, "scale", scaleOfficial, "factor of attention scores: official or transformers")
	fl.StringVar(&f.attention, "attention", attentionFused, "where bfloat16 attention rounds: fused or eager")
	fl.StringVar(&f.report, "report", "", "folder, new or empty, for the report on routes")
	fl.StringVar(&f.against, "against", "", "the second run's arithmetic: float32, float64 or none (default: the next above --dtype)")
	cmd.AddCommand(newTraceCompare(a), newTraceRecorded(a))
	return cmd
}

// tracing is a trace being made.
type tracing struct {
	*app
	flags     traceFlags
	plan      trace.Plan
	selection trace.Selection
	ckpt      *reference.Checkpoint
	shape     trace.Shape
	hidden    trace.DType
	// words encodes texts; nil where all sources came tokenised and the model has no
	// tokenizer that can be used.
	words    *modelText
	boundary map[string]int
	pad      int
	started  time.Time

	start  func() (tracer, error) // opens the engine, and uploads its weights
	engine tracer
	acc    *trace.Accumulator
	routes *routeReport // nil without --report
}

func (a *app) trace(ctx context.Context, f traceFlags) error {
	t := &tracing{app: a, flags: f, plan: trace.Standard(), started: time.Now()}
	t.start = func() (tracer, error) { return t.newEngine() }
	return t.write(ctx)
}

// write makes the document and the report, or neither.
func (t *tracing) write(ctx context.Context) (err error) {
	f := &t.flags
	if err := t.check(); err != nil {
		return err
	}
	if err := t.open(); err != nil {
		return err
	}
	if err := t.checkSources(); err != nil {
		return err
	}
	var folder *newFolder
	if f.report != "" {
		if folder, err = startFolder(f.report, false); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
		defer func() { err = errors.Join(err, folder.discard()) }()
	}
	w, err := trace.NewWriter(f.output, t.plan, t.shape, t.hidden, dumpfmt.WriteOptions{Overwrite: t.overwrite})
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	defer w.Abort()
	head, err := t.head(ctx)
	if err != nil {
		return err
	}
	load, err := t.load()
	if err != nil {
		return err
	}
	if err := t.run(ctx, w); err != nil {
		return fmt.Errorf("trace: nothing written: %w", err)
	}
	if folder != nil {
		if err := t.routes.write(folder.temp); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	t.complete(&head, load)
	// The folder first: it was new or empty, so it can be taken back, while a document
	// may have replaced another.
	if folder != nil {
		if err := folder.publish(); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	done, err := w.Finish(head)
	if err != nil {
		if folder != nil {
			err = errors.Join(err, os.RemoveAll(folder.final))
		}
		return err
	}
	if folder != nil && !t.quiet {
		fmt.Fprint(t.stderr, t.routes.text())
	}
	return t.emitJSON(t.result(done, load))
}

// check looks at flags and paths, before anything is opened.
func (t *tracing) check() error {
	f := &t.flags
	if err := need([2]string{"sources", f.sources}, [2]string{"output", f.output}); err != nil {
		return err
	}
	if err := t.checkRuns(); err != nil {
		return err
	}
	if got, bad := unsound(f.capturedAt); bad {
		return usageErrorf("--captured-at: got %s, want %s", got, soundText)
	}
	if f.against != "" && f.report == "" {
		return usageErrorf("--against: got no --report, want the folder that its figures go to")
	}
	if err := t.checkPartner(); err != nil {
		return err
	}
	if err := t.mayWrite("output", f.output); err != nil {
		return err
	}
	if f.report != "" {
		if err := emptyOrNew("report", f.report); err != nil {
			return err
		}
		if err := apartPaths(f.output, f.report); err != nil {
			return err
		}
	}
	var err error
	t.selection, err = trace.ReadSources(f.sources, t.plan, trace.SourceOptions{Domains: f.domains, PerDomain: f.perDomain})
	if err != nil {
		return fmt.Errorf("--sources: %w", err)
	}
	return t.spareInputs()
}

// checkRuns looks at the flags that say how the model is run.
func (t *tracing) checkRuns() error {
	f := &t.flags
	if f.scale != scaleOfficial && f.scale != scaleTransformers {
		return usageErrorf("--scale: got %q, want %s or %s", f.scale, scaleOfficial, scaleTransformers)
	}
	if f.attention != attentionFused && f.attention != attentionEager {
		return usageErrorf("--attention: got %q, want %s or %s", f.attention, attentionFused, attentionEager)
	}
	_, err := t.referenceOptions()
	return err
}

// finer are the arithmetics that a run in the first is held to; the first of them
// is the default.
func finer(d reference.DType) []string {
	switch d {
	case reference.BFloat16:
		return []string{string(reference.Float32), string(reference.Float64)}
	case reference.Float32:
		return []string{string(reference.Float64)}
	}
	return nil
}

// checkPartner is the second run's arithmetic, the next finer one where nobody said.
func (t *tracing) checkPartner() error {
	f := &t.flags
	takes := append(finer(reference.DType(t.dtype)), againstNone)
	if f.against == "" {
		f.against = takes[0]
		return nil
	}
	for _, x := range takes {
		if f.against == x {
			return nil
		}
	}
	return usageErrorf("--against: got %q, want %s with --dtype %s", f.against, strings.Join(takes, " or "), t.dtype)
}

// traceResult is what is printed: the script's keys, and what the report found.
type traceResult struct {
	Output         string       `json:"output"`
	SHA256         string       `json:"sha256"`
	Bytes          int64        `json:"bytes"`
	Sources        int          `json:"sources"`
	Layers         int          `json:"decoder_layers"`
	Gates          int          `json:"moe_gates"`
	Decisions      int64        `json:"target_route_decisions"`
	LoadSeconds    float64      `json:"load_seconds"`
	ForwardSeconds float64      `json:"forward_seconds"`
	Peak           *int64       `json:"peak_cuda_memory_allocated_bytes"`
	Routes         *routeResult `json:"routes,omitempty"`
}

func (t *tracing) result(w trace.Written, load float64) traceResult {
	r := traceResult{
		Output: w.Path, SHA256: w.SHA256, Bytes: w.Bytes, Sources: w.Sources, Layers: t.shape.Layers, Gates: len(t.shape.Gates),
		Decisions: w.Summary.RouteDecisions, LoadSeconds: load, ForwardSeconds: w.ForwardSeconds, Peak: w.Peak,
	}
	if t.routes != nil {
		r.Routes = t.routes.result()
	}
	return r
}
