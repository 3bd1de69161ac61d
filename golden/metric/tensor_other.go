//go:build !amd64

package metric

func sumLanes(cand, ref []float32, s *pairSums) { sumLanesGeneric(cand, ref, s) }
