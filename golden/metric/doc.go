// Package metric holds the formulas by which Plumbline measures deviation, each
// with its source and its denominator.
//
// # Conventions
//
// A row is a []float64: one residual row, one logit row, one tensor. The first
// argument is the candidate, the second the reference, and a ratio divides by
// the reference; only [KL] has them the other way round, as it is written.
// Float32, bfloat16 and scaled int8 values are exact in float64, so nothing is
// lost before the arithmetic starts.
//
// # NaN, infinities, degenerate rows
//
// Nothing is skipped. A NaN in a row makes every metric of that row NaN, and a
// metric that isn't defined (a zero denominator under a zero numerator, a
// correlation with a constant row, a quantile of nothing) is NaN as well.
// Callers must therefore write bounds as !(got <= limit), which NaN fails.
// [Classify] tells which kind of broken row it is, before any number is read.
//
// # Errors
//
// Rows of different lengths are a programmer error: callers compare shapes
// first, as a verdict of its own. The functions panic with a [*LengthError];
// they never compare the shorter part. Empty rows give NaN.
//
// # Limits
//
// Sums run in float64 without compensation: a relative error of about
// n * 1e-16, far below any budget. [Accumulator] is the streaming form for dumps
// that don't fit in memory. [TensorDiff] is the exception: it adds as numpy does,
// in float32 where numpy does, so that a numpy script's figures are reproduced. No
// budget and no verdict lives here.
package metric
