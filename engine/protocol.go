package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
)

// defaultRestarts is how many times a program is started anew.
const defaultRestarts = 3

// ProtocolCandidate is one program that answers case after case over its
// standard input and output. It is safe for concurrent use; requests wait for
// their turn. Close ends the program.
type ProtocolCandidate struct {
	cmd  command
	o    ProgramOptions
	turn chan struct{} // held by whoever talks to the program

	s      *session // nil while no program runs
	starts int
	last   error // what ended the last program
	caps   *Capabilities
	closed bool
}

var (
	_ Candidate = (*ProtocolCandidate)(nil)
	_ SelfTimed = (*ProtocolCandidate)(nil)
)

// Protocol returns the candidate that a program is which speaks JSON lines. The
// command line is taken apart as that of [Exec], without placeholders; nothing
// runs before the first call of a method. The program gets one line and answers
// with one line, in turns:
//
//	→ {"plumbline":1}
//	← {"plumbline":1,"name":"my engine","layers":"f32","logits":"f32","probes":["embed"],"smoke":true}
//	→ {"case":"a","token_ids":[1,2],"text":"…","decode_steps":0,"stop":[],"probes":[],"out":{"dir":"…","layers":"…","logits":"…","probes":"…"}}
//	← {"ok":true}, or {"unsupported":"why"}, or {"error":"what"}
//
// decode_steps are the tokens to decode behind the prompt, 0 for as many as the
// program likes; an id of stop ends the output and is its last. What it decoded
// it tells in case.json (output_ids), and there too which ids it ran if those
// were not token_ids. probes are the places that are wanted beside the dumps,
// none where that is left to the program; positions behind the prompt need
// output_ids.
//
// Capabilities are name (required), layers and logits (as in engine.json; a dump
// of an undeclared type is refused), version, dtype, weights, activations,
// kv_cache, model, probes and features (lists of names), smoke (true where the two
// fakes are known, see [SmokeRight]); other keys are the program's own. An answer has
// exactly one verdict, may repeat "case" (then it must be the case that was
// asked), and may have no other key. The dumps are complete when the answer is
// written.
//
// A program that answers late, twice, with anything else, or ends, is ended with
// its process group, and started anew for the next case, at most
// ProgramOptions.Restarts times. So a crash costs the case that was asked, and no
// other; one between two cases costs the second, which is the first to notice. No
// line of more than a megabyte is kept, no more is read of a program than is waited
// for, and of its standard error the end is kept. When standard input ends, it should
// too.
func Protocol(commandLine string, o ProgramOptions) (*ProtocolCandidate, error) {
	c, err := parseCommand(commandLine, o.Shell)
	if err != nil {
		return nil, err
	}
	return &ProtocolCandidate{cmd: c, o: o, turn: make(chan struct{}, 1)}, nil
}

// TimesItself implements [SelfTimed].
func (p *ProtocolCandidate) TimesItself() {}

func (p *ProtocolCandidate) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		if err := ctx.Err(); err != nil {
			p.give()
			return err
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *ProtocolCandidate) give() { <-p.turn }

// Capabilities returns what the program said in the handshake, and starts it
// where it doesn't run. It is a *SetupError when the program can't be run, an
// *UnsupportedError when it speaks another version, a *MalformedError when its
// answer is broken, and a *ProcessError when there is none.
func (p *ProtocolCandidate) Capabilities(ctx context.Context) (Capabilities, error) {
	if err := p.take(ctx); err != nil {
		return Capabilities{}, err
	}
	defer p.give()
	if p.caps == nil {
		if err := p.start(ctx); err != nil {
			return Capabilities{}, err
		}
	}
	return *p.caps, nil
}

// Info returns the capabilities as an Info; see Capabilities.
func (p *ProtocolCandidate) Info(ctx context.Context) (Info, error) {
	c, err := p.Capabilities(ctx)
	return c.Info, err
}

// start starts the program and shakes hands.
func (p *ProtocolCandidate) start(ctx context.Context) error {
	if p.closed {
		return fmt.Errorf("engine: program %q: %w", p.cmd.line, os.ErrClosed)
	}
	restarts := p.o.Restarts
	if restarts == 0 {
		restarts = defaultRestarts
	}
	if p.starts > max(0, restarts) {
		return &ProcessError{Command: p.cmd.line, ExitCode: -1,
			Why: fmt.Sprintf("not started again after %d starts; the last one ended so: %v", p.starts, p.last)}
	}
	argv, err := p.cmd.argv(nil)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return &SetupError{Path: argv[0], Err: err}
	}
	s, err := startSession(p.cmd, argv, &p.o)
	if err != nil {
		return err
	}
	p.starts++
	hello, err := wireLine(map[string]int{"plumbline": ProtocolVersion})
	if err != nil {
		return err
	}
	line, err := s.ask(ctx, "", hello, p.o.timeout())
	if err != nil {
		p.last = err
		return err
	}
	caps, err := parseCapabilities(line)
	var other errVersion
	switch {
	case errors.As(err, &other):
		s.end()
		err = &UnsupportedError{What: fmt.Sprintf("program %q: protocol version %s", p.cmd.line, other.got),
			Why: fmt.Sprintf("this side speaks version %d", ProtocolVersion)}
	case err != nil:
		err = s.broken("", line, err)
	case p.caps != nil && !reflect.DeepEqual(*p.caps, caps):
		err = s.broken("", line, errors.New("got other capabilities than at the first start"))
	}
	if err != nil {
		p.last = err
		return err
	}
	p.s, p.caps = s, &caps
	return nil
}

// Run asks the program for one case and opens its answer; the caller closes the
// response, which removes the case's folder.
//
// It is a *MalformedError when the answer is broken, with Provenance when it
// belongs to another prompt; an *UnsupportedError when the program says so; a
// *NoAnswerError when it reports an error of its own; a *ProcessError when it
// ended or ran out of time; a *SetupError when it can't be run at all.
func (p *ProtocolCandidate) Run(ctx context.Context, req Request) (*Response, error) {
	if err := p.take(ctx); err != nil {
		return nil, err
	}
	defer p.give()
	if p.s == nil {
		if err := p.start(ctx); err != nil {
			return nil, err
		}
	}
	d, err := newAnswerDir(p.o.TempDir, req.Case)
	if err != nil {
		return nil, err
	}
	if err := p.exchange(ctx, d, req); err != nil {
		d.remove()
		return nil, err
	}
	info := p.caps.Info
	file, err := d.engineFile()
	if err == nil && file != nil {
		if err = sameTypes(info, infoOf(*file)); err != nil {
			err = &MalformedError{File: "{" + placeDir + "}/engine.json", Err: err}
		}
	}
	if err != nil {
		d.remove()
		return nil, err
	}
	return d.read(ctx, req.Case, info, true)
}

// exchange sends the request and reads the verdict.
func (p *ProtocolCandidate) exchange(ctx context.Context, d *answerDir, req Request) error {
	name := req.Case.Name
	stop := req.Case.Stop
	// What is wanted is a wish: a program is asked for what it said it has.
	probes := []Probe{}
	for _, wanted := range req.Probes {
		if slices.Contains(p.caps.Probes, wanted) {
			probes = append(probes, wanted)
		}
	}
	if stop == nil {
		stop = []int{}
	}
	line, err := wireLine(wireRequest{Case: name, TokenIDs: req.Case.TokenIDs, Text: req.Case.Text,
		DecodeSteps: req.DecodeSteps, Stop: stop, Probes: probes, Out: wireOut{Dir: d.out, Layers: d.layers(), Logits: d.logits(), Probes: d.probes()}})
	if err != nil {
		return err
	}
	over := func(err error) error {
		p.s, p.last = nil, err
		return err
	}
	reply, err := p.s.ask(ctx, name, line, p.o.timeout())
	if err != nil {
		return over(err)
	}
	a, err := parseAnswer(reply)
	switch {
	case err != nil:
		return over(p.s.broken(name, reply, err))
	case a.Case != nil && *a.Case != name:
		return over(p.s.broken(name, reply, fmt.Errorf("got the answer to case %q", *a.Case)))
	case a.Unsupported != nil:
		return &UnsupportedError{What: fmt.Sprintf("case %q", name), Why: cmpOr(*a.Unsupported, "the program gave no reason")}
	case a.Error != nil:
		return &NoAnswerError{Case: name, Why: fmt.Sprintf("program %q reports: %.*s", p.cmd.line, shownOutput, *a.Error)}
	case d.empty():
		// Perhaps the last answer came twice: then this was not this case's.
		return over(p.s.broken(name, reply, errors.New("got ok, and no dump was written")))
	}
	return nil
}

// Close ends the program: its input ends, and after the grace it is ended. An
// error says that it had something unasked to say, or failed at the end; the
// answers given before stand.
func (p *ProtocolCandidate) Close() error {
	p.turn <- struct{}{}
	defer p.give()
	p.closed = true
	if p.s == nil {
		return nil
	}
	err := p.s.close()
	p.s = nil
	return err
}
