package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/tools/internal/progress"
)

// subcommands are the constructors, one file each. A new subcommand is one file
// and one entry here.
var subcommands = []func(*app) *cobra.Command{
	newBaseline,
	newBisect,
	newCapture,
	newDiff,
	newExplain,
	newGate,
	newInspect,
	newLayers,
	newLogits,
	newMargins,
	newReport,
	newRecord,
	newMerge,
	newSelftest,
	newTargets,
	newTrace,
	newVersion,
}

// modelEnv stands in for --model.
const modelEnv = "PLUMBLINE_MODEL"

// app is what the subcommands share: the two outputs and the shared flags.
type app struct {
	stdout, stderr io.Writer
	args           []string

	json, quiet    bool
	model, backend string // see modelFlag
	dtype          string
	dtypes         []reference.DType // what --dtype takes
	overwrite      bool              // see overwriteFlag
	colour         colourFlag

	shardOf // see shardFlags

	// What was opened of the model, see checkpoint and text.
	ckpt  *reference.Checkpoint
	words *modelText
}

// run is the whole program: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	// Ctrl-C ends the context; the writers of package dumpfmt then leave no half
	// file.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	a := &app{stdout: stdout, stderr: stderr, args: args}
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		a.complain(cmd, err)
	}
	if code := exitCode(err); (code == exitBroken || code == exitNotJudged) && asksGitBisect(args) {
		return exitBisectSkip
	}
	return exitCode(err)
}

func (a *app) complain(cmd *cobra.Command, err error) {
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		return // the results have said it
	}
	text := errorText(err)
	if errors.Is(err, context.Canceled) && cmd.Context() != nil && cmd.Context().Err() != nil {
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	fmt.Fprintf(a.stderr, "plumbline: %s\n", text)
	var u *usageError
	if errors.As(err, &u) {
		fmt.Fprintf(a.stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
}

func newRoot(a *app) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "plumbline",
		Short: "Does the engine still compute the model, and where is the first wrong number?",
		Long: `plumbline holds an inference engine to a float reference of the same checkpoint.

Exit codes of every command: 0 conforms or done; 1 does not conform (a malformed
candidate file included); 2 the run itself broke (bad flag, model or golden);
3 nothing, or a Core check nowhere, could be judged.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageErrorf("unknown command %q", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			if version {
				return a.version()
			}
			// Nothing was done, which must not look like success.
			return usageErrorf("no command given")
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageErrorf("%v", err) })
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print one JSON object instead of text")
	f.BoolVar(&a.quiet, "quiet", false, "no progress on standard error")
	a.colour.register(root)
	for _, sub := range subcommands {
		root.AddCommand(sub(a))
	}
	root.Flags().BoolVar(&version, "version", false, "which build this is")
	root.AddCommand(topics()...)
	root.SetHelpCommand(newHelp(a, root))
	addCompletion(root)
	return root
}

// dtypes are the arithmetics that --dtype takes; judging are those that bounds can
// be derived from.
func dtypes() []reference.DType {
	return []reference.DType{reference.Float32, reference.Float64, reference.BFloat16}
}

func judging() []reference.DType { return []reference.DType{reference.Float32, reference.Float64} }

// modelFlag adds the flags of a command that runs the reference: --model,
// --dtype, with its default and what it takes, and --backend.
func (a *app) modelFlag(cmd *cobra.Command, dtype reference.DType, takes []reference.DType) {
	// Commands share the app: that of the one that runs counts.
	value := string(dtype)
	cmd.PreRun = func(*cobra.Command, []string) { a.dtype, a.dtypes = value, takes }
	f := cmd.Flags()
	f.StringVar(&a.model, "model", "",
		"checkpoint: a Hugging Face folder, a hub cache folder with one snapshot, or a GGUF file; default $"+modelEnv)
	f.StringVar(&value, "dtype", value, "the reference's arithmetic: "+anyOf(takes))
	words := make([]string, len(takes))
	for i, t := range takes {
		words[i] = string(t)
	}
	_ = cmd.RegisterFlagCompletionFunc("dtype", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	f.StringVar(&a.backend, "backend", "",
		`the reference's GoMLX backend, as "go" or "go:OPTION,…"; default `+reference.DefaultBackend)
}

// overwriteFlag adds --overwrite to a command that writes files.
func (a *app) overwriteFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.overwrite, "overwrite", false, "replace existing output files")
}

// modelPath is --model, or what stands in for it; empty when neither is set.
func (a *app) modelPath() string {
	if a.model != "" {
		return a.model
	}
	return os.Getenv(modelEnv)
}

// progress returns the printer for work that may last.
func (a *app) progress() *progress.Printer { return progress.New(a.stderr, a.quiet) }

// commandLine is what was run, quoted for a shell; the model that the
// environment named is spelled out.
func (a *app) commandLine() string {
	args := append([]string{"plumbline"}, a.args...)
	if a.model == "" && a.modelPath() != "" {
		args = append(args, "--model", a.modelPath())
	}
	return shellJoin(args)
}
