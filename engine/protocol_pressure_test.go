package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// TestProtocolFeatures: what a program claims to offer reaches Info.
func TestProtocolFeatures(t *testing.T) {
	f := protocolFake(t, `{"plumbline":1,"name":"x","features":["moe","long-context"]}`, engine.ProgramOptions{})
	info, err := f.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, engine.Info{Name: "x", Features: []string{"moe", "long-context"}}, info)
	require.NoError(t, f.Close())
}

// TestProtocolMemoryIsBounded: whatever a program pours out, little of it is kept.
func TestProtocolMemoryIsBounded(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"flood of errors", ""}, // of no harm to the answer
		{"long line", "line of more than 1048576 bytes"},
		{"endless", "line of more than 1048576 bytes"},
		{"flood of answers", ""}, // the first is this case's
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := protocolFake(t, "good", engine.ProgramOptions{})
			require.NoError(t, f.ask("good"))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := f.ask(tt.name)
			runtime.ReadMemStats(&after)
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
			}
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "bytes allocated, of what was freed since too")
			err = f.ask("good")
			if tt.name == "flood of answers" {
				require.ErrorContains(t, err, "got a line that nothing asked for")
				require.NoError(t, f.ask("good"))
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, f.Close())
		})
	}
}

// TestProtocolTrickle: a byte now and then is no answer, and moves no deadline.
func TestProtocolTrickle(t *testing.T) {
	t.Parallel()
	f := protocolFake(t, "good", engine.ProgramOptions{Timeout: 3 * time.Second})
	require.NoError(t, f.ask("good"))
	var dead *engine.ProcessError
	require.ErrorAs(t, f.ask("trickle"), &dead)
	require.True(t, dead.TimedOut)
	require.NoError(t, f.ask("good"))
	require.Equal(t, 2, f.starts())
	require.NoError(t, f.Close())
}

// TestProtocolCrashCostsOneCase: each of three crashes costs the case that was
// asked, whatever was asked before and after.
func TestProtocolCrashCostsOneCase(t *testing.T) {
	f := protocolFake(t, "good", engine.ProgramOptions{})
	for i, name := range []string{"good", "exit", "good:2", "half line", "exit", "good:3", "echo"} {
		err := f.ask(name)
		if name == "exit" || name == "half line" {
			require.ErrorContains(t, err, fmt.Sprintf("case %q", name))
		} else {
			require.NoError(t, err, i)
		}
	}
	require.Equal(t, 4, f.starts())
	require.NoError(t, f.Close())
}

// TestProtocolLeavesNothing: behind an answer of any kind no process goes on, and no
// goroutine.
func TestProtocolLeavesNothing(t *testing.T) {
	for _, name := range []string{"good", "exit", "half line", "long", "endless", "flood of answers", "nothing", "twice", "reply:x", "bad utf-8"} {
		f := protocolFake(t, "good", engine.ProgramOptions{})
		_ = f.ask(name)
		_ = f.Close() // two of them have more to say
		data, err := os.ReadFile(f.log)
		require.NoError(t, err)
		for line := range strings.Lines(string(data)) {
			var pid int
			if _, err := fmt.Sscanf(line, "pid %d", &pid); err == nil {
				require.False(t, processLives(pid), "%s: process %d goes on", name, pid)
			}
		}
	}
	require.Eventually(t, func() bool { return ourGoroutines() == "" }, 30*time.Second, 10*time.Millisecond, "%s", ourGoroutines())
}

// ourGoroutines are the stacks of goroutines that talk to programs, empty when there
// are none. Tests that run beside this one would have some: it is not parallel.
func ourGoroutines() string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
		return err.Error()
	}
	var ours []string
	for stack := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(stack, "engine.startSession") || strings.Contains(stack, "engine.startProcess") ||
			strings.Contains(stack, "engine.(*session)") || strings.Contains(stack, "engine.(*process)") {
			ours = append(ours, stack)
		}
	}
	return strings.Join(ours, "\n\n")
}
