package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is how long work must last before anything is shown, and the least
// time between two plain lines.
const patience = time.Second

// redraw is the least time between two drawings of the bar.
const redraw = 50 * time.Millisecond

// Printer creates tasks that report to one writer.
type Printer struct {
	w        io.Writer
	quiet    bool
	terminal bool
	now      func() time.Time
}

// New returns a Printer on w, which is a terminal only if it is an *os.File
// that is one.
func New(w io.Writer, quiet bool) *Printer {
	f, ok := w.(*os.File)
	return &Printer{w: w, quiet: quiet, terminal: ok && term.IsTerminal(int(f.Fd())), now: time.Now}
}

// Start begins a task of total steps, e.g. Start("bisect", 9).
func (p *Printer) Start(what string, total int) *Task {
	now := p.now()
	return &Task{p: p, what: what, total: total, started: now, last: now}
}

// Task is one piece of work. It is safe for concurrent use.
type Task struct {
	p              *Printer
	what           string
	total          int
	started, last  time.Time
	mu             sync.Mutex
	done, reported int
	bytes          int64
	drawn          time.Time
	bar            *progressbar.ProgressBar
}

// Step says that one more step has ended; label names it.
func (t *Task) Step(label string) { t.StepBytes(func() string { return label }, 0) }

// StepBytes is Step for short steps that read n bytes each: the rate is shown, and
// label is only called for what is printed.
func (t *Task) StepBytes(label func() string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done++
	t.bytes += n
	if t.p.quiet {
		return
	}
	now := t.p.now()
	if t.p.terminal {
		t.draw(now)
		return
	}
	if now.Sub(t.last) < patience {
		return
	}
	t.last = now
	t.reported = t.done
	fmt.Fprintf(t.p.w, "%s: %d of %d (%s)%s\n", t.what, t.done, t.total, label(), t.rate(now))
}

// rate is what was read per second, where bytes were counted.
func (t *Task) rate(now time.Time) string {
	seconds := now.Sub(t.started).Seconds()
	if t.bytes == 0 || seconds <= 0 {
		return ""
	}
	return fmt.Sprintf(" %.2f GB/s", float64(t.bytes)/1e9/seconds)
}

// End ends the task and takes the bar away, so that it doesn't stand between
// the results. Work that was reported as plain lines gets a last one.
func (t *Task) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bar != nil {
		_ = t.bar.Clear()
		t.bar = nil
	}
	if t.reported > 0 && t.reported != t.done {
		fmt.Fprintf(t.p.w, "%s: %d of %d\n", t.what, t.done, t.total)
	}
	t.reported = 0
}

// draw shows the bar once the work has lasted long enough.
func (t *Task) draw(now time.Time) {
	if t.bar == nil {
		if now.Sub(t.started) < patience {
			return
		}
		t.bar = progressbar.NewOptions(t.total,
			progressbar.OptionSetWriter(t.p.w),
			progressbar.OptionSetDescription(t.what),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionClearOnFinish(),
		)
	}
	if t.done < t.total && now.Sub(t.drawn) < redraw {
		return // drawing costs more than a short step
	}
	t.drawn = now
	if t.bytes > 0 {
		t.bar.Describe(t.what + t.rate(now))
	}
	_ = t.bar.Set(t.done)
}
