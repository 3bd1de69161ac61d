package conformance

import (
	"fmt"
	"math"
	"strings"

	"github.com/plumbline-go/plumbline/engine"
)

// headsMoved says which head's values each head of a place holds, where the heads
// are right but for their order; nil where they aren't. margin is how much better
// the other order must fit. Position 0 counts too: a single one is enough.
func headsMoved(rows, want [][]float64, headDim, n int, margin float64) []int {
	heads := len(want[0]) / headDim
	if heads < 2 {
		return nil
	}
	order, taken, moved := make([]int, heads), make([]bool, heads), false
	var own, other float64
	for h := range heads {
		best, least := 0, math.Inf(1)
		for g := range heads {
			var sum float64
			for t := range n {
				d := distance(rows[t][h*headDim:(h+1)*headDim], want[t][g*headDim:(g+1)*headDim])
				sum += d * d
			}
			if g == h {
				own += sum
			}
			if sum < least {
				best, least = g, sum
			}
		}
		if taken[best] {
			return nil
		}
		taken[best], order[h] = true, best
		moved = moved || best != h
		other += least
	}
	if !moved || math.Sqrt(own) < margin*math.Sqrt(other) {
		return nil
	}
	return order
}

// hasHeads reports whether a place is heads side by side.
func hasHeads(part engine.Part) bool {
	switch part {
	case engine.PartQ, engine.PartK, engine.PartV, engine.PartQRope, engine.PartKRope, engine.PartAttnOut:
		return true
	}
	return false
}

// headsNote names the order.
func headsNote(order []int) string {
	names := make([]string, len(order))
	for i, g := range order {
		names[i] = fmt.Sprint(g)
	}
	return "its heads hold the values of heads " + strings.Join(names, ", ")
}
