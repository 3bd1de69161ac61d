package conformance

import (
	"time"

	"github.com/plumbline-go/plumbline/golden"
)

// crossCPU is how far the reference's rows lie apart on two CPU models, relative L2: both
// add in other orders. What the second model recorded is not kept, so that no test
// measures it anew; TestCrossCPUIsRounding holds it to the recordings' own error.
var crossCPU = golden.Of(9.4e-7, 1, "the largest relative L2 between two CPU models' float32 recordings",
	"measured once, when the trained checkpoint's goldens were recorded again on another x86-64 model; "+
		"the recordings themselves are up to 1.22e-6 from float64 (golden/qwen2-trained.manifest.json), and .ci/rounding.py allows 4 times that")

var (
	// asExact is the ratio to the yardstick's error below which an error is as good as
	// none.
	asExact = golden.ByHand(0.01, "an engine a hundred times nearer to the reference than the yardstick has nothing left to get worse by", handSet)
	// baselineFalseAlarm is the probability that a build whose roundings merely fall
	// otherwise is called worse, over all figures of a run together.
	baselineFalseAlarm = golden.ByHand(0.01, "one red run in a hundred that nothing explains is as many as a gate is still believed with", handSet)
	// fewestPairs is the number of cases from which their differences say how large
	// noise is, fewestPlaces that of places.
	fewestPairs  = golden.ByHand(3, "with two, Student's t at 1 % over a hundred figures is beyond 3000 standard errors", handSet)
	fewestPlaces = golden.ByHand(8, "so that one layer that got worse, and the one behind it, leave the median absolute deviation alone", handSet)
)

// baselineExpired says which of the above are to be looked at again.
func baselineExpired(now time.Time) []string {
	return expired(map[string]golden.Budget{"asExact": asExact, "baselineFalseAlarm": baselineFalseAlarm,
		"fewestPairs": fewestPairs, "fewestPlaces": fewestPlaces}, now)
}
