package reference

import (
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/engine"
)

// checkLatent refuses latent attention and experts that can't be computed, and
// those of a family that has none.
func checkLatent(a engine.Arch, bad func(what, got, want string) error) error {
	m := a.Latent
	if a.Family != deepseekV2 {
		if m != (engine.Latent{}) {
			return bad("latent attention", fmt.Sprintf("%+v", m), "none, in the family "+a.Family)
		}
		for n, l := range a.PerLayer {
			if l.Experts != (engine.Experts{}) || l.Yarn != (engine.Yarn{}) || l.ScoreFactor != 0 {
				return bad(fmt.Sprintf("layer %d", n), "experts, YaRN or a score factor", "none, in the family "+a.Family)
			}
		}
		return nil
	}
	switch {
	case m.KVRank < 1 || m.QRank < 0 || m.ValueDim < 1:
		return bad("latent attention", fmt.Sprintf("ranks %d and %d, values of %d", m.KVRank, m.QRank, m.ValueDim), "at least 1, and no negative rank of queries")
	case m.RopeDim < 2 || m.RopeDim%2 != 0 || m.RopeDim >= a.HeadDim:
		return bad("latent attention", fmt.Sprintf("%d of %d dimensions rotate", m.RopeDim, a.HeadDim), "an even number, and not all")
	case a.KVHeads != a.Heads:
		return bad("key-value heads", fmt.Sprint(a.KVHeads), fmt.Sprintf("as many as attention heads, %d", a.Heads))
	}
	for n, l := range a.PerLayer {
		if got, want := checkExperts(l.Experts); got != "" {
			return bad(fmt.Sprintf("layer %d: experts", n), got, want)
		}
		y := l.Yarn
		if y.Factor != 0 && !(y.Factor > 0 && y.BetaFast > 0 && y.BetaSlow > 0 && y.Original > 0) || !(y.TableFactor >= 0) || !(l.ScoreFactor >= 0) {
			return bad(fmt.Sprintf("layer %d: YaRN", n), fmt.Sprintf("%+v, score factor %v", y, l.ScoreFactor), "nothing negative, and with a factor all above 0")
		}
	}
	return nil
}

// checkExperts says what is wrong with the experts of a layer; nothing is.
func checkExperts(x engine.Experts) (got, want string) {
	g := x.Gate
	size := x.Count
	if g.Groups > 0 {
		size = x.Count / g.Groups
	}
	switch {
	case x.Count == 0 && x == engine.Experts{}:
		return "", ""
	case x.Count < 1 || x.Intermediate < 1 || x.Shared < 0:
		return fmt.Sprintf("%d of width %d, %d shared", x.Count, x.Intermediate, x.Shared), "at least 1 of both, and none negative"
	case g.Scoring != engine.ScoringSoftmax && g.Scoring != engine.ScoringSigmoid:
		return fmt.Sprintf("scoring %q", g.Scoring), fmt.Sprintf("%q or %q", engine.ScoringSoftmax, engine.ScoringSigmoid)
	case g.Groups < 0 || g.Groups > 0 && (x.Count%g.Groups != 0 || g.TopGroups < 1 || g.TopGroups > g.Groups):
		return fmt.Sprintf("the best %d of %d groups of %d experts", g.TopGroups, g.Groups, x.Count), "groups of one size, and at least 1 of them"
	case g.Groups > 0 && g.Scoring == engine.ScoringSigmoid && size < 2:
		return fmt.Sprintf("groups of %d", size), "at least 2, whose scores add up"
	case x.PerToken < 1 || x.PerToken > size*max(1, g.TopGroups):
		return fmt.Sprintf("%d per token", x.PerToken), fmt.Sprintf("1 to the %d that can be chosen", size*max(1, g.TopGroups))
	case math.IsNaN(g.Scale) || math.IsInf(g.Scale, 0):
		return fmt.Sprintf("scale %v", g.Scale), "a finite number"
	}
	return checkGateFault(g)
}

// checkGateFault refuses faults that the gate can't have.
func checkGateFault(g engine.Gate) (got, want string) {
	switch g.Fault {
	case "", engine.GateLastWins, engine.GateBFloat16:
		return "", ""
	case engine.GateSoftmaxChosen:
		if g.Scoring == engine.ScoringSoftmax && g.Groups == 0 {
			return "", ""
		}
	case engine.GateMaskZero:
		if g.Scoring == engine.ScoringSigmoid && g.Groups > 0 {
			return "", ""
		}
	}
	return fmt.Sprintf("the fault %q", g.Fault), "one that the gate can have"
}
