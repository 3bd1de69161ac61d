// Package golden holds expected values and how much deviation from them is
// allowed, and why that much.
//
// A [Budget] is never a bare number: it carries the measurement it came from.
// Package golden/metric has the formulas that the budgets bound.
//
// # Limits and non-goals
//
// The package judges nothing and runs no engine; recorded goldens with
// provenance are not part of it yet.
package golden
