package reference_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/reference"
)

// session runs a prompt and tokens behind it, one row of logits each.
func session(t testing.TB, e *reference.Engine, room int, ids, forced []int) (rows [][]float32) {
	t.Helper()
	s, err := e.NewSession(room)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	row, err := s.Prefill(bg, ids)
	require.NoError(t, err)
	rows = append(rows, row)
	for _, id := range forced[:len(forced)-1] {
		row, err := s.Step(bg, id)
		require.NoError(t, err)
		rows = append(rows, row)
	}
	return rows
}

// TestSessionsAreDecodes: a session has the bits of a decode along the same tokens,
// in every family and arithmetic, whatever room is left.
func TestSessionsAreDecodes(t *testing.T) {
	for name, e := range map[string]*reference.Engine{
		"qwen2": small(), "gemma4": gemma4Engine(t), "quantised gemma4": gemma4Engine(t, reference.WithKVCache(reference.KVQuant{Bits: 8})),
		"hybrid": hybridPair(t).single, "hybrid in float64": hybridPair(t).double,
		"hybrid in bfloat16": mustNew(t, randomHybrid(hybridArch(), 1), reference.WithDType(reference.BFloat16)),
	} {
		vocab := e.Weights().Arch().Vocab
		forced := prompt(6, vocab)
		for _, tokens := range []int{1, 20} {
			ids := prompt(tokens, vocab)
			want := decode(t, e, ids, engine.DecodeOptions{Forced: forced}).Logits
			for _, room := range []int{tokens + 5, 100} {
				got := session(t, e, room, ids, forced)
				require.Len(t, got, len(want))
				for i, row := range want {
					require.Equal(t, narrow(row), got[i], "%s: %d tokens in a session of %d: row %d", name, tokens, room, i)
				}
			}
		}
	}
}

// TestSessionsShareNothing: two sessions of an engine, taken on in turns, are what
// they are alone.
func TestSessionsShareNothing(t *testing.T) {
	e := hybridPair(t).single
	forced := prompt(5, 50)
	prompts := [][]int{prompt(9, 50), prompt(13, 50)}
	var open []*reference.Session
	var rows [2][][]float32
	for i, ids := range prompts {
		s, err := e.NewSession(40)
		require.NoError(t, err)
		row, err := s.Prefill(bg, ids)
		require.NoError(t, err)
		open, rows[i] = append(open, s), append(rows[i], row)
	}
	for _, id := range forced[:4] {
		for i, s := range open {
			row, err := s.Step(bg, id)
			require.NoError(t, err)
			rows[i] = append(rows[i], row)
		}
	}
	for i, ids := range prompts {
		require.Equal(t, session(t, e, 40, ids, forced), rows[i])
	}
}

// TestSessionFaults: the faults of decode steps act behind the prompt, and the
// cache of another session isn't found.
func TestSessionFaults(t *testing.T) {
	w := randomHybrid(hybridArch(), 1)
	clean := mustNew(t, w)
	ids, forced := prompt(9, 50), prompt(4, 50)
	good := session(t, clean, 20, ids, forced)
	for name, f := range map[string]engine.Fault{
		"stale state": {StaleCache: true, StaleLayer: 3, StalePosition: -1, StaleOnward: true},
		"late":        {ConvLate: true, ConvLayer: -1},
	} {
		a := hybridArch()
		a.Fault = f
		bad := session(t, mustNew(t, &memWeights{a, w.tensors}), 20, ids, forced)
		require.Equal(t, good[0], bad[0], name)
		for i := range good[1:] {
			require.False(t, relL2(wide(bad[1+i]), wide(good[1+i])) <= 1e-3, "%s: row %d", name, 1+i)
		}
	}
	a := hybridArch()
	a.Fault = engine.Fault{KeepCache: true}
	kept := mustNew(t, &memWeights{a, w.tensors})
	decode(t, kept, ids, engine.DecodeOptions{Forced: forced})
	require.Equal(t, good, session(t, kept, 20, ids, forced))
}

func TestSessionRefusals(t *testing.T) {
	e := small() // 128 positions, 50 tokens
	for n, text := range map[int]string{0: "session: got 0 positions, want at least 1", -3: "got -3 positions", 129: "got a session of 129 positions, want at most 128 (max_position_embeddings)"} {
		_, err := e.NewSession(n)
		require.ErrorContains(t, err, text)
	}
	open := func(room int) *reference.Session {
		s, err := e.NewSession(room)
		require.NoError(t, err)
		return s
	}
	s := open(4)
	_, err := s.Step(bg, 1)
	require.ErrorContains(t, err, "session: got a step before the prompt")
	var bad *reference.PromptError
	for _, c := range []struct {
		ids  []int
		text string
	}{
		{nil, "prompt: got 0 tokens"}, {[]int{1, 50}, "prompt: token 1: got id 50"}, {[]int{-1}, "got id -1"},
		{[]int{1, 2, 3, 4, 5}, "got 0 positions and 5 more, want at most the 4 of the session"},
	} {
		_, err := s.Prefill(bg, c.ids)
		require.ErrorAs(t, err, &bad)
		require.ErrorContains(t, err, c.text)
	}
	// None of that ended it.
	_, err = s.Prefill(bg, []int{1, 2, 3})
	require.NoError(t, err)
	_, err = s.Prefill(bg, []int{1})
	require.ErrorContains(t, err, "session: got a second prompt")
	_, err = s.Step(bg, 50)
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "prompt: token 3: got id 50, want 0 to 49")
	want, err := s.Step(bg, 4)
	require.NoError(t, err)
	require.Equal(t, session(t, e, 50, []int{1, 2, 3}, []int{4, 0})[1], want)
	_, err = s.Step(bg, 4)
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "got 4 positions and 1 more")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	for _, run := range []func() ([]float32, error){
		func() ([]float32, error) { return s.Step(bg, 1) }, func() ([]float32, error) { return s.Prefill(bg, []int{1}) },
		func() ([]float32, error) { s := open(3); require.NoError(t, s.Close()); return s.Prefill(bg, []int{1}) },
	} {
		_, err := run()
		require.ErrorContains(t, err, "session: it is closed")
	}
}

// TestSessionsEndWithTheirContext: and stay ended.
func TestSessionsEndWithTheirContext(t *testing.T) {
	gone, cancel := context.WithCancel(bg)
	cancel()
	for name, ctx := range map[string]context.Context{"cancelled": gone, "between two layers": &errAfter{Context: bg, calls: 3}} {
		s, err := small().NewSession(9)
		require.NoError(t, err)
		_, err = s.Prefill(bg, []int{1, 2})
		require.NoError(t, err)
		_, err = s.Step(ctx, 1)
		require.Error(t, err, name)
		require.ErrorIs(t, err, ctx.Err())
		_, err = s.Step(bg, 1)
		require.ErrorContains(t, err, "session: it ended: ", name)
		require.NoError(t, s.Close())
	}
	s, err := small().NewSession(9)
	require.NoError(t, err)
	_, err = s.Prefill(gone, []int{1, 2})
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Prefill(bg, []int{1, 2})
	require.ErrorContains(t, err, "it ended")
}

// TestSessionsRefuseWhatIsNotFinite: a row with an infinity is an error that says
// where.
func TestSessionsRefuseWhatIsNotFinite(t *testing.T) {
	w := randomHybrid(hybridArch(), 1)
	head := w.tensors["lm_head.weight"]
	head.Data = append([]float32(nil), head.Data...)
	for i := range head.Data[:24] {
		head.Data[i] = math.MaxFloat32
	}
	w.tensors["lm_head.weight"] = head
	s, err := mustNew(t, w).NewSession(9)
	require.NoError(t, err)
	_, err = s.Prefill(bg, prompt(3, 50))
	require.ErrorContains(t, err, "session: logits behind position 2: id 0: got ")
}

func ExampleEngine_NewSession() {
	e, err := reference.New(randomHybrid(hybridArch(), 1)) // or reference.Open(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := e.NewSession(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	row, err := s.Prefill(context.Background(), []int{7, 3, 21})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		best := 0
		for i, v := range row {
			if v > row[best] {
				best = i
			}
		}
		if row, err = s.Step(context.Background(), best); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(len(row), "logits behind six tokens")
	// Output: 50 logits behind six tokens
}
