package report

import (
	"fmt"

	"github.com/plumbline-go/plumbline/conformance"
)

// logitLines sum up the logits: the picks by class, and what gates them. The
// maxima are there to be read; they gate nothing.
func logitLines(s *conformance.LogitSummary) []string {
	if s == nil {
		return nil
	}
	f := func(n conformance.Number) string { return fmt.Sprintf("%.3g", float64(n)) }
	return []string{
		fmt.Sprintf("logits: %d of %d positions compared: %d MATCH, %d TIE-FLIP, %d DRIFT, %d WRONG; top-1 agreement %.1f %%",
			s.Positions, s.Offered, s.Match, s.TieFlip, s.Drift, s.Wrong, 100*float64(s.Top1Agreement)),
		fmt.Sprintf("logits: KL in nats mean %s, p99 %s, max %s (yardstick %s, %s, %s); regret mean %s, max %s; relative L2 mean %s, %s times the yardstick's in the median",
			f(s.KLMean), f(s.KLP99), f(s.KLMax), f(s.YardKLMean), f(s.YardKLP99), f(s.YardKLMax), f(s.RegretMean), f(s.RegretMax),
			f(s.ErrorMean), f(s.ErrorRatioMedian)),
	}
}
