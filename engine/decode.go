package engine

// DefaultMaxNew is how many tokens a decode produces when nothing else is asked.
const DefaultMaxNew = 8

// DecodeOptions say what a decode produces and when it ends.
type DecodeOptions struct {
	// MaxNew is the most tokens to produce, at least 1; 0 means DefaultMaxNew.
	MaxNew int
	// Stop are the ids that end the output. The one that ended it is kept.
	Stop []int
	// Forced, if not nil, are the tokens to go on with instead of those that the
	// rows choose (teacher forcing): row i is what the model says after the
	// prompt and Forced[:i], and there are len(Forced) rows. MaxNew and Stop
	// mean nothing then.
	Forced []int
	// Chunk is how the prompt is run: 0 as one batch; 1 token by token, through
	// the very steps that run the new tokens; n > 1 in chunks of n positions, the
	// last one shorter where they don't come out even, each attending to the
	// cache of those before it. The rows agree but for rounding.
	Chunk int
}

// StopReason is why a decode ended; the numbers are those that logit dumps of
// other tools report.
type StopReason int

// The reasons.
const (
	StopBudget StopReason = 0 // MaxNew tokens were produced
	StopToken  StopReason = 1 // one of the stop ids was produced
)

// Decoded is the outcome of a decode.
type Decoded struct {
	// OutputIDs are the tokens that the rows choose, a stop id included: the
	// argmax of each row as float32, the lowest index where several are equal.
	OutputIDs []int
	// Logits has one row of the vocabulary's length per token: the row as it was
	// before the token was chosen.
	Logits     [][]float64
	StopReason StopReason
}
