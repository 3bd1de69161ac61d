package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/golden"
)

type recordFlags struct {
	from    string
	capture captureFlags
}

func newRecord(a *app) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record --model DIR --prompts FILE | --from FOLDER --out FOLDER",
		Short: "Record goldens of your own checkpoint, with their provenance",
		Long: `record writes a dump folder to gate your own model with, and beside it a manifest:
FOLDER.manifest.json, and its hash in FOLDER.manifest.json.sha256. The manifest names
who computed the values and in which arithmetic, the SHA-256 of every file, of the
checkpoint's files and of the prompts, and how far each row is from float64.

--from imports what a trusted float32 engine wrote, a folder of
tools/adapters/transformers for one. It is refused unless its files are well-formed,
its ids are those that the model's tokenizer makes of the texts, and the reference
comes to the same rows and logits, within the bound that a float32 golden has: a
golden that the float reference doesn't match is none, and the first layer that
differs is named. Probes and files of other kinds are left out.

--prompts has the reference itself run the lines of a JSONL file, with the self-checks
of plumbline capture. Such goldens show change, not truth: a later version of the
reference, another build or another machine is held to them, and the verdict says what
they are.

` + promptLines + `

gate --golden FOLDER holds the folder and the checkpoint to the manifest before
anything runs, and takes its cases: a changed file, one too many or another checkpoint
is named, and ends the run with exit code 2.

Folder and manifest appear as a whole or not at all.`,
		Example: `  plumbline record --model ./qwen2 --from ./transformers-dumps --out golden
  plumbline record --model ./qwen2 --prompts prompts.jsonl --out golden --max-new 16
  plumbline gate --model ./qwen2 --golden golden --candidate ./dumps`,
		Args: exactArgs(0, "none"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return a.record(cmd.Context(), f)
		},
	}
	a.modelFlag(cmd, reference.Float32, []reference.DType{reference.Float32})
	a.overwriteFlag(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", "", "dump folder of a trusted float32 engine, in place of --prompts")
	fl.StringVar(&f.capture.prompts, "prompts", "", "the prompts, one JSON object a line")
	fl.StringVar(&f.capture.out, "out", "", "the folder to write, new or empty")
	fl.IntVar(&f.capture.maxNew, "max-new", engine.DefaultMaxNew, "most tokens to decode for each prompt")
	f.capture.stop.register(cmd, "ids that end the decode of a line without its own")
	fl.StringVar(&f.capture.system, "system", defaultSystem, "system prompt of a line without its own")
	return cmd
}

// check refuses flags that mean nothing together.
func (f *recordFlags) check(cmd *cobra.Command) error {
	if err := f.capture.stop.check(cmd); err != nil {
		return err
	}
	if f.from != "" {
		for _, name := range []string{"prompts", "max-new", "stop", "system"} {
			if cmd.Flags().Changed(name) {
				return usageErrorf("--%s and --from: an imported folder has prompts and outputs of its own", name)
			}
		}
		if sameFolder(f.from, f.capture.out) {
			return usageErrorf("--out %s is --from: want another folder", f.capture.out)
		}
		return need([2]string{"out", f.capture.out})
	}
	if f.capture.prompts == "" {
		return usageErrorf("--prompts or --from is required")
	}
	if f.capture.maxNew < 1 {
		return usageErrorf("--max-new: got %d, want at least 1", f.capture.maxNew)
	}
	if got, bad := unsound(f.capture.system); bad {
		return usageErrorf("--system: got %s, want %s", got, soundText)
	}
	return need([2]string{"out", f.capture.out})
}

// recordedCase is what a case's result says.
type recordedCase struct {
	Name      string `json:"name"`
	Rows      int    `json:"rows"`
	LogitRows int    `json:"logit_rows"`
	// LayerError and LogitError are the largest over the rows, from float64.
	LayerError float64 `json:"layer_error"`
	LogitError float64 `json:"logit_error"`
}

// recordResult is what --json prints.
type recordResult struct {
	Folder   string                 `json:"folder"`
	Manifest string                 `json:"manifest"`
	Engine   golden.RecordedEngine  `json:"engine"`
	HeldTo   *golden.RecordedEngine `json:"reference,omitempty"`
	Cases    []recordedCase         `json:"cases"`
}

func (a *app) record(ctx context.Context, f recordFlags) (err error) {
	c := &f.capture
	out, err := a.startRecording(c.out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	defer func() { err = errors.Join(err, out.discard()) }()
	var rows []promptRow
	if f.from == "" {
		if rows, err = a.readPrompts(c.prompts, c.system); err != nil {
			return err
		}
	}
	ckpt, err := a.checkpoint()
	if err != nil {
		return err
	}
	ref, err := a.openReference()
	if err != nil {
		return err
	}
	r := &golden.Recording{Schema: golden.RecordingSchema, Set: out.base, Engine: recordedEngine(ref.Describe())}
	version, commit, _ := built()
	r.Tool = golden.RecordingTool{Name: "plumbline", Version: version, Commit: commit}
	if r.Checkpoint, err = hashCheckpoint(ckpt); err != nil {
		return err
	}
	if f.from != "" {
		err = a.importInto(ctx, ref, f.from, out.folder.temp, r)
	} else {
		err = a.recordInto(ctx, ref, rows, c, out.folder.temp, r)
	}
	if err != nil {
		return fmt.Errorf("record: nothing written: %w", err)
	}
	set, err := golden.NewRecording(os.DirFS(out.folder.temp), r)
	if err != nil {
		return fmt.Errorf("record: nothing written: %w", err)
	}
	if f.from != "" { // by its own figures, as every gate will hold it
		if err := a.holdToReference(ctx, ref, set, out.folder.temp); err != nil {
			return fmt.Errorf("record: nothing written: --from %s: %w", f.from, err)
		}
	}
	if err := out.publish(r); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return a.reportRecording(c.out, out, r)
}

// recordInto has the reference run the prompts.
func (a *app) recordInto(ctx context.Context, ref *reference.Engine, rows []promptRow, c *captureFlags, dir string, r *golden.Recording) (err error) {
	arch := ref.Weights().Arch()
	if err := checkPrompts(c.prompts, rows, arch, c.maxNew); err != nil {
		return err
	}
	if c.stop.ids, err = c.stop.within(a, arch.Vocab); err != nil {
		return err
	}
	cases, failed, err := a.captureInto(ctx, ref, dir, rows, *c, "record")
	if err != nil {
		return err
	}
	for _, k := range cases {
		if k.Failed != "" {
			return fmt.Errorf("case %s: %s (and %d more)", k.Name, k.Failed, failed-1)
		}
	}
	hash, err := golden.HashFiles(os.DirFS(filepath.Dir(c.prompts)), "", []string{filepath.Base(c.prompts)})
	if err != nil {
		return err
	}
	r.Prompts = &golden.PathHash{Path: filepath.Base(c.prompts), FileHash: hash.Files[filepath.Base(c.prompts)]}
	r.MaxNew = c.maxNew
	return a.measureRecording(ctx, ref, dir, r)
}

func recordedEngine(i engine.Info) golden.RecordedEngine {
	return golden.RecordedEngine{Name: i.Name, Version: i.Version, DType: i.DType}
}

func (a *app) reportRecording(folder string, out *newRecording, r *golden.Recording) error {
	result := recordResult{Folder: folder, Manifest: out.manifest, Engine: r.Engine, HeldTo: r.Reference}
	var b strings.Builder
	for _, name := range r.Cases {
		p := r.Precision.Cases[name]
		c := recordedCase{Name: name, Rows: len(p.Layers), LogitRows: len(p.Logits), LayerError: largest(p.Layers), LogitError: largest(p.Logits)}
		result.Cases = append(result.Cases, c)
		fmt.Fprintf(&b, "%s: %s, %s; from float64 at most %.2g in the rows, %.2g in the logits\n",
			dumpfmt.Printable(name), plural(c.Rows, "row"), plural(c.LogitRows, "logit row"), c.LayerError, c.LogitError)
	}
	fmt.Fprintf(&b, "recorded by: %s %s in %s\n", dumpfmt.Printable(r.Engine.Name), dumpfmt.Printable(r.Engine.Version), r.Engine.DType)
	if r.Reference != nil {
		fmt.Fprintf(&b, "held to: %s, every row and logit row within the bound of a float32 golden\n", r.Reference.Name)
	} else {
		fmt.Fprintln(&b, "worth: this reference's own recording shows change, not truth; --from imports another engine's")
	}
	fmt.Fprintf(&b, "golden_written: %s -> %s, %s\n", plural(len(r.Cases), "case"), folder, out.manifest)
	if a.json {
		return a.emitJSON(result)
	}
	return a.emit([]byte(b.String()))
}

func largest(xs []float64) (most float64) {
	for _, x := range xs {
		most = max(most, x)
	}
	return most
}
