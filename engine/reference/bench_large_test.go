//go:build unix

package reference

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/plumbline-go/plumbline/engine"
)

// The large benchmark takes 5 GB of memory and a minute, so it asks for consent.
const (
	largeEnv = "PLUMBLINE_BENCH_LARGE" // 1 runs it
	peerEnv  = "PLUMBLINE_BENCH_PEER"  // a Python with torch and transformers, to compare with
)

// uniformWeights are random weights of an architecture, made when asked for and
// kept by nobody.
type uniformWeights struct{ arch engine.Arch }

func (w uniformWeights) Arch() engine.Arch { return w.arch.Clone() }

func (w uniformWeights) Tensor(name string) (engine.Tensor, error) {
	for _, s := range append(qwen2Slots(w.arch), slot{embedName, []int{w.arch.Vocab, w.arch.Hidden}}, slot{finalNormName, []int{w.arch.Hidden}}) {
		if !strings.HasSuffix(name, s.name) {
			continue
		}
		n := 1
		for _, d := range s.shape {
			n *= d
		}
		t := engine.Tensor{Shape: s.shape, Data: make([]float32, n)}
		h := fnv.New64a()
		h.Write([]byte(name))
		state := h.Sum64()
		scale, shift := float32(math.Sqrt(3/float64(s.shape[len(s.shape)-1]))), float32(-1)
		if strings.Contains(name, "norm") {
			scale, shift = 1e-3, 1e3 // near 1
		}
		for i := range t.Data {
			// Knuth's MMIX generator; its upper bits are good enough for a load.
			state = state*6364136223846793005 + 1442695040888963407
			t.Data[i] = scale * (float32(state>>40)/(1<<23) + shift)
		}
		return t, nil
	}
	return engine.Tensor{}, &engine.ConfigError{File: "memory", What: "tensor " + name, Got: "none", Want: "one"}
}

// halfBillion is the shape of Qwen2.5-0.5B.
func halfBillion() engine.Arch {
	a := engine.Arch{Family: "qwen2", Layers: 24, Hidden: 896, Intermediate: 4864, Heads: 14, KVHeads: 2, HeadDim: 64,
		Vocab: 151936, TiedHead: true, FinalNormEps: 1e-6}
	for range a.Layers {
		a.PerLayer = append(a.PerLayer, engine.LayerParams{RopeTheta: 1e6, NormEps: 1e-6})
	}
	return a
}

// cpuSeconds is the CPU time of this process, all threads and the system's part.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
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
		x, err := r.token(&progress{ctx: b.Context()}, schedule{arch: e.arch}, pos, id, func(x *tensors.Tensor) error {
			row, err := download(x, 0, e.arch.Hidden)
			rows = append(rows, row)
			return err
		})
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
