package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxLine bounds a line that a program answers with.
const maxLine = 1 << 20

// shownLine is how much of a bad line an error message shows.
const shownLine = 200

// halfLine is what stood at the end of the output without a newline.
type halfLine []byte

func (h halfLine) Error() string { return fmt.Sprintf("half a line, %.*q", shownLine, []byte(h)) }

var errLongLine = fmt.Errorf("got a line of more than %d bytes", maxLine)

// answered is a line, or why there is none.
type answered struct {
	line []byte
	err  error
}

// session is a running program that is talked to. A session that failed in any
// way but a clean answer is over: what it says later must not be taken for the
// answer to the next question.
type session struct {
	cmd   command
	p     *process
	lines chan answered // closed after the first error
	quit  chan struct{} // closed when nobody reads lines any more
	asked bool
}

func startSession(cmd command, argv []string, o *ProgramOptions) (*session, error) {
	p, err := startProcess(argv, o.Env, o.grace(), true)
	if err != nil {
		return nil, err
	}
	s := &session{cmd: cmd, p: p, lines: make(chan answered), quit: make(chan struct{})}
	go s.read()
	return s, nil
}

// read passes on the lines of standard output.
func (s *session) read() {
	defer close(s.lines)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() { // a process that left the group may hold the pipe open
		select {
		case <-s.p.exited:
			_ = s.p.stdout.SetReadDeadline(time.Now().Add(lastPatience))
		case <-stopped:
		}
	}()
	defer func() { _ = s.p.stdout.Close() }()
	r := bufio.NewReaderSize(s.p.stdout, 64<<10)
	for {
		var line []byte
		for {
			part, err := r.ReadSlice('\n')
			line = append(line, part...)
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxLine {
				continue
			}
			switch {
			case len(line) > maxLine:
				err = errLongLine
			case len(line) > 0:
				err = halfLine(line)
			case errors.Is(err, os.ErrDeadlineExceeded):
				err = io.EOF
			}
			s.pass(answered{err: err})
			return
		}
		if len(line) > maxLine {
			s.pass(answered{err: errLongLine})
			return
		}
		if !s.pass(answered{line: line[:len(line)-1]}) {
			return
		}
	}
}

func (s *session) pass(a answered) bool {
	select {
	case s.lines <- a:
		return true
	case <-s.quit:
		return false
	}
}

// ask sends a line and waits for the one that answers it. Any error ends the
// program.
func (s *session) ask(ctx context.Context, name string, line []byte, timeout time.Duration) ([]byte, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	greeting := !s.asked // one that comes before it is asked for does no harm
	s.asked = true
	if !greeting {
		select {
		case a, ok := <-s.lines:
			if !ok || a.err != nil {
				return nil, s.over(name, "before the request", a)
			}
			return nil, s.broken(name, a.line, errors.New("got a line that nothing asked for"))
		default:
		}
	}
	sent := make(chan error, 1)
	go func() {
		_, err := s.p.stdin.Write(line)
		sent <- err
	}()
	// Both must happen, and the answer may be seen first.
	var answer []byte
	var unread error // the program has closed its input; what it says tells more
	for sending, lines := sent, s.lines; sending != nil || lines != nil; {
		select {
		case unread = <-sending:
			sending = nil
		case a, ok := <-lines:
			switch {
			case (!ok || a.err != nil) && unread != nil:
				return nil, s.over(name, "in place of reading the request", a)
			case !ok || a.err != nil:
				return nil, s.over(name, "in place of an answer", a)
			}
			answer, lines = a.line, nil
		case <-timer.C:
			s.end()
			return nil, s.p.failure(s.cmd, name, fmt.Sprintf(
				"no answer within %v; it was ended, so that a late one can't be taken for the next case's", timeout), true)
		case <-ctx.Done():
			s.end()
			return nil, ctx.Err()
		}
	}
	if unread != nil && !greeting {
		return nil, s.broken(name, answer, errors.New("got an answer to a request that was not read"))
	}
	return answer, nil
}

// over is the end of the program's output where there should be a line.
func (s *session) over(name, when string, a answered) error {
	var half halfLine
	switch {
	case errors.As(a.err, &half):
		when += ", after " + half.Error()
	case a.err != nil && !errors.Is(a.err, io.EOF):
		return s.broken(name, nil, a.err)
	}
	select { // it may still be on its way out
	case <-s.p.exited:
	case <-time.After(s.p.grace):
	}
	how := "its output ended while it went on"
	select {
	case <-s.p.exited:
		how = s.p.howEnded()
	default:
	}
	s.end()
	return s.p.failure(s.cmd, name, fmt.Sprintf("it ended %s: %s", when, how), false)
}

// broken ends the program and says what is wrong with its line.
func (s *session) broken(name string, line []byte, err error) error {
	s.end()
	what := ""
	if line != nil {
		what = fmt.Sprintf(" (%.*q)", shownLine, line)
	}
	subject := "handshake"
	if name != "" {
		subject = fmt.Sprintf("case %q", name)
	}
	return &MalformedError{Err: fmt.Errorf("engine: %s: program %q: %w%s; standard output is for answers alone, logs go to standard error",
		subject, s.cmd.line, err, what)}
}

// end ends the program.
func (s *session) end() {
	select {
	case <-s.quit:
		return
	default:
		close(s.quit)
	}
	_ = s.p.stdin.Close()
	s.p.stop()
}

// close lets the program end by itself: its input ends. A line that nothing
// asked for, and a program that fails or has to be ended, are errors.
func (s *session) close() error {
	defer s.end()
	_ = s.p.stdin.Close()
	timer := time.NewTimer(s.p.grace)
	defer timer.Stop()
	for {
		select {
		case a, ok := <-s.lines:
			switch {
			case !ok || errors.Is(a.err, io.EOF):
				select {
				case <-s.p.exited:
				case <-timer.C:
					s.end()
					return s.p.failure(s.cmd, "", "it did not end when its input did", true)
				}
				if code, _ := ended(s.p.cmd.ProcessState); code != 0 {
					return s.p.failure(s.cmd, "", "it failed at the end: "+s.p.howEnded(), false)
				}
				return nil
			case a.err != nil:
				return s.over("", "badly", a)
			}
			return s.broken("", a.line, errors.New("after the last case: got a line that nothing asked for"))
		case <-timer.C:
			s.end()
			return s.p.failure(s.cmd, "", "it did not end when its input did", true)
		}
	}
}
