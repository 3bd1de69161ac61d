package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-go/plumbline/golden"
)

// Factors bound the ratio of a candidate's error to the yardstick's.
type Factors struct {
	// Median bounds the profile of medians over at least MedianCases cases.
	Median golden.Budget
	// Single bounds one case.
	Single golden.Budget
}

// MedianCases is the number of judged cases from which medians are used.
const MedianCases = 5

// Budgets are all bounds of the suite. The zero value is not usable; see
// DefaultBudgets.
type Budgets struct {
	// Int8 bounds a quantised candidate against the int8 emulation.
	Int8 Factors
	// Float bounds a float32 candidate against the float32 engine's own error
	// from float64.
	Float Factors
	// OwnRowsKnown, OwnRowsScaled and OwnRowsInt8 bound one layer on the candidate's
	// own rows of all positions, for engines whose weights are the reference's own
	// values, that round rows to int8, and that have int8 weights of any kind:
	// Median bounds the error over the positions, Single that of one position, both
	// in multiples of the level of all layers. OwnRowsFloat is for float32.
	// OwnRowsUnknown is for what the yardstick doesn't emulate.
	OwnRowsKnown, OwnRowsScaled, OwnRowsInt8, OwnRowsUnknown, OwnRowsFloat Factors
	// Golden bounds the reference engine, in multiples of the golden's own error
	// from float64 (at least one rounding).
	Golden golden.Budget
	// GoldenPlain bounds it where the golden recorded no error of its own.
	GoldenPlain golden.Budget
	// Target bounds the reference's rows of a teacher's target, in multiples of what
	// these stray from float64 (at least one rounding); TargetPlain where nothing
	// recorded that.
	Target, TargetPlain golden.Budget
	// RouteBand is the tie band of a candidate's routes, in multiples of what the
	// yardstick's margins are off by, and RouteWeights bounds its weights, in multiples
	// of the yardstick's error. RouteRate is the smallest probability, at the
	// yardstick's rate, of so many near ties that fall otherwise.
	RouteBand, RouteWeights, RouteRate golden.Budget
	// BatchedVersusIncremental bounds, in multiples of the float32 engine's own
	// error from float64 (at least one rounding), how far the batched and the
	// incremental run of the same engine may lie apart.
	BatchedVersusIncremental golden.Budget
	// EmbedCodes bounds the channels of an int8 row 0, in roundings: half a
	// code of the row plus half a code of a table quantised with one scale.
	EmbedCodes golden.Budget
	// OneLayerShape tells a fault in one layer from one in several, by first /
	// largest outside {first, first+1}, and a bad dump row from a bad layer, by
	// the error of one layer over that of two.
	OneLayerShape golden.Budget
	// NextLayerShare and AllLayersShare tell a fault in all layers from one in an
	// early layer, by the second layer's local error over the first's and by the
	// upper quartile of the others' over it.
	NextLayerShare, AllLayersShare golden.Budget
	// Outlier bounds the local error of one layer in multiples of the lower
	// quartile over all layers. It tightens Factors.Median, and is all there is
	// when the yardstick doesn't emulate the candidate's arithmetic.
	Outlier golden.Budget
	// OutlierUnknown is Outlier where the yardstick doesn't emulate the candidate's
	// arithmetic, whose layers differ more among themselves.
	OutlierUnknown golden.Budget
	// OutlierSingle is OutlierUnknown for one case: single cases are noisier than
	// medians.
	OutlierSingle golden.Budget
	// LogitRow bounds the error of one row of logits, in multiples of the
	// yardstick's error in that row. Factors bound means over rows and medians.
	LogitRow, LogitRowFloat golden.Budget
	// Float32Noise is the largest relative error of a row of logits that is taken
	// for rounding of float32, where it bounds what the same engine does.
	Float32Noise golden.Budget
	// WrongPick is the regret, in tie bands, above which a pick is wrong, not
	// drifted.
	WrongPick golden.Budget
	// Drifts bounds the share of the clear positions, those whose margin is above
	// the tie band, at which another token was picked.
	Drifts golden.Budget
	// MeanRegret bounds the mean regret, in the noise of a difference of two
	// logits.
	MeanRegret golden.Budget
	// Gain bounds how far the share of its own update in the error of half a layer
	// may lie from the yardstick's; GainKnown is for engines whose weights are the
	// reference's own values. GainChannel bounds the t-value of one channel, in
	// multiples of the largest that the yardstick has in any layer.
	Gain, GainKnown, GainChannel golden.Budget
	// ChannelSlope is the share of its update that a channel's error must have to be
	// called a fault of the channel.
	ChannelSlope golden.Budget
	// Level is how far above the yardstick all layers of a sound engine may lie
	// together on its own rows, as a factor on the bounds.
	Level golden.Budget
	// AllLayers is the share of the layers out of budget from which a fault is one of
	// all layers.
	AllLayers golden.Budget
	// Nearer is the share of its distance to one place at which a row is taken
	// to belong to another.
	Nearer golden.Budget
	// EmbedNear is the share of the distance between two tokens' embeddings
	// within which a row is taken for one of them.
	EmbedNear golden.Budget
	// SwapMargin is how much better another layer must explain an update than
	// the layer that should have made it.
	SwapMargin golden.Budget
}

// The figures that the ratios below are multiples of: each is measured in the
// run itself, on the same prompt, so their unit is 1.
const (
	ofEmulation = "the int8 emulation's own error on the same prompt"
	ofFloat     = "the float32 engine's own error from float64 on the same prompt"

	ofEmulationOnRows = "the int8 emulation's own error on the same rows"
	ofFloatOnRows     = "the float32 engine's own error from float64 on the same rows"
)

// DefaultBudgets returns the bounds with the measurements they come from. The
// figures in Why were taken on a real integer engine's clean dumps (9 prompts,
// 28 layers), on transformers' float32 dumps (14 prompts, two checkpoints) and
// on emulations in other, equally honest schemes.
func DefaultBudgets() Budgets {
	return Budgets{
		Int8: Factors{
			Median: golden.Of(1, 2, ofEmulation+", median over the cases",
				"medians of the clean engine reach 1.50, of other emulations 1.27"),
			Single: golden.Of(1, 3, ofEmulation,
				"single measurements of the clean engine reach 2.2, of other emulations 1.7"),
		},
		Float: Factors{
			Median: golden.Of(1, 4, ofFloat+", median over the cases",
				"transformers reaches 1.2 accumulated and 2.1 local on one prompt; twice that leaves room for another order of summation"),
			Single: golden.Of(1, 6, ofFloat,
				"transformers reaches 1.2 accumulated and 2.1 local on one prompt; three times that leaves room for another order of summation"),
		},
		OwnRowsKnown: Factors{
			Median: golden.Of(1, 1.6, ofEmulationOnRows+", over all positions",
				"llama.cpp reaches 1.02, with flash attention 1.04, emulations that round otherwise 1.01; a tenth of ffn_down gives 4.8"),
			Single: golden.Of(1, 2.4, ofEmulationOnRows+" at the position", "llama.cpp reaches 1.21 in 6,480 places and positions, emulations that round otherwise 1.18 in 45,000: it grows with the logarithm of their number"),
		},
		OwnRowsScaled: Factors{
			Median: golden.Of(1, 2.5, ofEmulationOnRows+", over all positions",
				"emulations with other scales of weights and an int8 KV cache reach 1.83 times the level of all layers, on 34 prompts and two checkpoints"),
			Single: golden.Of(1, 5, ofEmulationOnRows+" at the position", "the same reach 3.46 in 300,000 places and positions"),
		},
		OwnRowsInt8: Factors{
			Median: golden.Of(1, 4, ofEmulationOnRows+", over all positions",
				"emulations with other scales of weights and an int8 KV cache reach 3.07 times the level of all layers, on 34 prompts and two checkpoints"),
			Single: golden.Of(1, 12, ofEmulationOnRows+" at the position", "the same reach 8.9 in 300,000 places and positions"),
		},
		OwnRowsUnknown: Factors{
			Median: golden.Of(1, 4, ofEmulationOnRows+", over all positions",
				"in levels of all layers torch's 7-bit kernels and transformers in bfloat16 stay below, in 20 prompts"),
			Single: golden.Of(13, 2, ofEmulationOnRows+" at the position", "transformers in bfloat16 reaches 13 levels of all layers, in 20 prompts"),
		},
		OwnRowsFloat: Factors{
			Median: golden.Of(1, 4, ofFloatOnRows+", over all positions", "transformers in float32 reaches 2.7 in ten places of 28 layers, 20 prompts"),
			Single: golden.Of(1, 20, ofFloatOnRows+" at the position",
				"transformers reaches 6.7, where the float32 engine happens to be near float64; planted faults are tens to thousands of times larger"),
		},
		Golden: golden.Of(1, 4, "the golden's own error from float64, as its manifest records it",
			"the engine and transformers each stray that far from float64, in independent directions; 1.6 was seen"),
		GoldenPlain: golden.Of(1, 4, ofFloat,
			"both sides stray about that far from float64, in independent directions; 1.6 was seen"),
		Target: golden.Of(1, 2, "the target's own error from float64, as its manifest records it",
			"two runs in bfloat16 stray that far from float64, in independent directions where a sum next to a tie falls otherwise; 1.26 was seen"),
		TargetPlain: golden.Of(1, 2, "the reference's own error from float64 in the target's arithmetic",
			"both sides stray about that far from float64; 0.97 was seen"),
		RouteBand: golden.Of(1, 2, "what the yardstick has differences of a chosen and another expert's logits off by, at the layer's 99th percentile",
			"choices of transformers in bfloat16 and of two emulations of it need at most 1.1 times that, in 1,900 routes"),
		RouteWeights: golden.Of(1, 4, "the yardstick's error, at the layer's 99th percentile",
			"two ways to round attention in bfloat16 reach 2.0 in single prompts, 1.6 in more"),
		RouteRate: golden.Of(0.05, 2e-5, "the smallest probability of a sound engine's near ties, at the yardstick's rate",
			"64 of 523 fall otherwise where the yardstick's 47 of 528 do, the least likely of 14 comparisons; rows of one prompt aren't independent"),
		BatchedVersusIncremental: golden.Of(1, 10, ofFloat,
			"two orders of summation of one engine; a planted fault must miss this by another factor of 10"),
		EmbedCodes: golden.Of(0.5, 1, "half a code of the row plus half a code of an embedding table with one scale",
			"rounding twice; the clean engine uses 1.14 codes of the row, of 1.18 allowed"),
		OneLayerShape: golden.Of(1.8, 1, "the largest local error elsewhere",
			"one-layer faults of two real engines stand out by at least 3.1"),
		NextLayerShare: golden.Of(0.62, 1, "the first local error",
			"faults of all layers, planted in an int8 emulation of a real engine's checkpoint: 0.67 to 1.24; of layer 0 or 1 alone: 0.19 to 0.57"),
		AllLayersShare: golden.Of(0.35, 1, "the first local error",
			"faults of all layers, planted likewise: 0.42 to 0.88"),
		Outlier: golden.Of(1, 1.6, "the lower quartile of the local errors over the layers",
			"medians of clean runs, the engine's and other emulations', stay below 1.25"),
		OutlierUnknown: golden.Of(1.63, 1.5, "the largest median, in lower quartiles over the layers, of a sound engine whose arithmetic is not emulated",
			"transformers in bfloat16 reaches 1.63 in 20 prompts, torch's 7-bit kernels less"),
		OutlierSingle: golden.Of(3.1, 1.5, "the largest local error, in lower quartiles over the layers, of a sound engine whose arithmetic is not emulated",
			"torch's 7-bit kernels for x86 reach 3.1 in 26 prompts of two checkpoints"),
		LogitRow: golden.Of(2.2, 2.5, "the largest error of a row over the int8 emulation's that a sound engine showed",
			"2.2 in 2,000 rows of a clean engine and of other emulations"),
		LogitRowFloat: golden.Of(2.3, 5, "the largest error of a row over the float32 engine's that transformers showed",
			"2.3 in 142 rows; another order of summation and another cache may double it"),
		Float32Noise: golden.ByHand(1e-4, "float32 engines were seen 1e-6 to 1e-5 from float64 in their logits; more is a fault", handSet),
		WrongPick: golden.Of(1, 2, "the tie band",
			"a clean engine stays within the band; a legitimate option of it left it once in 72 picks, by 1.4"),
		Drifts: golden.Of(1.0/72, 4, "the share of drifted picks of a legitimate option of a clean engine",
			"1 of 72; the clean engine and other emulations: none"),
		MeanRegret: golden.Of(0.054, 4, "the mean regret of a sound int8 engine, in the noise of a difference of two logits",
			"emulations 0.02 to 0.06, a clean engine 0.05, a legitimate option of it 0.1"),
		Gain: golden.Of(0.018, 2, "the largest gain that a sound int8 engine showed beyond the yardstick's",
			"emulations with other scales of weights and another KV cache: 0.018 in 34 prompts of two checkpoints"),
		GainKnown: golden.Of(0.007, 2, "the largest gain that a sound engine with known weights showed beyond the yardstick's",
			"llama.cpp 0.0006, emulations with another KV cache 0.007"),
		GainChannel: golden.Of(1, 2, "the largest t-value of a channel in the int8 emulation's own error, over the layers",
			"sound emulations reach 1.0; a dead channel gives 4 to 30"),
		ChannelSlope: golden.ByHand(0.25, "a dead channel has 1, one of the wrong sign 2; it goes with the bound on the t-value", handSet),
		Level: golden.Of(1.2, 1.25, "the lower quartile of a sound engine's errors over the layers",
			"emulations with other scales of weights and another KV cache reach 1.2"),
		AllLayers:  golden.ByHand(0.5, "it only names what another bound has found", handSet),
		Nearer:     golden.ByHand(0.5, "it only names what another bound has found", handSet),
		EmbedNear:  golden.ByHand(0.25, "two tokens' rows are a whole distance apart, a rounded table is a hundredth", handSet),
		SwapMargin: golden.ByHand(3, "it only names what another bound has found", handSet),
	}
}

// handSet is when the bounds without a measurement are to be looked at again.
const handSet = "2027-12-31"

// expired names the bounds that were set by hand and whose date has passed.
func (b Budgets) expired(now time.Time) []string {
	return expired(map[string]golden.Budget{"Nearer": b.Nearer, "EmbedNear": b.EmbedNear, "SwapMargin": b.SwapMargin, "ChannelSlope": b.ChannelSlope,
		"AllLayers": b.AllLayers, "Float32Noise": b.Float32Noise}, now)
}

func expired(bounds map[string]golden.Budget, now time.Time) []string {
	var out []string
	for name, x := range bounds {
		if x.Expired(now) {
			out = append(out, fmt.Sprintf("the bound %s was set by hand (%s) and was to be looked at again by %s", name, x.Why, x.Expires))
		}
	}
	slices.Sort(out)
	return out
}
