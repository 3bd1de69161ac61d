package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
)

// programFlags say how a program is run as the candidate.
type programFlags struct {
	line           string
	protocol       bool
	shell          bool
	timeout        time.Duration
	layers, logits string
	given          []string // those of the flags below that were given
}

// programHelp is what a command's help says about them.
const programHelp = `--exec runs a program as the candidate, once per case. The command line is taken
apart without a shell (--shell asks for one); in its arguments are replaced:
  {ids}        the token ids, comma-separated    {layers}  where the layer dump goes
  {ids_file}   a file of ids, one per line       {logits}  where the logit dump goes
  {text_file}  a file with the templated prompt  {probes}  where the probes go
  {probe_names}  wanted probes, comma-separated  {dir}     the folder of all three; there
               go engine.json and case.json (output_ids) too
{{word}} stands for {word}. The types of the dumps are declared by the engine.json
that the program writes, or by --layers and --logits. Exit code 0 says that the
answer is complete, 77 that the case is unsupported (the last line of standard
error says why), anything else that there is none.

--protocol keeps one process, which answers lines of JSON on its standard input
with one line each:
  {"plumbline":1}  →  {"plumbline":1,"name":"mine","layers":"f32","smoke":true}
  {"case":"a","token_ids":[1,2],"text":"…","decode_steps":8,"stop":[],"probes":[],
   "out":{"dir":"…","layers":"…","logits":"…","probes":"…"}}
                   →  {"ok":true} or {"unsupported":"why"} or {"error":"what"}

A program that takes longer than --timeout is ended, with what it started.`

// smokeHelp says how a program serves the fakes.
const smokeHelp = `The two fakes are prompts that no model sees. The program knows them by their
token ids, or with --protocol by their names:
  1,2,3,4,5  plumbline-smoke        row 0 of the layers: 1 2 3 4 5, row 1: -1 -2 -3 -4 -5;
                                    one row of logits: 1 2 3 4 5
  5,4,3,2,1  plumbline-smoke-wrong  the same of its own ids, each value one more:
                                    row 0: 6 5 4 3 2, row 1: -4 -3 -2 -1 0; logits 6 5 4 3 2
int8 rows are those codes with the scale 1073741824*2^-30. The layers' fingerprint
is that of the text, as for any prompt. A right answer must be read as right, a
wrong one must be seen as wrong.`

func (f *programFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.line, "exec", "", "command line of the program under test")
	fl.BoolVar(&f.protocol, "protocol", false, "the program speaks JSON lines, one process for all cases")
	fl.BoolVar(&f.shell, "shell", false, "give the command line to /bin/sh")
	fl.DurationVar(&f.timeout, "timeout", engine.DefaultTimeout, "deadline of the program for each case")
	fl.StringVar(&f.layers, "layers", "", "type of its layer dumps, f32 or int8-scaled, where no engine.json says it")
	fl.StringVar(&f.logits, "logits", "", "type of its logit dumps, f32 or i32, where no engine.json says it")
}

// check refuses flags that mean nothing together.
func (f *programFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"protocol", "shell", "timeout", "layers", "logits"} {
		if cmd.Flags().Changed(name) {
			f.given = append(f.given, name)
			if f.line == "" {
				return usageErrorf("--%s needs --exec", name)
			}
		}
	}
	switch {
	case f.line == "":
		return nil
	case f.timeout <= 0:
		return usageErrorf("--timeout: got %v, want more than 0", f.timeout)
	case f.layers != "" && f.layers != engine.LayersFloat32 && f.layers != engine.LayersInt8Scaled:
		return usageErrorf("--layers: got %q, want f32 or int8-scaled", f.layers)
	case f.logits != "" && f.logits != engine.LogitsFloat32 && f.logits != engine.LogitsInt32:
		return usageErrorf("--logits: got %q, want f32 or i32", f.logits)
	case f.protocol && f.layers+f.logits != "":
		return usageErrorf("--layers and --logits: with --protocol the handshake says it")
	}
	return nil
}

// program is a candidate that may have to be closed.
type program struct {
	engine.Candidate
	close func() error
	// servesFakes tells whether the program says that it knows the fakes.
	servesFakes func(context.Context) (bool, error)
	// declares is what it says of itself.
	declares func(context.Context) (declaration, error)
}

// TimesItself keeps the marker of the candidate inside.
func (program) TimesItself() {}

// open makes the candidate. Nothing runs yet.
func (f *programFlags) open() (*program, error) {
	o := engine.ProgramOptions{Timeout: f.timeout, Shell: f.shell}
	if f.protocol {
		p, err := engine.Protocol(f.line, o)
		if err != nil {
			return nil, usageErrorf("--exec: %v", err)
		}
		return &program{p, p.Close, func(ctx context.Context) (bool, error) {
			caps, err := p.Capabilities(ctx)
			return caps.Smoke, err
		}, func(ctx context.Context) (declaration, error) {
			caps, err := p.Capabilities(ctx)
			return declaration{engine.ProtocolVersion, caps.Info, caps.Probes, &caps.Smoke}, err
		}}, nil
	}
	if f.layers+f.logits != "" {
		o.Info = &engine.Info{Name: f.line, Layers: f.layers, Logits: f.logits}
	}
	p, err := engine.Exec(f.line, o)
	if err != nil {
		if missing := f.missing(); missing != nil {
			return nil, missing
		}
		return nil, usageErrorf("--exec: %v", err)
	}
	none := func(context.Context) (bool, error) { return false, nil }
	return &program{p, func() error { return nil }, none, func(ctx context.Context) (declaration, error) {
		info, err := p.Info(ctx)
		return declaration{Info: info}, err
	}}, nil
}

// missing is the error of a program that isn't there, which is said before what is wrong
// with its arguments. A name in quotes, with placeholders or for a shell is left out.
func (f *programFlags) missing() error {
	name := append(strings.Fields(f.line), "")[0]
	if name == "" || f.shell || strings.ContainsAny(name, "'\"\\{$") {
		return nil
	}
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("--exec: %w", &engine.SetupError{Path: name, Err: err})
	}
	return nil
}

// args are the flags for the command that repeats a run.
func (f *programFlags) args() []string {
	args := []string{"--exec", f.line}
	for _, name := range f.given {
		switch name {
		case "protocol", "shell":
			args = append(args, fmt.Sprintf("--%s=%t", name, name == "protocol" && f.protocol || name == "shell" && f.shell))
		case "timeout":
			args = append(args, "--timeout", f.timeout.String())
		case "layers":
			args = append(args, "--layers", f.layers)
		case "logits":
			args = append(args, "--logits", f.logits)
		}
	}
	return args
}

// evaluateProgram judges a program on the cases, after the fakes where it serves
// them or is asked to.
func (a *app) evaluateProgram(ctx context.Context, f *programFlags, smoke bool, want wanted) (rep *conformance.Report, err error) {
	p, err := f.open()
	if err != nil {
		return nil, err
	}
	ref, err := a.openReference() // before anything runs: a wrong --model is cheap to tell
	if err != nil {
		return nil, err
	}
	defer func() {
		// The answers stand; that something was wrong at the end is worth a line.
		if err := p.close(); err != nil && !a.quiet {
			fmt.Fprintf(a.stderr, "plumbline: %s\n", errorText(err))
		}
	}()
	tested := smoke
	if !smoke {
		// A program that can't say what it is gives Evaluate the same error.
		tested, _ = p.servesFakes(ctx)
	}
	if tested {
		results, err := conformance.Smoke(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			if !r.Holds {
				return nil, fmt.Errorf("the program failed on the fake %s, so that no verdict on its engine can be trusted: %s", r.Case, r.Why)
			}
		}
	}
	if !tested {
		want.power = []string{"not shown: that the way between the program and Plumbline is sound (--smoke, or plumbline selftest --exec)"}
	}
	return a.judge(ctx, "gate", ref, p, want)
}
