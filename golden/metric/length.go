package metric

import "fmt"

// LengthError is the panic value for rows of different lengths.
type LengthError struct {
	Func      string
	Cand, Ref int
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("metric: %s: candidate has %d elements, reference has %d", e.Func, e.Cand, e.Ref)
}

// mustMatch panics with a *LengthError when the lengths differ.
func mustMatch(fn string, cand, ref int) {
	if cand != ref {
		panic(&LengthError{Func: fn, Cand: cand, Ref: ref})
	}
}
