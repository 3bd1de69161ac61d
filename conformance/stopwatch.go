package conformance

import (
	"maps"
	"sync"
	"time"
)

// stopwatch takes the times of a report.
type stopwatch struct {
	began        time.Time
	mu           sync.Mutex
	cases, parts map[string]time.Duration
}

func newStopwatch() *stopwatch {
	return &stopwatch{began: time.Now(), cases: map[string]time.Duration{}, parts: map[string]time.Duration{}}
}

// ofCase begins a case; the function ends it.
func (s *stopwatch) ofCase(name string) func() { return s.start(s.cases, name) }

// ofPart begins work that is no case's.
func (s *stopwatch) ofPart(p runPart) func() { return s.start(s.parts, string(p)) }

func (s *stopwatch) start(in map[string]time.Duration, name string) func() {
	from := time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		in[name] += time.Since(from)
	}
}

func (s *stopwatch) times() *Times {
	seconds := func(of map[string]time.Duration) map[string]Number {
		out := map[string]Number{}
		for name, d := range of {
			out[name] = Number(d.Seconds())
		}
		return out
	}
	return &Times{Started: s.began.UTC().Format(time.RFC3339), Seconds: Number(time.Since(s.began).Seconds()),
		Cases: seconds(s.cases), Run: seconds(s.parts)}
}

// add joins the times of another process.
func (t *Times) add(o *Times) {
	if o == nil {
		return
	}
	if t.Started == "" || o.Started < t.Started {
		t.Started = o.Started
	}
	t.Seconds += o.Seconds
	maps.Copy(t.Cases, o.Cases)
	for name, x := range o.Run {
		t.Run[name] += x
	}
}
