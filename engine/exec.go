package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// DefaultTimeout is how long a program may take for one case unless told
// otherwise, loading its model included.
const DefaultTimeout = 5 * time.Minute

// exitUnsupported is the exit code by which a program says that it doesn't offer
// what was asked: the code of a skipped test in automake and meson.
const exitUnsupported = 77

// ProgramOptions say how a program is run as a candidate. The zero value is
// ready to use.
type ProgramOptions struct {
	// Timeout is the deadline of each case, from the program's start ([Exec]) or
	// from the request ([Protocol]); 0 means DefaultTimeout.
	Timeout time.Duration
	// Grace is the time between the request to end (SIGTERM) and the order
	// (SIGKILL); 0 means two seconds.
	Grace time.Duration
	// Shell gives the command line to /bin/sh -c in place of taking it apart
	// here.
	Shell bool
	// Env is added to the environment, as KEY=VALUE.
	Env []string
	// TempDir is where the folder of each case is made and removed; empty means
	// os.TempDir.
	TempDir string

	// Info is what the side declares, for Exec only: nil asks the program for an
	// engine.json. Layers and Logits say how its files are read, and nothing is
	// assumed about a file whose type isn't declared.
	Info *Info
	// Parallel is how many runs Exec may have at a time; 0 means one, since
	// engines are large.
	Parallel int
	// Restarts is how many times Protocol may start the program anew after it
	// was ended or ended itself; 0 means three, negative none.
	Restarts int
}

func (o *ProgramOptions) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return DefaultTimeout
}

func (o *ProgramOptions) grace() time.Duration {
	if o.Grace > 0 {
		return o.Grace
	}
	return 2 * time.Second
}

// ExecCandidate is a program that is run once per case. It is safe for
// concurrent use; requests wait for their turn.
type ExecCandidate struct {
	cmd  command
	o    ProgramOptions
	turn chan struct{} // as many as may run at a time

	asking sync.Mutex // held while Info asks
	mu     sync.Mutex
	info   *Info // what the side declared, once it is known
}

var (
	_ Candidate = (*ExecCandidate)(nil)
	_ SelfTimed = (*ExecCandidate)(nil)
)

// Exec returns the candidate that a command line is. The line is taken apart at
// white space; quotes and backslashes are understood as in a shell (on Windows a
// backslash is one, but in front of a double quote), and what would need a shell is
// refused unless ProgramOptions.Shell asks for it. Inside any
// argument these are replaced:
//
//	{ids}          the prompt's token ids, comma-separated
//	{ids_file}     a file with the ids, one per line
//	{text_file}    a file with the templated prompt, UTF-8
//	{probe_names}  the probes that are wanted, comma-separated; empty where that is
//	               left to the program
//	{layers}       where to write the layer dump
//	{logits}       where to write the logit dump
//	{probes}       where to write the probes, a safetensors file
//	{dir}          the folder of all three: engine.json and case.json (for
//	               output_ids) go there too
//
// How many tokens to decode, and which ids end an output, is left to the program: it
// says what it chose in case.json (output_ids, stop). [Protocol] asks for both.
//
// An empty {probe_names} is an empty argument; a shell drops it unless it is
// quoted. Probes at positions behind the prompt need the output_ids of a
// case.json: without them nobody can tell what was run there.
//
// {{word}} stands for the text {word}. A line that names no way to learn the
// prompt, no place for the answer, or another placeholder is a *CommandError.
//
// Response.PromptIDs are the token_ids of the program's case.json. Without one
// they are the ids that it was handed, and nil for a program that is given the
// text alone: what it made of the text, only it can tell.
//
// Exit code 0 says that the answer is complete, 77 that the case is unsupported
// (the last line of standard error says why), anything else that there is none.
func Exec(commandLine string, o ProgramOptions) (*ExecCandidate, error) {
	c, err := parseCommand(commandLine, o.Shell, placeIDs, placeIDsFile, placeTextFile, placeProbeNames, placeLayers, placeLogits, placeProbes, placeDir)
	if err != nil {
		return nil, err
	}
	for _, need := range []struct {
		what  string
		names []string
	}{
		{"the prompt", []string{placeIDs, placeIDsFile, placeTextFile}},
		{"the answer's place", []string{placeLayers, placeLogits, placeProbes, placeDir}},
	} {
		if !c.uses(need.names...) {
			return nil, &CommandError{Command: commandLine, Offset: -1,
				Why: fmt.Sprintf("the program can't know %s: got none of {%s}", need.what, strings.Join(need.names, "}, {"))}
		}
	}
	e := &ExecCandidate{cmd: c, o: o, turn: make(chan struct{}, max(1, o.Parallel))}
	if o.Info != nil {
		info := *o.Info
		e.info = &info
	}
	return e, nil
}

// TimesItself implements [SelfTimed].
func (e *ExecCandidate) TimesItself() {}

// Info returns what the side declares. Where the options don't say it, the
// program is run on [SmokeRight], once, for its engine.json. It is a *SetupError
// when the program can't be found, a *MalformedError when nothing is declared.
func (e *ExecCandidate) Info(ctx context.Context) (Info, error) {
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	if !e.cmd.shell && !placeholder.MatchString(e.cmd.words[0]) {
		if _, err := exec.LookPath(e.cmd.words[0]); err != nil {
			return Info{}, &SetupError{Path: e.cmd.words[0], Err: err}
		}
	}
	e.asking.Lock()
	defer e.asking.Unlock()
	if info := e.known(); info != nil {
		return *info, nil
	}
	d, err := e.answer(ctx, Request{Case: SmokeRight()}, false)
	if d == nil {
		return Info{}, err
	}
	defer d.remove()
	var unsupported *UnsupportedError
	if err != nil && !errors.As(err, &unsupported) {
		return Info{}, err // an engine.json of a program that failed isn't read
	}
	return e.declared(d)
}

func (e *ExecCandidate) known() *Info {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.info
}

// declared is what the side declares, now that there is an answer: what the
// options or an earlier answer said, and this answer's engine.json must agree.
func (e *ExecCandidate) declared(d *answerDir) (Info, error) {
	file, err := d.engineFile()
	if err != nil {
		return Info{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.info == nil && file == nil:
		return Info{}, &MalformedError{File: "{" + placeDir + "}/engine.json",
			Err: fmt.Errorf("engine: program %q: engine.json: got none in {%s}, want the types of its layers and logits there, or declared beforehand", e.cmd.line, placeDir)}
	case e.info == nil:
		info := infoOf(*file)
		e.info = &info
	case file != nil:
		if err := sameTypes(*e.info, infoOf(*file)); err != nil {
			return Info{}, &MalformedError{File: "{" + placeDir + "}/engine.json", Err: err}
		}
	}
	return *e.info, nil
}

// Run runs the program and opens its answer; the caller closes the response,
// which removes the case's folder.
//
// It is a *MalformedError when the answer is broken, with Provenance when it
// belongs to another prompt; an *UnsupportedError when the program says so; a
// *ProcessError when there is no answer; a *SetupError when the program can't
// be run at all.
func (e *ExecCandidate) Run(ctx context.Context, req Request) (*Response, error) {
	d, err := e.answer(ctx, req, true)
	if err != nil {
		if d != nil {
			d.remove()
		}
		return nil, err
	}
	info, err := e.declared(d)
	if err != nil {
		d.remove()
		return nil, err
	}
	return d.read(ctx, req.Case, info, e.cmd.uses(placeIDs, placeIDsFile))
}

// answer runs the program on one request; dumps says whether it must write one. The
// folder is nil when it did not run.
func (e *ExecCandidate) answer(ctx context.Context, req Request, dumps bool) (*answerDir, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := req.Case
	d, err := newAnswerDir(e.o.TempDir, c)
	if err != nil {
		return nil, err
	}
	values := map[string]string{
		placeIDsFile: d.idsFile(), placeTextFile: d.textFile(),
		placeLayers: d.layers(), placeLogits: d.logits(), placeProbes: d.probes(), placeDir: d.out,
		placeProbeNames: joinProbes(req.Probes),
	}
	if e.cmd.uses(placeIDs) {
		values[placeIDs] = joinIDs(c.TokenIDs, ",")
	}
	argv, err := e.cmd.argv(values)
	if err != nil {
		d.remove()
		return nil, err
	}
	p, err := startProcess(argv, e.o.Env, e.o.grace(), false)
	if err != nil {
		d.remove()
		return nil, err
	}
	timedOut, err := p.wait(ctx, e.o.timeout())
	if err != nil {
		return d, err
	}
	if timedOut {
		return d, p.failure(e.cmd, c.Name, fmt.Sprintf("no answer within %v", e.o.timeout()), true)
	}
	switch code, _ := ended(p.cmd.ProcessState); {
	case code == exitUnsupported:
		return d, &UnsupportedError{What: fmt.Sprintf("case %q", c.Name), Why: lastLine(p.stderr.String())}
	case code != 0:
		return d, p.failure(e.cmd, c.Name, p.howEnded(), false)
	case dumps && d.empty():
		return d, p.failure(e.cmd, c.Name, "exit code 0, and no dump was written", false)
	}
	return d, nil
}

// lastLine is the last line that holds anything.
func lastLine(s string) string {
	lines := bytes.Split(bytes.TrimSpace([]byte(s)), []byte("\n"))
	line := strings.TrimSpace(strings.ToValidUTF8(string(lines[len(lines)-1]), "?"))
	if line == "" {
		return "the program gave no reason"
	}
	return line[:min(len(line), shownOutput)]
}
