package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// clock advances by hand.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func run(p *Printer, c *clock, step time.Duration) {
	task := p.Start("bisect", 4)
	for _, label := range []string{"a", "b", "c", "d"} {
		c.t = c.t.Add(step)
		task.Step(label)
	}
	task.End()
}

func TestOutput(t *testing.T) {
	tests := []struct {
		name            string
		quiet, terminal bool
		step            time.Duration
		want            string
	}{
		{"plain lines for slow work", false, false, 2 * time.Second,
			"bisect: 1 of 4 (a)\nbisect: 2 of 4 (b)\nbisect: 3 of 4 (c)\nbisect: 4 of 4 (d)\n"},
		{"at most one line a second, and the end", false, false, 700 * time.Millisecond,
			"bisect: 2 of 4 (b)\nbisect: 4 of 4 (d)\n"},
		{"the end is told once", false, false, 400 * time.Millisecond,
			"bisect: 3 of 4 (c)\nbisect: 4 of 4\n"},
		{"quick work is silent", false, false, time.Millisecond, ""},
		{"quick work is silent on a terminal", false, true, time.Millisecond, ""},
		{"quiet", true, false, 2 * time.Second, ""},
		{"quiet on a terminal", true, true, 2 * time.Second, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			c := &clock{t: time.Unix(0, 0)}
			run(&Printer{w: &out, quiet: tt.quiet, terminal: tt.terminal, now: c.now}, c, tt.step)
			if got := out.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Steps that read something show the rate, and ask for no label that isn't
// printed.
func TestRate(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		c := &clock{t: time.Unix(0, 0)}
		p := &Printer{w: &out, terminal: terminal, now: c.now}
		task := p.Start("diff", 1000)
		labels := 0
		for range 1000 {
			c.t = c.t.Add(5 * time.Millisecond)
			task.StepBytes(func() string { labels++; return "x" }, 10e6)
		}
		task.End()
		if got := out.String(); !strings.Contains(got, "2.00 GB/s") {
			t.Errorf("terminal %v: no rate in %q", terminal, got)
		}
		if labels > 6 {
			t.Errorf("terminal %v: asked for %d labels in 5 s", terminal, labels)
		}
		if terminal && strings.Count(out.String(), "diff") > 200 {
			t.Errorf("drawn %d times in 5 s", strings.Count(out.String(), "diff"))
		}
	}
}

func TestBarOnATerminal(t *testing.T) {
	var out bytes.Buffer
	c := &clock{t: time.Unix(0, 0)}
	run(&Printer{w: &out, terminal: true, now: c.now}, c, 2*time.Second)
	got := out.String()
	if !strings.Contains(got, "bisect") || !strings.Contains(got, "\r") || !strings.Contains(got, "1/4") {
		t.Errorf("no bar in %q", got)
	}
	if strings.Contains(got, "\n") {
		t.Errorf("the bar leaves a line behind: %q", got)
	}
}

func TestAWriterThatIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	if New(&out, false).terminal {
		t.Error("a buffer is taken for a terminal")
	}
}
