package golden_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/plumbline-go/plumbline/golden"
)

func TestBudgetHolds(t *testing.T) {
	b := golden.Of(0.01, 3, "a measurement", "a reason")
	for _, tc := range []struct {
		got   float64
		holds bool
	}{{0, true}, {0.03, true}, {math.Nextafter(0.03, 1), false}, {math.NaN(), false}, {math.Inf(1), false}, {math.Inf(-1), true}} {
		assert.Equal(t, tc.holds, b.Holds(tc.got), "%v", tc.got)
	}
	assert.False(t, golden.Budget{}.Holds(1e-300), "the zero budget allows nothing but zero")
}

func TestBudgetByHandExpires(t *testing.T) {
	b := golden.ByHand(0.5, "why", "2030-01-31")
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	assert.False(t, b.Expired(day("2030-01-31")))
	assert.True(t, b.Expired(day("2030-02-01")))
	assert.False(t, golden.Of(1, 2, "x", "y").Expired(day("2999-01-01")), "a measured bound doesn't expire")
}

func ExampleOf() {
	b := golden.Of(0.0012, 3, "the emulation's own error on the same prompt", "clean runs reach 2.2 times it")
	fmt.Println(b.Holds(0.0030), b.Holds(0.0040), b.Describe())
	// Output: true false 3 times the emulation's own error on the same prompt
}
