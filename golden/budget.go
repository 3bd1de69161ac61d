package golden

import "fmt"

// Budget is an upper bound on a metric, with its origin.
type Budget struct {
	// Value is the bound. A metric conforms when metric <= Value; a NaN never
	// does.
	Value float64 `json:"value"`
	// Source says which measurement the bound came from.
	Source string `json:"source"`
	// Multiple is how many times the measured figure the bound is; 1 when the
	// bound is the figure itself.
	Multiple float64 `json:"multiple"`
}

// Holds reports whether got is within the budget. NaN is not.
func (b Budget) Holds(got float64) bool { return got <= b.Value }

// String renders the bound with its source, for failure messages.
func (b Budget) String() string {
	return fmt.Sprintf("%.4g (%gx %s)", b.Value, b.Multiple, b.Source)
}

// Of derives a budget: multiple times a measured figure.
func Of(measured, multiple float64, source string) Budget {
	return Budget{Value: measured * multiple, Source: source, Multiple: multiple}
}
