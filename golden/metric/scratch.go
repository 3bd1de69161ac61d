package metric

import "sync"

// A vocabulary's row is a megabyte, and collecting three or four of them after
// each call cost as much as the arithmetic. So scratch is lent and given back.
var (
	rowScratch  = sync.Pool{New: func() any { return new([]float64) }}
	sortScratch = sync.Pool{New: func() any { return new(sorter) }}
)

// borrowRow lends n elements that hold anything. giveRow takes them back.
func borrowRow(n int) *[]float64 {
	p := rowScratch.Get().(*[]float64)
	if cap(*p) < n {
		*p = make([]float64, n)
	}
	*p = (*p)[:n]
	return p
}

func giveRow(p *[]float64) { rowScratch.Put(p) }
