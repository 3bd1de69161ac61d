package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	// keptOutput is how much of a program's standard error, and of its standard
	// output where nothing is read from it, is kept: the end.
	keptOutput = 64 << 10
	// shownOutput is how much of that an error message shows.
	shownOutput = 1000
	// lastPatience bounds the wait for what no signal ends: a program in an
	// uninterruptible sleep, or a pipe held by a process that left the group.
	lastPatience = time.Second
)

// ProcessError says that a program gave no answer: it crashed, it ran out of
// time, it wrote nothing, or it ended where it should have gone on.
type ProcessError struct {
	// Case is the case it was asked; empty at the start.
	Case string
	// Command is the command line as given.
	Command string
	// Why says what went wrong.
	Why string
	// ExitCode is the program's own, -1 when it did not exit by itself or still
	// runs.
	ExitCode int
	// Signal is the signal that ended it, e.g. "killed"; may be empty.
	Signal string
	// TimedOut is true when the deadline ended it.
	TimedOut bool
	// Stderr is the end of its standard error, at most 64 KiB; Stdout that of its
	// standard output, where that isn't for answers.
	Stderr, Stdout string
}

func (e *ProcessError) Error() string {
	s := "engine: "
	if e.Case != "" {
		s += fmt.Sprintf("case %q: ", e.Case)
	}
	s += fmt.Sprintf("program %q: %s", e.Command, e.Why)
	for _, out := range [][2]string{{"error", e.Stderr}, {"output", e.Stdout}} {
		if end := out[1]; end != "" {
			// Quoted: it may hold anything, terminal escapes included.
			return s + fmt.Sprintf("; its standard %s ends in %q", out[0], end[max(0, len(end)-shownOutput):])
		}
	}
	return s + "; nothing on its standard error"
}

// process is a program that runs in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	stderr *tail
	output *tail // of a program that isn't talked to
	grace  time.Duration
	// stdin and stdout are set for a program that is talked to.
	stdin  *os.File
	stdout *os.File
	// exited is closed when the program is gone, with its whole group.
	exited chan struct{}
}

// startProcess starts a program. One that isn't talked to reads an empty
// standard input.
func startProcess(argv, env []string, grace time.Duration, talk bool) (*process, error) {
	p := &process{stderr: &tail{limit: keptOutput}, output: &tail{limit: keptOutput}, grace: grace, exited: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(os.Environ(), env...)
	ownGroup(p.cmd)
	// The pipes are made here and not by package exec, whose Wait would wait for
	// them, and so for a grandchild that holds them.
	var ours, theirs []*os.File
	fail := func(err error) (*process, error) {
		for _, f := range append(ours, theirs...) {
			_ = f.Close()
		}
		return nil, &SetupError{Path: argv[0], Err: err}
	}
	pipe := func(write bool) (our, their *os.File, err error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		if our, their = r, w; write {
			our, their = w, r
		}
		ours, theirs = append(ours, our), append(theirs, their)
		return our, their, nil
	}
	stderr, w, err := pipe(false)
	if err != nil {
		return fail(err)
	}
	p.cmd.Stderr = w
	stdout, w, err := pipe(false)
	if err != nil {
		return fail(err)
	}
	p.cmd.Stdout = w
	if talk {
		p.stdout = stdout
		var in *os.File
		if p.stdin, in, err = pipe(true); err != nil {
			return fail(err)
		}
		p.cmd.Stdin = in
	}
	if err := p.cmd.Start(); err != nil {
		return fail(err)
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(p.stderr, stderr) })
	if !talk {
		copying.Go(func() { _, _ = io.Copy(p.output, stdout) })
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState tells the same
		// Whatever the program left behind would write into files that are read
		// now, and would hold the pipe open.
		killGroup(p.cmd)
		read := make(chan struct{})
		go func() { copying.Wait(); close(read) }()
		select {
		case <-read:
		case <-time.After(lastPatience):
		}
		_ = stderr.Close() // ends a copy that still goes on
		if !talk {
			_ = stdout.Close()
		}
		close(p.exited)
	}()
	return p, nil
}

// wait waits for the program's end, and ends it when the time is over or ctx is
// done.
func (p *process) wait(ctx context.Context, timeout time.Duration) (timedOut bool, err error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.exited:
		return false, nil
	case <-timer.C:
		p.stop()
		return true, nil
	case <-ctx.Done():
		p.stop()
		return false, ctx.Err()
	}
}

// stop ends the program and its group: it is asked, and after the grace it is
// killed.
func (p *process) stop() {
	select {
	case <-p.exited:
		return
	default:
	}
	terminateGroup(p.cmd)
	select {
	case <-p.exited:
		return
	case <-time.After(p.grace):
	}
	killGroup(p.cmd)
	select {
	case <-p.exited:
	case <-time.After(lastPatience + p.grace):
	}
}

// failure is the error of a program that has ended, or is to be left alone.
func (p *process) failure(c command, name, why string, timedOut bool) *ProcessError {
	e := &ProcessError{Case: name, Command: c.line, Why: why, ExitCode: -1, TimedOut: timedOut}
	select {
	case <-p.exited:
		e.ExitCode, e.Signal = ended(p.cmd.ProcessState)
	default:
	}
	e.Stderr, e.Stdout = p.stderr.String(), p.output.String()
	return e
}

// howEnded says how the program ended: by itself, or by which signal.
func (p *process) howEnded() string {
	code, signal := ended(p.cmd.ProcessState)
	if signal != "" {
		return "ended by the signal: " + signal
	}
	return fmt.Sprintf("exit code %d", code)
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	mu    sync.Mutex
	buf   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	p = p[max(0, len(p)-t.limit):]
	if len(t.buf)+len(p) > 2*t.limit {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-(t.limit-len(p)):]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-t.limit):])
}
