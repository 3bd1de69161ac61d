package reference_test

import "testing"

// sweep leaves a test out of a -short run: one that runs many engines and asks about
// their arithmetic alone, which the race detector has no question about.
func sweep(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: a sweep over engines or faults")
	}
}
