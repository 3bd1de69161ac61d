package conformance

import "github.com/plumbline-go/plumbline/golden"

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
	// BatchedVersusIncremental bounds, in multiples of the float32 engine's own
	// error from float64 (at least one rounding), how far the batched and the
	// incremental run of the same engine may lie apart.
	BatchedVersusIncremental golden.Budget
	// EmbedCodes bounds the channels of an int8 row 0, in roundings: half a
	// code of the row plus half a code of a table quantised with one scale.
	EmbedCodes golden.Budget
	// OneLayerShape tells a fault in one layer from one in several, by first /
	// largest outside {first, first+1}.
	OneLayerShape golden.Budget
	// AllLayersShare tells a fault in all layers from one in two, by the upper
	// quartile outside {first, first+1} over the first.
	AllLayersShare golden.Budget
	// BadRowShape is (first+1)/first from which a bad row or a swap is looked
	// for.
	BadRowShape golden.Budget
	// Outlier bounds the local error of one layer in multiples of the lower
	// quartile over all layers. It tightens Factors.Median, and is all there is
	// when the yardstick doesn't emulate the candidate's arithmetic.
	Outlier golden.Budget
}

// DefaultBudgets returns the bounds with the measurements they come from.
func DefaultBudgets() Budgets {
	return Budgets{
		Int8: Factors{
			Median: golden.Of(1, 2, "the int8 emulation's own error on the same prompt, median over the cases; "+
				"a real clean int8 engine reaches 1.5"),
			Single: golden.Of(1, 3, "the int8 emulation's own error on the same prompt; "+
				"a real clean int8 engine reaches 2.2 in 252 layer measurements"),
		},
		Float: Factors{
			Median: golden.Of(1, 6, "the float32 engine's own error from float64 on the same prompt, median over the cases"),
			Single: golden.Of(1, 10, "the float32 engine's own error from float64 on the same prompt"),
		},
		BatchedVersusIncremental: golden.Of(1, 10, "the float32 engine's own error from float64 on the same prompt"),
		EmbedCodes:               golden.Of(0.5, 1, "half a code of the row, and half a code of an embedding table with one scale"),
		OneLayerShape:            golden.Of(1.8, 1, "one-layer faults of two real engines stand out by at least this"),
		AllLayersShare:           golden.Of(0.35, 1, "0.54 for a wrong rotary base in a real engine, at most 0.2 behind its one-layer faults"),
		BadRowShape:              golden.Of(0.9, 1, "a bad row spoils the layer before and after it alike"),
		Outlier: golden.Of(1, 1.6, "the lower quartile over the layers; medians of clean runs, a real int8 engine "+
			"and emulations in other schemes, stay below 1.25 of it"),
	}
}
