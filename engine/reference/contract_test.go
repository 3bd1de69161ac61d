package reference_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// runs are the methods that run the model.
func runs(e *reference.Engine) map[string]func(context.Context, []int) error {
	return map[string]func(context.Context, []int) error{
		"Capture":          func(ctx context.Context, ids []int) error { _, err := e.Capture(ctx, ids); return err },
		"CaptureWholeStep": func(ctx context.Context, ids []int) error { _, err := e.CaptureWholeStep(ctx, ids); return err },
		"CaptureBatched":   func(ctx context.Context, ids []int) error { _, err := e.CaptureBatched(ctx, ids); return err },
		"Decode": func(ctx context.Context, ids []int) error {
			_, err := e.Decode(ctx, ids, engine.DecodeOptions{MaxNew: 1})
			return err
		},
		"DecodeByToken": func(ctx context.Context, ids []int) error {
			_, err := e.Decode(ctx, ids, engine.DecodeOptions{MaxNew: 1, Chunk: 1})
			return err
		},
		"DecodeByChunk": func(ctx context.Context, ids []int) error {
			_, err := e.Decode(ctx, ids, engine.DecodeOptions{MaxNew: 1, Chunk: 8})
			return err
		},
		"DecodeBatch": func(ctx context.Context, ids []int) error {
			_, err := e.DecodeBatch(ctx, [][]int{{1}, ids}, [][]int{{1}, {1}})
			return err
		},
		"CaptureProbes": func(ctx context.Context, ids []int) error {
			_, err := e.CaptureProbes(ctx, ids, nil, engine.Probes(e.Weights().Arch()))
			return err
		},
		"LastHidden": func(ctx context.Context, ids []int) error { _, err := e.LastHidden(ctx, ids); return err },
	}
}

func TestBadPromptsAreRefused(t *testing.T) {
	for name, run := range runs(small()) {
		for _, c := range []struct {
			ids   []int
			index int
			text  string
		}{
			{nil, -1, "prompt: got 0 tokens, want at least 1"},
			{[]int{1, 50}, 1, "prompt: token 1: got id 50, want 0 to 49"},
			{[]int{-1}, 0, "prompt: token 0: got id -1, want 0 to 49"},
			{make([]int, 129), -1, "prompt: got 129 tokens, want at most 128 (max_position_embeddings)"},
		} {
			err := run(bg, c.ids)
			var bad *reference.PromptError
			require.ErrorAs(t, err, &bad, name)
			require.Equal(t, c.index, bad.Index, name)
			require.ErrorContains(t, err, c.text, name)
		}
	}
}

func TestRunsHonourContext(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for name, run := range runs(small()) {
		require.ErrorIs(t, run(ctx, []int{1, 2}), context.Canceled, name)
	}
	tr := capture(t, small(), []int{1})
	_, err := tr.Layer(ctx, 0, tr.Rows()[0])
	require.ErrorIs(t, err, context.Canceled)
	_, err = small().FinalNorm(ctx, tr.Rows()[0])
	require.ErrorIs(t, err, context.Canceled)
}

// errAfter is a context whose Err turns after n calls and whose Done never
// closes, so that only a check between steps can end the run.
type errAfter struct {
	context.Context
	mu    sync.Mutex
	calls int
}

func (c *errAfter) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestConcurrentRunsShareNothing(t *testing.T) {
	e := mustNew(t, randomWeights(smallArch(), 1))
	prompts := [][]int{prompt(3, 50), prompt(8, 50), prompt(9, 50)}
	var want [][][]float64
	var decoded []engine.Decoded
	for _, ids := range prompts {
		want = append(want, capture(t, small(), ids).Rows())
		decoded = append(decoded, decode(t, small(), ids, engine.DecodeOptions{}))
	}
	shared := capture(t, small(), prompts[1])
	forced := [][]int{{1, 2}, {3, 4}, {5, 6}}
	together := decodeBatch(t, small(), prompts, forced)
	probes := engine.Probes(smallArch())
	places := probe(t, small(), prompts[1], forced[1], probes...)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			ids, rows := prompts[i%3], want[i%3]
			tr, err := e.Capture(bg, ids)
			if err != nil || !sameBits(tr.Rows(), rows) {
				t.Errorf("run %d: Capture: error %v, or other bits than alone", i, err)
				return
			}
			whole, err := e.CaptureWholeStep(bg, ids)
			if err != nil || !sameBits(whole, rows) {
				t.Errorf("run %d: CaptureWholeStep: error %v, or other bits than alone", i, err)
			}
			if _, err := e.CaptureBatched(bg, ids); err != nil {
				t.Errorf("run %d: CaptureBatched: %v", i, err)
			}
			if _, err := e.Logits(bg, rows[3]); err != nil {
				t.Errorf("run %d: Logits: %v", i, err)
			}
			got, err := e.Decode(bg, ids, engine.DecodeOptions{})
			if err != nil || !sameBits(got.Logits, decoded[i%3].Logits) {
				t.Errorf("run %d: Decode: error %v, or other bits than alone", i, err)
			}
			batch, err := e.DecodeBatch(bg, prompts, forced)
			if err != nil || !reflect.DeepEqual(batch, together) {
				t.Errorf("run %d: DecodeBatch: error %v, or other bits than alone", i, err)
			}
			values, err := e.CaptureProbes(bg, prompts[1], forced[1], probes)
			if err != nil || !reflect.DeepEqual(values, places) {
				t.Errorf("run %d: CaptureProbes: error %v, or other bits than alone", i, err)
			}
			err = e.CaptureMany(bg, prompts, reference.ManyOptions{Oracle: true}, func(c reference.Captured) error {
				if !sameBits(c.Trace.Rows(), want[c.Index]) || !sameBits(c.WholeRows, want[c.Index]) {
					t.Errorf("run %d: CaptureMany: prompt %d: other bits than alone", i, c.Index)
				}
				return nil
			})
			if err != nil {
				t.Errorf("run %d: CaptureMany: %v", i, err)
			}
			if _, err := e.Float64(); err != nil {
				t.Errorf("run %d: Float64: %v", i, err)
			}
			for n := range 3 {
				row, err := shared.Layer(bg, n, want[1][n])
				if err != nil || !sameBits([][]float64{row}, want[1][n+1:n+2]) {
					t.Errorf("run %d: Layer %d of a shared trace: error %v, or other bits than alone", i, n, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestNewRefusesWhatItCannotCompute(t *testing.T) {
	clean := randomWeights(smallArch(), 1)
	for _, c := range []struct {
		name  string
		plant func(*memWeights)
		text  string
	}{
		{"missing tensor", func(w *memWeights) { delete(w.tensors, "model.layers.2.mlp.up_proj.weight") }, "tensor model.layers.2.mlp.up_proj.weight"},
		{"wrong shape", func(w *memWeights) {
			w.tensors["model.norm.weight"] = engine.Tensor{Shape: []int{23}, Data: make([]float32, 23)}
		}, "tensor model.norm.weight: got shape [23], want shape [24]"},
		{"too few values", func(w *memWeights) {
			w.tensors["model.norm.weight"] = engine.Tensor{Shape: []int{24}, Data: make([]float32, 23)}
		}, "tensor model.norm.weight: got 23 values, want 24 values"},
		{"heads", func(w *memWeights) { w.arch.KVHeads = 3 }, "attention heads: got 4, want a multiple of the 3 key-value heads"},
		{"odd head", func(w *memWeights) { w.arch.HeadDim = 7 }, "head dimension: got 7"},
		{"no layers", func(w *memWeights) { w.arch.Layers = 0 }, "layers: got 0"},
		{"layer parameters", func(w *memWeights) { w.arch.PerLayer = w.arch.PerLayer[:2] }, "layer parameters: got 2, want one per layer, 3"},
		{"theta", func(w *memWeights) { w.arch.PerLayer[1].RopeTheta = 0 }, "layer 1: got rope_theta 0"},
		{"stale layer", func(w *memWeights) { w.arch.Fault = engine.Fault{StaleCache: true, StaleLayer: 3} }, "stale layer: got 3, want 0 to 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &memWeights{clean.arch.Clone(), map[string]engine.Tensor{}}
			for k, v := range clean.tensors {
				w.tensors[k] = v
			}
			c.plant(w)
			_, err := reference.New(w)
			var bad *engine.ConfigError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, c.text)
		})
	}
	a := clean.arch.Clone()
	a.Family = "mamba"
	_, err := reference.New(&memWeights{a, clean.tensors})
	var unsupported *engine.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.ErrorContains(t, err, `"mamba"`)
}

func TestOptionsAreChecked(t *testing.T) {
	w := small().Weights()
	for name, c := range map[string]struct {
		opt         reference.Option
		unsupported bool
	}{
		"dtype":          {reference.WithDType("float16"), false},
		"capacity":       {reference.WithCapacityStep(0), false},
		"deadline":       {reference.WithStepDeadline(0), false},
		"xla":            {reference.WithBackend("xla:cpu"), true},
		"parallelism":    {reference.WithBackend("go:parallelism=1"), true},
		"backend option": {reference.WithBackend("go:nonsense"), false},
	} {
		_, err := reference.New(w, c.opt)
		require.Error(t, err, name)
		var unsupported *engine.UnsupportedError
		require.Equal(t, c.unsupported, errorsAs(err, &unsupported), name)
	}
	_, err := reference.New(w, reference.WithStepDeadline(time.Hour), reference.WithBackend("go:ops_sequential"))
	require.NoError(t, err)
}

func TestStepsLookAtTheContext(t *testing.T) {
	for name, run := range runs(small()) {
		err := run(&errAfter{Context: bg, calls: 3}, prompt(9, 50))
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.ErrorContains(t, err, "reference: ", name)
	}
	require.NoError(t, runs(small())["Capture"](&errAfter{Context: bg, calls: 1 << 20}, prompt(9, 50)))
}

func ExampleEngine_Capture() {
	e, err := reference.New(randomWeights(smallArch(), 1)) // or reference.Open(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	trace, err := e.Capture(context.Background(), []int{7, 3, 21})
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := trace.Rows()
	fmt.Printf("%d rows of %d: %s to %s\n", len(rows), len(rows[0]), engine.RowProbe(0), engine.RowProbe(len(rows)-1))
	// Output: 4 rows of 24: embed to blocks.2.resid_post
}
