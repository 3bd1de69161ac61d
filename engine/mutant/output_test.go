package mutant

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/quant"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The toy model has five ids, and what it says depends on the last token alone.
// After 0 it goes round: 2, 1, 3, 0, 2, …; 4 is followed by itself.
func toyRows() [][]float64 {
	return [][]float64{
		{0, 1, 9, 3, 4}, // after 0: 2, by 5
		{2, 0, 1, 8, 6}, // after 1: 3, by 2
		{1, 7, 3, 6, 0}, // after 2: 1, by 1
		{5, 4, 1, 0, 2}, // after 3: 0, by 1
		{3, 2, 5, 1, 9}, // after 4: 4, by 4
	}
}

// toyModel returns the same memory for the same row, as a cache of runs does.
var toyModel = toyRows()

func toyDecode(ids []int, o engine.DecodeOptions) (out engine.Decoded) {
	n, last := o.MaxNew, ids[len(ids)-1]
	if o.Forced != nil {
		n = len(o.Forced)
	}
	for i := range n {
		row := toyModel[last]
		last = chosen(row)
		out.Logits, out.OutputIDs = append(out.Logits, row), append(out.OutputIDs, last)
		if o.Forced != nil {
			last = o.Forced[i]
		} else if slices.Contains(o.Stop, last) {
			out.StopReason = engine.StopToken
			return out
		}
	}
	return out
}

// toyReference decodes; it has nothing else.
type toyReference struct{ standIn }

func (toyReference) Decode(_ context.Context, ids []int, o engine.DecodeOptions) (engine.Decoded, error) {
	if o.MaxNew == 0 {
		o.MaxNew = engine.DefaultMaxNew
	}
	return toyDecode(ids, o), nil
}

func (r toyReference) DecodeBatch(ctx context.Context, prompts, forced [][]int) ([][][]float64, error) {
	return decodeEach(ctx, r, prompts, forced)
}

// toySide decodes 4 tokens unless asked otherwise.
type toySide struct {
	silent   bool // tells no ids
	recorded []int
	integers bool
	asked    *[]engine.Request
}

func (c toySide) Info(context.Context) (engine.Info, error) {
	if c.integers {
		return engine.Info{Name: "toy", Logits: engine.LogitsInt32}, nil
	}
	return engine.Info{Name: "toy", Logits: engine.LogitsFloat32}, nil
}

func (c toySide) Run(_ context.Context, req engine.Request) (*engine.Response, error) {
	if c.asked != nil {
		*c.asked = append(*c.asked, req)
	}
	ids := req.Case.TokenIDs
	if c.recorded != nil {
		ids = c.recorded
	}
	o := engine.DecodeOptions{MaxNew: req.DecodeSteps, Stop: req.Case.Stop}
	if o.MaxNew == 0 {
		o.MaxNew = 4
	}
	d := toyDecode(ids, o)
	layers, err := fixed{}.Run(context.Background(), req)
	if err != nil {
		return nil, err
	}
	resp := &engine.Response{Layers: layers.Layers, Logits: logits{d.Logits, 5}}
	if !c.silent {
		resp.OutputIDs, resp.PromptIDs = d.OutputIDs, ids
	}
	return resp, nil
}

// outputCases says what each fault makes of the rows after 0, 2, 1, 3, which
// choose 2, 1, 3, 0. at is row 1 or 2.
type outputCase struct {
	name string
	at   int
	stop []int
	most int // 0 means 4
	rows [][]float64
	ids  []int
	// reason is why a reference says that it ended.
	reason engine.StopReason
}

func outputCases() []outputCase {
	r := toyRows()
	of := func(after ...int) (rows [][]float64) {
		for _, last := range after {
			rows = append(rows, slices.Clone(r[last]))
		}
		return rows
	}
	with := func(rows [][]float64, i int, row ...float64) [][]float64 {
		rows[i] = row
		return rows
	}
	biased, hot := of(0, 2, 1, 3), of(0, 2, 1, 3)
	for i := range biased {
		// mean 3.4; 11.56+5.76+31.36+0.16+0.36 = 49.2, a fifth of it is 9.84
		biased[i][4] += math.Sqrt(9.84)
		for j := range hot[i] {
			hot[i][j] /= 0.7
		}
	}
	zero := make([]float64, 5)
	nan := math.NaN()
	return []outputCase{
		{name: "logit-rows-shifted", rows: of(2, 1, 3, 3), ids: []int{2, 1, 3, 0}},
		{name: "logit-rows-shifted", most: 1, rows: of(0), ids: []int{2}},
		// below the tokens: 9-1, 7-1, 8-2, nothing
		{name: "last-wins-ties", rows: with(of(0, 2, 1, 3), 1, 7, 7, 3, 6, 0), ids: []int{2, 1, 3, 0}},
		{name: "flipped-clear-call", rows: with(of(0, 4, 4, 4), 0, 0, 1, 4, 3, 9), ids: []int{4, 4, 4, 4}},
		{name: "flipped-clear-call", stop: []int{4}, rows: with(of(0), 0, 0, 1, 4, 3, 9), ids: []int{4}, reason: engine.StopToken},
		{name: "stop-dropped", stop: []int{3}, rows: of(0, 2), ids: []int{2, 1}, reason: engine.StopToken},
		{name: "stop-dropped", stop: []int{4}, rows: of(0, 2, 1, 3), ids: []int{2, 1, 3, 0}},
		{name: "runs-past-stop", stop: []int{1, 3}, rows: of(0, 2, 1, 3), ids: []int{2, 1, 3, 0}},
		{name: "runs-past-stop", stop: []int{0}, rows: of(0, 2, 1, 3), ids: []int{2, 1, 3, 0}, reason: engine.StopBudget},
		{name: "runs-past-stop", stop: []int{4}, rows: of(0, 2, 1, 3), ids: []int{2, 1, 3, 0}},
		{name: "temperature", rows: hot, ids: []int{2, 1, 3, 0}},
		{name: "logit-row-permuted", at: 1, rows: with(of(0, 2, 1, 3), 1, 0, 7, 1, 3, 6), ids: []int{2, 1, 3, 0}},
		{name: "logit-row-permuted", at: -1, rows: with(of(0, 2, 1, 3), 3, 5, 2, 4, 1, 0), ids: []int{2, 1, 3, 0}},
		{name: "logit-row-permuted", at: 9, rows: with(of(0, 2, 1, 3), 3, 5, 2, 4, 1, 0), ids: []int{2, 1, 3, 0}},
		// nearest to the top: 0 for 0 to 3, which are tokens, and 2 for id 4
		{name: "logit-bias", rows: biased, ids: []int{2, 1, 3, 0}},
		{name: "logits-nan", at: 2, rows: with(of(0, 2, 1, 3), 2, 2, nan, 1, 8, 6), ids: []int{2, 1, 3, 0}},
		{name: "logits-constant", rows: [][]float64{zero, zero, zero, zero}, ids: []int{0, 0, 0, 0}},
		{name: "logits-constant", stop: []int{0}, rows: [][]float64{zero}, ids: []int{0}, reason: engine.StopToken},
		{name: "logits-constant", stop: []int{3}, rows: [][]float64{zero, zero, zero, zero}, ids: []int{0, 0, 0, 0}},
		{name: "last-position-logits-repeated", rows: of(0, 0, 0, 0), ids: []int{2, 2, 2, 2}},
		{name: "last-position-logits-repeated", stop: []int{2}, rows: of(0), ids: []int{2}, reason: engine.StopToken},
		{name: "early-divergence", rows: of(0, 4, 4, 4), ids: []int{2, 4, 4, 4}},
		{name: "early-divergence", stop: []int{4}, rows: of(0, 4), ids: []int{2, 4}, reason: engine.StopToken},
		{name: "early-divergence", most: 1, rows: of(0), ids: []int{2}},
	}
}

func TestEveryOutputFaultIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range outputCases() {
		tested[c.name] = true
	}
	for _, m := range outputFaults() {
		assert.True(t, tested[m.Name], "%s: no expectation", m.Name)
		assert.True(t, m.InCandidate() && m.InReference() && !m.InWeights(), m.Name)
	}
}

func TestOutputFaultsOfACandidate(t *testing.T) {
	for _, c := range outputCases() {
		m, err := Lookup(c.name)
		require.NoError(t, err)
		most := c.most
		if most == 0 {
			most = 4
		}
		for _, silent := range []bool{false, true} {
			req := engine.Request{Case: engine.Case{Name: "a", Text: "one", TokenIDs: []int{3, 0}, Stop: c.stop}, DecodeSteps: most}
			faulty, err := m.Candidate(Sides{Candidate: toySide{silent: silent}, Weights: threeLayers()}, c.at)
			require.NoError(t, err)
			resp, err := faulty.Run(t.Context(), req)
			require.NoError(t, err, c.name)
			n, vocab := resp.Logits.Shape()
			require.Equal(t, []int{len(c.rows), 5}, []int{n, vocab}, "%s, stop ids %v", c.name, c.stop)
			if silent {
				require.Nil(t, resp.OutputIDs)
			} else {
				require.Equal(t, c.ids, resp.OutputIDs, "%s, stop ids %v", c.name, c.stop)
				require.Equal(t, []int{3, 0}, resp.PromptIDs)
			}
			row := make([]float64, 5)
			for i, want := range c.rows {
				require.NoError(t, resp.Logits.Row(i, row))
				for id := range row {
					// a float32 side stores float32 values
					if !closeTo(row[id], float64(float32(want[id]))) {
						t.Errorf("%s, stop ids %v: row %d: got %v, want %v", c.name, c.stop, i, row, want)
						break
					}
				}
			}
			require.Error(t, resp.Logits.Row(len(c.rows), row))
			require.Error(t, resp.Logits.Row(0, row[:4]))
			layers, err := readCapture(resp.Layers)
			require.NoError(t, err)
			require.Equal(t, fixedRows(), layers.rows, "%s: the capture stays", c.name)
			require.NoError(t, resp.Close())
		}
	}
	require.Equal(t, toyRows(), toyModel, "the clean answers were written")
}

func TestOutputFaultsOfAReference(t *testing.T) {
	clean := toyReference{newReference(t)}
	for _, c := range outputCases() {
		m, err := Lookup(c.name)
		require.NoError(t, err)
		faulty, err := m.Reference(clean, nil, c.at)
		require.NoError(t, err)
		o := engine.DecodeOptions{MaxNew: c.most, Stop: c.stop}
		if o.MaxNew == 0 {
			o.MaxNew = 4
		}
		d, err := faulty.Decode(t.Context(), []int{3, 0}, o)
		require.NoError(t, err, c.name)
		require.Equal(t, c.ids, d.OutputIDs, "%s, stop ids %v", c.name, c.stop)
		require.Equal(t, c.reason, d.StopReason, "%s, stop ids %v", c.name, c.stop)
		require.Len(t, d.Logits, len(c.rows))
		for i, want := range c.rows {
			for id := range want {
				if !closeTo(d.Logits[i][id], want[id]) {
					t.Errorf("%s, stop ids %v: row %d: got %v, want %v", c.name, c.stop, i, d.Logits[i], want)
					break
				}
			}
		}
	}
	require.Equal(t, toyRows(), toyModel, "the clean decodes were written")
}

// With forced tokens 1, 4, 0 the rows are those after 0, 1 and 4, which choose 2,
// 3 and 4. Stop ids mean nothing.
func TestOutputFaultsOfAForcedDecode(t *testing.T) {
	r := toyRows()
	zero := make([]float64, 5)
	for name, want := range map[string]engine.Decoded{
		"logit-rows-shifted":            {Logits: [][]float64{r[1], r[4], r[4]}, OutputIDs: []int{2, 3, 4}},
		"flipped-clear-call":            {Logits: [][]float64{{0, 1, 4, 3, 9}, r[1], r[4]}, OutputIDs: []int{4, 3, 4}},
		"stop-dropped":                  {Logits: [][]float64{r[0], r[1], r[4]}, OutputIDs: []int{2, 3, 4}},
		"runs-past-stop":                {Logits: [][]float64{r[0], r[1], r[4]}, OutputIDs: []int{2, 3, 4}},
		"logits-constant":               {Logits: [][]float64{zero, zero, zero}, OutputIDs: []int{0, 0, 0}},
		"last-position-logits-repeated": {Logits: [][]float64{r[0], r[0], r[0]}, OutputIDs: []int{2, 2, 2}},
		// 4, the runner-up, in place of 1: after it 4, not 3, and after the forced 4 as before
		"early-divergence": {Logits: [][]float64{r[0], r[4], r[4]}, OutputIDs: []int{2, 4, 4}},
	} {
		m, err := Lookup(name)
		require.NoError(t, err)
		faulty, err := m.Reference(toyReference{newReference(t)}, nil, 0)
		require.NoError(t, err)
		got, err := faulty.Decode(t.Context(), []int{0}, engine.DecodeOptions{MaxNew: 1, Stop: []int{2, 4}, Forced: []int{1, 4, 0}})
		require.NoError(t, err)
		assert.Equal(t, want, got, name)

		// a batch has the fault in each of its sequences
		batch, err := faulty.DecodeBatch(t.Context(), [][]int{{0}, {3, 0}}, [][]int{{1, 4, 0}, {1, 4, 0}})
		require.NoError(t, err)
		assert.Equal(t, [][][]float64{want.Logits, want.Logits}, batch, name)
	}
	require.Equal(t, toyRows(), toyModel, "the clean decodes were written")
}

// What a candidate is asked when it must go on with another token: the same case
// but for its ids, and the rest of the budget.
func TestGoingOnAsksForTheRest(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps int
		stop  []int
		ids   []int
		rest  int
		after []int
	}{
		{"early-divergence", 4, []int{7}, []int{3, 0, 4}, 3, []int{7}},
		{"flipped-clear-call", 6, nil, []int{3, 0, 4}, 5, nil},
		{"runs-past-stop", 7, []int{3}, []int{3, 0, 2, 1, 3}, 4, nil},
		// the candidate's own budget: what it produced, or where a stop id ended that, the usual one
		{"early-divergence", 0, nil, []int{3, 0, 4}, 3, nil},
		{"runs-past-stop", 0, []int{3}, []int{3, 0, 2, 1, 3}, engine.DefaultMaxNew - 3, nil},
	} {
		var asked []engine.Request
		m, err := Lookup(c.name)
		require.NoError(t, err)
		faulty, err := m.Candidate(Sides{Candidate: toySide{asked: &asked}, Weights: threeLayers()}, 0)
		require.NoError(t, err)
		clean := engine.Request{Case: engine.Case{Name: "a", Text: "one", TokenIDs: []int{3, 0}, Stop: c.stop}, DecodeSteps: c.steps, Probes: []engine.Probe{engine.ProbeEmbed}}
		_, err = faulty.Run(t.Context(), clean)
		require.NoError(t, err)
		require.Len(t, asked, 2, c.name)
		require.Equal(t, clean, asked[0], "%s: the request was written", c.name)
		require.Equal(t, engine.Request{Case: engine.Case{Name: "a", Text: "one", TokenIDs: c.ids, Stop: c.after}, DecodeSteps: c.rest}, asked[1], c.name)
	}
}

// The token that is fed back is one that makes a difference, if there is any: of
// 4 and 3, which come after 2, 3 does not.
func TestDivergenceTriesOtherTokens(t *testing.T) {
	o := &output{rows: [][]float64{{0, 1, 9, 3, 4}, {0, 0, 0, 0, 1}}, ids: []int{2, 4}}
	var tried []int
	s := outputSite{most: 2, goOn: func(_ context.Context, behind []int, _ int, _ []int) (output, error) {
		tried = append(tried, behind[0])
		return outputOf(toyDecode(behind, engine.DecodeOptions{MaxNew: 1})), nil
	}}
	require.NoError(t, earlyDivergence(t.Context(), s, o))
	require.Equal(t, []int{4, 3}, tried, "4 is followed by 4, as before")
	require.Equal(t, []int{2, 0}, o.ids)

	o = &output{rows: [][]float64{{0, 1, 9, 3, 4}, {0, 0, 0, 0, 1}}, ids: []int{2, 4}}
	tried = nil
	s.goOn = func(_ context.Context, behind []int, _ int, _ []int) (output, error) {
		tried = append(tried, behind[0])
		return output{rows: [][]float64{{0, 0, 0, 0, float64(behind[0])}}, ids: []int{4}}, nil
	}
	require.NoError(t, earlyDivergence(t.Context(), s, o))
	require.Equal(t, []int{4, 3, 1, 0}, tried, "all but the right one")
	require.Equal(t, []float64{0, 0, 0, 0, 4}, o.rows[1], "no token makes a difference: the runner-up's")
}

// Each try is a run of its own.
func TestDivergenceOfACandidateThatNeverDiverges(t *testing.T) {
	var asked [][]int
	stubborn := engine.Func{Answer: func(_ context.Context, req engine.Request) (*engine.Response, error) {
		asked = append(asked, req.Case.TokenIDs)
		rows := [][]float64{{0, 1, 2}, {0, 1, 2}}
		return &engine.Response{Logits: logits{rows[:req.DecodeSteps], 3}, OutputIDs: []int{2, 2}[:req.DecodeSteps]}, nil
	}}
	m, err := Lookup("early-divergence")
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: stubborn, Weights: threeLayers()}, 0)
	require.NoError(t, err)
	_, err = c.Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: []int{7}}, DecodeSteps: 2})
	require.NoError(t, err)
	require.Equal(t, [][]int{{7}, {7, 1}, {7, 0}}, asked)
}

func TestIntegerLogitsStayIntegers(t *testing.T) {
	run := func(name string) (*engine.Response, error) {
		m, err := Lookup(name)
		require.NoError(t, err)
		c, err := m.Candidate(Sides{Candidate: toySide{integers: true}, Weights: threeLayers()}, 0)
		require.NoError(t, err)
		return c.Run(t.Context(), engine.Request{Case: engine.Case{Name: "a", TokenIDs: []int{0}}})
	}
	resp, err := run("temperature")
	require.NoError(t, err)
	row := make([]float64, 5)
	require.NoError(t, resp.Logits.Row(0, row))
	require.Equal(t, []float64{0, 1, 13, 4, 6}, row) // 1.43, 12.86, 4.29, 5.71
	_, err = run("logits-nan")
	require.ErrorContains(t, err, `mutant: logits-nan: case "a": got int32 logits`)
}

func TestOutputsThatAFaultLeavesAlone(t *testing.T) {
	for _, m := range outputFaults() {
		c, err := m.Candidate(Sides{Candidate: fixed{}, Weights: threeLayers()}, 0)
		require.NoError(t, err)
		resp, err := c.Run(t.Context(), engine.Request{Case: twoCases()[0]})
		require.NoError(t, err)
		require.Nil(t, resp.Logits, "%s: an answer without logits", m.Name)

		empty := engine.Func{Answer: func(context.Context, engine.Request) (*engine.Response, error) {
			return &engine.Response{Logits: logits{vocab: 5}, OutputIDs: []int{}}, nil
		}}
		c, err = m.Candidate(Sides{Candidate: empty, Weights: threeLayers()}, 0)
		require.NoError(t, err)
		resp, err = c.Run(t.Context(), engine.Request{Case: twoCases()[0]})
		require.NoError(t, err, m.Name)
		n, _ := resp.Logits.Shape()
		require.Zero(t, n, "%s: an empty output", m.Name)
	}
}

func TestAnswersThatCantGoOn(t *testing.T) {
	for _, name := range []string{"flipped-clear-call", "early-divergence"} {
		m, err := Lookup(name)
		require.NoError(t, err)
		c, err := m.Candidate(Sides{Candidate: toySide{recorded: []int{3, 0}}, Weights: threeLayers()}, 0)
		require.NoError(t, err)
		_, err = c.Run(t.Context(), engine.Request{Case: engine.Case{Name: "a", TokenIDs: []int{3, 0}}})
		require.ErrorContains(t, err, "recorded answers")
	}
	short := engine.Func{Answer: func(context.Context, engine.Request) (*engine.Response, error) {
		return &engine.Response{Logits: logits{toyModel[:2], 5}, OutputIDs: []int{2}}, nil
	}}
	m, err := Lookup("temperature")
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: short, Weights: threeLayers()}, 0)
	require.NoError(t, err)
	_, err = c.Run(t.Context(), engine.Request{Case: twoCases()[0]})
	require.ErrorContains(t, err, "got 1 tokens and 2 rows")
}

func TestDoubledFirstToken(t *testing.T) {
	m, err := Lookup("bos-doubled")
	require.NoError(t, err)
	for _, silent := range []bool{false, true} {
		var asked []engine.Request
		c, err := m.Candidate(Sides{Candidate: toySide{silent: silent, asked: &asked}, Weights: threeLayers()}, -1)
		require.NoError(t, err)
		req := engine.Request{Case: engine.Case{Name: "a", Text: "one", TokenIDs: []int{3, 0}}, DecodeSteps: 2}
		resp, err := c.Run(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, []int{3, 3, 0}, resp.PromptIDs)
		require.Equal(t, []int{3, 0}, req.Case.TokenIDs)
		require.Len(t, asked, 1)
		require.Equal(t, []int{3, 3, 0}, asked[0].Case.TokenIDs, "it runs what it tells")
		require.Equal(t, uint64(3), resp.Layers.Header().Fingerprint, "the text is the prompt's")
	}
}

// Behind a flipped call the emulation says what it says after those tokens, bit
// for bit: the call is the only fault.
func TestAFlippedCallIsTheOnlyFault(t *testing.T) {
	w, ids := weights(t), prompt(t)
	e := quant.FromWeights(w, quant.WithCache(shared))
	m, err := Lookup("flipped-clear-call")
	require.NoError(t, err)
	c, err := m.Candidate(Sides{Candidate: e.Candidate(engine.Scheme{RowsInt8: true}), Weights: w}, 0)
	require.NoError(t, err)
	resp, err := c.Run(t.Context(), engine.Request{Case: engine.Case{TokenIDs: ids}})
	require.NoError(t, err)
	require.Len(t, resp.OutputIDs, engine.DefaultMaxNew)
	want, err := e.EmulateLogits(t.Context(), engine.Scheme{RowsInt8: true}, ids, resp.OutputIDs)
	require.NoError(t, err)
	var flipped []int
	row := make([]float64, len(want[0]))
	for i, clean := range want {
		require.NoError(t, resp.Logits.Row(i, row))
		require.Equal(t, chosen(row), resp.OutputIDs[i])
		for id := range row {
			if row[id] != float64(float32(clean[id])) {
				flipped = append(flipped, i, id)
			}
		}
	}
	require.Len(t, flipped, 4, "two values of one row: %v", flipped)
	require.Equal(t, flipped[0], flipped[2])
	top := want[flipped[0]]
	require.ElementsMatch(t, []int{chosen(top), runnerUp(top, chosen(top))}, []int{flipped[1], flipped[3]})
}
