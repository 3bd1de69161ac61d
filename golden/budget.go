package golden

import (
	"fmt"
	"time"
)

// Budget is an upper bound on a metric, with its origin.
type Budget struct {
	// Value is the bound. A metric conforms when metric <= Value; a NaN never
	// does.
	Value float64 `json:"value"`
	// Source says which measurement the bound is a multiple of.
	Source string `json:"source"`
	// Multiple is how many times the measured figure the bound is; 1 when the
	// bound is the figure itself.
	Multiple float64 `json:"multiple"`
	// Why says what was measured to choose the multiple.
	Why string `json:"why"`
	// Expires is the date, YYYY-MM-DD, after which a bound that was set by hand
	// has to be looked at again; empty for one that follows from a measurement.
	Expires string `json:"expires,omitempty"`
}

// Expired reports whether the bound was set by hand and its date has passed.
func (b Budget) Expired(now time.Time) bool {
	return b.Expires != "" && now.Format(time.DateOnly) > b.Expires
}

// Holds reports whether got is within the budget. NaN is not.
func (b Budget) Holds(got float64) bool { return got <= b.Value }

// Of derives a budget: multiple times a measured figure. source names the
// figure, why the measurement behind the multiple.
func Of(measured, multiple float64, source, why string) Budget {
	return Budget{Value: measured * multiple, Source: source, Multiple: multiple, Why: why}
}

// Describe renders where the bound comes from: "2 times the emulation's error".
func (b Budget) Describe() string { return fmt.Sprintf("%.3g times %s", b.Multiple, b.Source) }

// ByHand sets a bound that no measurement gives. It needs a reason and a date
// on which to look at it again, YYYY-MM-DD.
func ByHand(value float64, why, expires string) Budget {
	return Budget{Value: value, Multiple: 1, Source: "set by hand", Why: why, Expires: expires}
}
