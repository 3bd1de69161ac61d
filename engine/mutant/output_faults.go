package mutant

import (
	"context"
	"math"
)

const (
	namedRow  = "row i of the logits"
	ofOne     = "; no power on an output of one token"
	ofNoStop  = "; no power where no stop id was produced"
	sampling  = 0.7 // a temperature that samplers often have
	biasOfOne = 1.0 // in standard deviations of a row
)

// outputFaults spoil a decode, or what is dumped of it.
func outputFaults() []Mutant {
	return []Mutant{
		{
			Name: "logit-rows-shifted", Place: Nowhere, Named: "row 0, and every row but the last" + ofOne,
			Bug:    "a token's row is the one that chose the token after it: row i is taken after token i",
			Source: "https://github.com/AI-Hypercomputer/maxtext/issues/2103",
			output: func(_ context.Context, _ outputSite, o *output) error {
				copy(o.rows, o.rows[1:])
				return nil
			},
		},
		{
			Name: "last-wins-ties", Place: Nowhere, Named: "the row with the tie; no power where only id 0 is produced",
			Bug:    "the argmax takes the last of several equal values; the tie is planted in the row where it takes least, by raising an id below the token's",
			Source: "https://github.com/ohdearquant/lattice/pull/386",
			output: lastWinsTies,
		},
		{
			Name: "flipped-clear-call", Place: Nowhere, Named: "the row with the largest margin",
			Bug:    "the two largest values of one row change places, the token follows, and the decode goes on with it",
			output: flippedClearCall,
		},
		{
			Name: "stop-dropped", Place: Nowhere, Named: "the end of the output" + ofNoStop,
			Bug:    "the stop id that ends an output isn't kept, and neither is its row",
			Source: "https://github.com/microsoft/onnxruntime-genai/pull/1864",
			output: func(_ context.Context, s outputSite, o *output) error {
				if last := len(o.ids) - 1; s.isStop(o.ids[last]) {
					o.rows, o.ids = o.rows[:last], o.ids[:last]
				}
				return nil
			},
		},
		{
			Name: "runs-past-stop", Place: Nowhere, Named: "the token behind the stop id" + ofNoStop,
			Bug:    "the stop ids never reach the decode, which goes on to its budget",
			Source: "https://github.com/Lightning-AI/litgpt/pull/812",
			output: func(ctx context.Context, s outputSite, o *output) error {
				if !s.isStop(o.ids[len(o.ids)-1]) {
					return nil
				}
				s.stop = nil
				return o.goesOnWith(ctx, s, len(o.ids), o.ids)
			},
		},
		{
			Name: "temperature", Place: Nowhere, Named: "every row, with the right tokens; integer logits without a scale can't show it",
			Bug:    "the rows of a greedy decode are divided by a sampling temperature, here 0.7",
			Source: "https://github.com/THUDM/slime/pull/2197",
			output: func(_ context.Context, _ outputSite, o *output) error {
				each(o.rows, func(v float64) float64 { return v / sampling })
				return nil
			},
		},
		{
			Name: "logit-row-permuted", Place: OutputRow, Named: namedRow + ", with the right token",
			Bug:    "the values of a row, but for the chosen one, lie one id too far: they are gathered by a table that is off by one",
			output: logitRowPermuted,
		},
		{
			Name: "logit-bias", Place: Nowhere, Named: "every row, at one id that is never near the top",
			Bug:    "a constant is added to the logit of one id, one standard deviation of the first row: a bias that another request asked for",
			output: logitBias,
		},
		{
			Name: "logits-nan", Place: OutputRow, Named: namedRow + ", as not finite; integer logits can't have it",
			Bug:    "the least value of a row is NaN, as where a masked row was divided by zero, and the argmax passes over it",
			Source: "https://github.com/huggingface/transformers/issues/38690",
			output: func(_ context.Context, s outputSite, o *output) error {
				row := o.rows[s.row(o)]
				least := 0
				for id, v := range row {
					if v < row[least] {
						least = id
					}
				}
				row[least] = math.NaN()
				return nil
			},
		},
		{
			Name: "logits-constant", Place: Nowhere, Named: "row 0, and every row after it",
			Bug:    "the output projection yields nothing: all logits are zero, and id 0 is chosen each time",
			Source: "https://github.com/kekzl/imp/issues/1282",
			output: func(_ context.Context, s outputSite, o *output) error {
				o.repeats(s, make([]float64, len(o.rows[0])), 0)
				return nil
			},
		},
		{
			Name: "last-position-logits-repeated", Place: Nowhere, Named: "row 1, and every row after it" + ofOne,
			Bug:    "each step of a decode reads the logits of the prompt's last position again, and chooses its token again",
			Source: "https://github.com/xberg-io/xberg/issues/1210",
			output: func(_ context.Context, s outputSite, o *output) error {
				o.repeats(s, o.rows[0], o.ids[0])
				return nil
			},
		},
		{
			Name: "early-divergence", Place: Nowhere, Named: "row 1, and every row after it" + ofOne,
			Bug:    "another token than the first one that was chosen is fed back: all that follows is another sequence's",
			output: earlyDivergence,
		},
	}
}

func each(rows [][]float64, f func(v float64) float64) {
	for _, row := range rows {
		for id, v := range row {
			row[id] = f(v)
		}
	}
}

// lastWinsTies raises the largest value below a token's id to the token's own,
// in the row where they are nearest: the last of the equals was taken.
func lastWinsTies(_ context.Context, _ outputSite, o *output) error {
	row, id, gap := -1, -1, math.Inf(1)
	for i, token := range o.ids {
		if token == 0 {
			continue
		}
		best := chosen(o.rows[i][:token])
		if d := o.rows[i][token] - o.rows[i][best]; d < gap {
			row, id, gap = i, best, d
		}
	}
	if row >= 0 {
		o.rows[row][id] = o.rows[row][o.ids[row]]
	}
	return nil
}

func flippedClearCall(ctx context.Context, s outputSite, o *output) error {
	at, second, margin := -1, -1, math.Inf(-1)
	for i, row := range o.rows {
		if r := runnerUp(row, o.ids[i]); r >= 0 && row[o.ids[i]]-row[r] > margin {
			at, second, margin = i, r, row[o.ids[i]]-row[r]
		}
	}
	if at < 0 {
		return nil // a vocabulary of one
	}
	row := o.rows[at]
	row[o.ids[at]], row[second] = row[second], row[o.ids[at]]
	o.ids[at] = second
	if s.forced {
		return nil
	}
	return o.goesOnWith(ctx, s, at+1, o.ids[:at+1])
}

func logitRowPermuted(_ context.Context, s outputSite, o *output) error {
	at := s.row(o)
	row, token := o.rows[at], o.ids[at]
	var others []int
	for id := range row {
		if id != token {
			others = append(others, id)
		}
	}
	for i := len(others) - 1; i > 0; i-- { // the last value comes to the front
		row[others[i]], row[others[i-1]] = row[others[i-1]], row[others[i]]
	}
	return nil
}

// logitBias takes the id whose nearest approach to a row's largest value is the
// farthest.
func logitBias(_ context.Context, _ outputSite, o *output) error {
	far, farthest := 0, math.Inf(-1)
	for id := range o.rows[0] {
		nearest := math.Inf(1)
		for i, row := range o.rows {
			nearest = math.Min(nearest, row[o.ids[i]]-row[id])
		}
		if nearest > farthest {
			far, farthest = id, nearest
		}
	}
	bias := biasOfOne * deviation(o.rows[0])
	for _, row := range o.rows {
		row[far] += bias
	}
	return nil
}

// tries is how many tokens are tried as the one that is fed back.
const tries = 8

// earlyDivergence feeds back the likeliest token after which another one than
// before is chosen, or where there is none among the first, the runner-up.
func earlyDivergence(ctx context.Context, s outputSite, o *output) error {
	if len(o.ids) < 2 {
		return nil
	}
	ranked := append([]float64(nil), o.rows[0]...)
	ranked[o.ids[0]] = math.Inf(-1)
	var first *output
	for range min(tries, len(ranked)-1) {
		id := runnerUp(ranked, o.ids[0])
		ranked[id] = math.Inf(-1)
		other := output{rows: o.rows[:1:1], ids: o.ids[:1:1]}
		if err := other.goesOnWith(ctx, s, 1, []int{id}); err != nil {
			return err
		}
		if first == nil {
			first = &other
		}
		if len(other.ids) > 1 && other.ids[1] != o.ids[1] {
			first = &other
			break
		}
	}
	if first != nil {
		*o = *first
	}
	return nil
}
