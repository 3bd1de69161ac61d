package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
)

// What an adapter costs per case: the folder, the process, the dump's check.
func BenchmarkExec(b *testing.B) {
	e, err := engine.Exec(fakeLine("exec", "right"+fakeArgs), engine.ProgramOptions{TempDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkRun(b, e)
}

func BenchmarkProtocol(b *testing.B) {
	p, err := engine.Protocol(fakeLine("protocol", "good '"+filepath.Join(b.TempDir(), "log")+"'"), engine.ProgramOptions{TempDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	benchmarkRun(b, p)
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
}

func benchmarkRun(b *testing.B, c engine.Candidate) {
	for b.Loop() {
		r, err := c.Run(b.Context(), request("good"))
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
