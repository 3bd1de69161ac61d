package trace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
)

// TestAccumulatorRefuses: each of these is an error that names the place, and no
// trace comes of the source.
func TestAccumulatorRefuses(t *testing.T) {
	s := smallSources[0]
	variants := s.variants()
	n := len(variants[0].TokenIDs)
	rows := func(change func([][]float32) [][]float32) func(*Accumulator) error {
		return func(a *Accumulator) error { return a.Hidden(1, 0, change(smallRows(1, 0, variants[0].TokenIDs))) }
	}
	routes := func(change func(*Routes)) func(*Accumulator) error {
		return func(a *Accumulator) error {
			r := smallRoutes(1, 0, variants[0].TokenIDs)
			change(&r)
			return a.Routes(1, 0, r)
		}
	}
	const layer0 = "trace: plain/one: layer_00, s0_eos"
	const layer1 = "trace: plain/one: layer_01, s0_eos"
	for name, c := range map[string]struct {
		give func(*Accumulator) error
		want string
	}{
		"a row short":     {rows(func(r [][]float32) [][]float32 { return r[1:] }), layer0 + ": rows: got 8, want one per token, 9"},
		"no rows":         {rows(func([][]float32) [][]float32 { return nil }), layer0 + ": rows: got 0, want one per token, 9"},
		"a short row":     {rows(func(r [][]float32) [][]float32 { r[2] = r[2][:4]; return r }), layer0 + ": row 2: got 4 values, want 5"},
		"another width":   {rows(func(r [][]float32) [][]float32 { return copyRows(append([][]float32{{1}}, slicesOf(r[1:], 1)...)) }), layer0 + ": width: got 1, want 5"},
		"NaN":             {rows(func(r [][]float32) [][]float32 { r[2][3] = float32(math.NaN()); return r }), layer0 + ": row 2, value 3: got NaN, want a finite value of torch.bfloat16"},
		"infinity":        {rows(func(r [][]float32) [][]float32 { r[8][0] = float32(math.Inf(-1)); return r }), layer0 + ": row 8, value 0: got -Inf, want a finite value of torch.bfloat16"},
		"more bits":       {rows(func(r [][]float32) [][]float32 { r[0][0] = 0.1; return r }), layer0 + ": row 0, value 0: got 0.1, want a finite value of torch.bfloat16"},
		"a token short":   {routes(func(r *Routes) { r.IDs = r.IDs[1:] }), layer1 + ": routes: got 8, want one per token, 9"},
		"a weight short":  {routes(func(r *Routes) { r.Weights = r.Weights[1:] }), layer1 + ": weights: got 8 rows, want 9"},
		"another top_k":   {routes(func(r *Routes) { r.IDs[0] = r.IDs[0][:1] }), layer1 + ": experts per token: got 1, want 2, the top_k of the config"},
		"a slot short":    {routes(func(r *Routes) { r.IDs[4] = r.IDs[4][:1] }), layer1 + ": token 4: got 1 experts, 2 weights, want 2 of each"},
		"expert 6":        {routes(func(r *Routes) { r.IDs[4][1] = 6 }), layer1 + ": token 4, slot 1: got expert 6, want 0 <= expert < 6"},
		"expert -1":       {routes(func(r *Routes) { r.IDs[4][0] = -1 }), layer1 + ": token 4, slot 0: got expert -1, want 0 <= expert < 6"},
		"an expert twice": {routes(func(r *Routes) { r.IDs[4][0], r.IDs[4][1] = 3, 3 }), layer1 + ": token 4, slot 1: got expert 3 again, want each expert once"},
		"a NaN weight":    {routes(func(r *Routes) { r.Weights[4][0] = float32(math.NaN()) }), layer1 + ": weights of token 4, value 0: got NaN, want a finite value of torch.float32"},
		"no type":         {routes(func(r *Routes) { r.DType = "float16" }), `trace: dtype: name: got "float16", want torch.bfloat16 or torch.float32`},
		"no such stage":   {func(a *Accumulator) error { return a.Hidden(5, 0, nil) }, "trace: Hidden: place and condition: got 5 of 5 and 0 of 8, want ones that there are"},
		"a layer without a gate": {func(a *Accumulator) error { return a.Routes(0, 0, Routes{}) },
			"trace: Routes: place and condition: got -1 of 2 and 0 of 8, want ones that there are"},
		"a stage twice": {func(a *Accumulator) error {
			_ = a.Hidden(1, 0, smallRows(1, 0, variants[0].TokenIDs))
			return a.Hidden(1, 0, smallRows(1, 0, variants[0].TokenIDs))
		}, layer0 + ": rows: got a second time, want each stage and condition once"},
		"a gate twice": {func(a *Accumulator) error {
			_ = a.Routes(1, 0, smallRoutes(1, 0, variants[0].TokenIDs))
			return a.Routes(1, 0, smallRoutes(1, 0, variants[0].TokenIDs))
		}, layer1 + ": routes: got a second time, want each gate and condition once"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 9, n)
			a := newSmall(t)
			require.NoError(t, a.Start(s.Source, variants, smallBoundary))
			require.EqualError(t, c.give(a), c.want)
			_, err := a.Finish(1, nil)
			var missing *InputError
			require.ErrorAs(t, err, &missing)
		})
	}
}

func slicesOf(rows [][]float32, n int) [][]float32 {
	out := make([][]float32, len(rows))
	for i := range rows {
		out[i] = rows[i][:n]
	}
	return out
}

func TestFinishWantsEveryStageAndGate(t *testing.T) {
	s := smallSources[0]
	variants := s.variants()
	for _, c := range []struct{ stage, layer int }{{3, -1}, {-1, 2}} {
		a := newSmall(t)
		require.NoError(t, a.Start(s.Source, variants, smallBoundary))
		for i, v := range variants {
			for stage := range 5 {
				if stage != c.stage || i != 6 {
					require.NoError(t, a.Hidden(stage, i, smallRows(stage, i, v.TokenIDs)))
				}
			}
			for _, layer := range []int{1, 2} {
				if layer != c.layer || i != 6 {
					require.NoError(t, a.Routes(layer, i, smallRoutes(layer, i, v.TokenIDs)))
				}
			}
		}
		_, err := a.Finish(1, nil)
		what := "layer_02, s1_x: hidden rows: got none, want those of every stage and condition"
		if c.layer >= 0 {
			what = "layer_02, s1_x: routes: got none, want those of every gate and condition"
		}
		require.EqualError(t, err, "trace: plain/one: "+what)
		_, err = a.Finish(1, nil)
		var usage *UsageError
		require.ErrorAs(t, err, &usage, "it ended")
	}
	a := newSmall(t)
	require.Error(t, a.Hidden(0, 0, nil), "no source yet")
	v := s.variants()
	v[2].TokenIDs[2] = 99
	err := a.Start(s.Source, v, smallBoundary)
	var bad *TokenError
	require.ErrorAs(t, err, &bad)
	require.EqualError(t, err, "trace: plain/one: s0_x: content token 0: got 99, want 11, as in s0_eos")
	require.Error(t, a.Hidden(0, 0, nil), "no source begun")
}

func TestComparisonsRefuseOtherShapes(t *testing.T) {
	h := Hidden{Float32, [][]float32{{1, 2}}}
	_, err := CompareHidden("here", h, Hidden{Float32, [][]float32{{1, 2}, {3, 4}}})
	require.EqualError(t, err, "trace: here: shape of the right side: got [2, 2], want [1, 2], as on the left")
	_, err = CompareHidden("here", h, Hidden{Float32, [][]float32{{1}}})
	require.Error(t, err)
	_, err = CompareHidden("here", Hidden{Float32, [][]float32{{-3e38}}}, Hidden{Float32, [][]float32{{3e38}}})
	require.EqualError(t, err, "trace: here: max_abs_delta: got +Inf, want a finite figure")
	r := Routes{[][]int{{0, 1}}, [][]float32{{1, 2}}, Float32}
	_, err = CompareRoutes("here", r, Routes{[][]int{{0}}, [][]float32{{1}}, Float32}, 4)
	require.EqualError(t, err, "trace: here: shape of the right side: got [1, 1], want [1, 2], as on the left")
}

func TestShapesAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Shape){
		"layers": func(s *Shape) { s.Layers = 0 }, "hidden size": func(s *Shape) { s.Hidden = 0 }, "gates": func(s *Shape) { s.Gates = nil },
		"gates[1]": func(s *Shape) { s.Gates = []int{1, 1} }, "gates[0]": func(s *Shape) { s.Gates = []int{3} },
		"experts": func(s *Shape) { s.Experts = 1 }, "top_k": func(s *Shape) { s.TopK = 7 },
	} {
		s := smallShape()
		change(&s)
		_, err := NewAccumulator(Standard(), s, BFloat16)
		var usage *UsageError
		require.ErrorAs(t, err, &usage, name)
		require.Equal(t, name, usage.What)
		_, err = NewWriter(filepath.Join(t.TempDir(), "x"), Standard(), s, BFloat16, dumpfmt.WriteOptions{})
		require.ErrorAs(t, err, &usage, name)
	}
}

// TestWriterLeavesNothingBehind: not after an abort, an error or a document without
// sources, and nothing is overwritten.
func TestWriterLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace.json")
	empty := func() {
		t.Helper()
		all, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, all)
	}
	open := func() *Writer {
		w, err := NewWriter(path, Standard(), smallShape(), BFloat16, dumpfmt.WriteOptions{})
		require.NoError(t, err)
		return w
	}
	w := open()
	require.NoError(t, w.Add(smallSources[0].feed(t, newSmall(t))))
	during, err := os.ReadDir(dir)
	require.NoError(t, err)
	// What a crash would leave: nothing where a file can do without a name meanwhile.
	require.LessOrEqual(t, len(during), 1)
	for _, e := range during {
		require.True(t, strings.HasPrefix(e.Name(), ".trace.json.tmp-"), e.Name())
	}
	w.Abort()
	empty()
	_, err = w.Finish(smallHead())
	require.Error(t, err)
	require.Error(t, w.Add(&SourceTrace{}))

	_, err = open().Finish(smallHead())
	var usage *UsageError
	require.ErrorAs(t, err, &usage)
	empty()

	w = open()
	require.ErrorAs(t, w.Add(&SourceTrace{}), &usage)
	empty()

	w = open() // a head that JSON can't hold
	require.NoError(t, w.Add(smallSources[0].feed(t, newSmall(t))))
	h := smallHead()
	h.CapturedAt = "\xff"
	_, err = w.Finish(h)
	require.Error(t, err)
	empty()

	w = open() // nor a source
	st := smallSources[0].feed(t, newSmall(t))
	st.Stages[0].Edges[0].MeanCosine = math.NaN()
	require.ErrorContains(t, w.Add(st), "NaN")
	empty()

	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err = NewWriter(path, Standard(), smallShape(), BFloat16, dumpfmt.WriteOptions{})
	require.True(t, errors.Is(err, os.ErrExist), "%v", err)
	w, err = NewWriter(path, Standard(), smallShape(), BFloat16, dumpfmt.WriteOptions{Overwrite: true})
	require.NoError(t, err)
	require.NoError(t, w.Add(st2(t)))
	_, err = w.Finish(smallHead())
	require.NoError(t, err)
	_, err = Read(path)
	require.NoError(t, err)
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func st2(t *testing.T) *SourceTrace { return smallSources[1].feed(t, newSmall(t)) }

// The largest device memory is that of loading or of any source.
func TestPeakMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	w, err := NewWriter(path, Standard(), smallShape(), BFloat16, dumpfmt.WriteOptions{})
	require.NoError(t, err)
	for i, peak := range []int64{7, 5} {
		st := smallSources[i].feed(t, newSmall(t))
		st.Peak = &peak
		require.NoError(t, w.Add(st))
	}
	h := smallHead()
	load := int64(6)
	h.Execution.LoadPeak = &load
	done, err := w.Finish(h)
	require.NoError(t, err)
	require.Equal(t, int64(7), *done.Peak)
	d, err := Read(path)
	require.NoError(t, err)
	require.Equal(t, []int64{6, 7, 7, 5}, []int64{*d.Execution.LoadPeak, *d.Execution.Peak, *d.Traced[0].Peak, *d.Traced[1].Peak})
}
