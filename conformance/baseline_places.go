package conformance

import (
	"math"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/golden/metric"
)

// normalMAD is the standard deviation of a normal distribution over its median absolute
// deviation, 1/Φ⁻¹(3/4).
const normalMAD = 1.4826

// kindOfPlace groups the figures that are of the same part in other layers.
func (k figureKey) kindOfPlace() [2]string {
	if _, part, ok := engine.Probe(k.probe).Block(); ok {
		return [2]string{k.metric, string(part)}
	}
	return [2]string{k.metric, k.probe}
}

// boundByPlaces widens the bounds by what places of one kind move by among themselves.
// A weight that is rounded otherwise moves its place in every case alike, a little up
// here and down there: the cases can't show that this is noise, other layers can. The
// spread is taken around the median, so that what all layers do is no noise, and by the
// median absolute deviation, so that the layer that got worse doesn't hide itself.
func boundByPlaces(figures []figure) {
	means := map[[2]string][]float64{}
	for _, f := range figures {
		k := f.kindOfPlace()
		means[k] = append(means[k], f.mean)
	}
	bounds := map[[2]string]float64{}
	for k, ms := range means {
		if !enough(len(ms), fewestPlaces) {
			continue
		}
		centre := metric.Median(ms)
		away := make([]float64, len(ms))
		for i, m := range ms {
			away[i] = math.Abs(m - centre)
		}
		bounds[k] = quantile(len(figures), float64(len(ms)-1)) * normalMAD * metric.Median(away)
	}
	for i := range figures {
		if x := bounds[figures[i].kindOfPlace()]; x > 0 {
			// The two are independent: their squares add up.
			figures[i].bound = math.Hypot(figures[i].bound, x)
			figures[i].source += ", with that over the layers"
		}
	}
}
