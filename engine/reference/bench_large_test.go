//go:build unix

package reference

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// The large benchmark takes 5 GB of memory and a minute, so it asks for consent.
const (
	largeEnv = "PLUMBLINE_BENCH_LARGE" // 1 runs it
	peerEnv  = "PLUMBLINE_BENCH_PEER"  // a Python with torch and transformers, to compare with
)

// halfBillion is the shape of Qwen2.5-0.5B.
func halfBillion() engine.Arch {
	a := engine.Arch{Family: "qwen2", Layers: 24, Hidden: 896, Intermediate: 4864, Heads: 14, KVHeads: 2, HeadDim: 64,
		Vocab: 151936, TiedHead: true, FinalNormEps: 1e-6}
	for range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e6, NormEps: 1e-6})
	}
	return a
}

// BenchmarkTokenHalfBillion is the CPU time of one decode step at the shape of
// Qwen2.5-0.5B, all rows and the logits brought to the host. With a Python in
// PLUMBLINE_BENCH_PEER it alternates with transformers in float32 on one thread
// doing the same, and reports the ratio of the medians as x-peer.
func BenchmarkTokenHalfBillion(b *testing.B) {
	if os.Getenv(largeEnv) != "1" {
		b.Skipf("takes 5 GB of memory: set %s=1", largeEnv)
	}
	const tokens = 6
	arch := halfBillion()
	e, err := New(uniformWeights{arch})
	if err != nil {
		b.Fatal(err)
	}
	e.uploadHead()
	if e.headErr != nil {
		b.Fatal(e.headErr)
	}
	p := newPeer(b)
	var own, peers []float64
	decodeTokens(b, e, 2) // compiles
	for b.Loop() {
		own = append(own, decodeTokens(b, e, tokens)...)
		if p != nil {
			peers = append(peers, p.decode(b, tokens)...)
		}
	}
	b.ReportMetric(median(own)*1e3, "cpu-ms/token")
	if p != nil {
		b.ReportMetric(median(peers)*1e3, "peer-cpu-ms/token")
		b.ReportMetric(median(own)/median(peers), "x-peer")
	}
}

// decodeTokens decodes n tokens from an empty cache and returns the CPU time of
// each.
func decodeTokens(b *testing.B, e *Engine, n int) []float64 {
	cache, err := e.newKVCache(e.capacity(n))
	if err != nil {
		b.Fatal(err)
	}
	r, id := &run{e: e, cache: cache}, 1
	var spent []float64
	for pos := range n {
		start := cpuSeconds()
		rows := make([][]float64, 0, e.arch.Layers+1)
		x, err := r.token(&progress{ctx: b.Context()}, schedule{arch: e.arch}, pos, id, watch{row: func(_ int, x *tensors.Tensor) error {
			row, err := download(x, 0, e.arch.Hidden)
			rows = append(rows, row)
			return err
		}})
		if err != nil {
			b.Fatal(err)
		}
		logits, err := e.logitRow(x)
		if err != nil {
			b.Fatal(err)
		}
		if id, err = argmax(logits); err != nil {
			b.Fatal(err)
		}
		if err := x.FinalizeAll(); err != nil {
			b.Fatal(err)
		}
		spent = append(spent, cpuSeconds()-start)
	}
	return spent
}

// peer is the Python process on the other side.
type peer struct {
	in  io.Writer
	out *bufio.Scanner
}

func newPeer(b *testing.B) *peer {
	python := os.Getenv(peerEnv)
	if python == "" {
		return nil
	}
	cmd := exec.CommandContext(b.Context(), python, "../../tools/bench/peer_transformers.py")
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && b.Context().Err() == nil {
			b.Error(err)
		}
	})
	p := &peer{in, bufio.NewScanner(out)}
	var hello struct{ Ready string }
	p.answer(b, &hello)
	b.Logf("peer: %s", hello.Ready)
	p.decode(b, 2) // warms up
	return p
}

func (p *peer) decode(b *testing.B, n int) []float64 {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		b.Fatal(err)
	}
	var spent struct{ CPU []float64 }
	p.answer(b, &spent)
	if len(spent.CPU) != n {
		b.Fatalf("peer: got %d times, want %d", len(spent.CPU), n)
	}
	return spent.CPU
}

func (p *peer) answer(b *testing.B, v any) {
	if !p.out.Scan() {
		b.Fatalf("peer: no answer: %v", p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), v); err != nil {
		b.Fatal(err)
	}
}
