package metric

import (
	"cmp"
	"math"
	"slices"
)

// sorter sorts rows of one length, below 2^31, and keeps its memory.
type sorter struct {
	sorted, spare []entry
	ranks         []uint32 // for the caller
}

// resize makes room for rows of n elements.
func (s *sorter) resize(n int) {
	if cap(s.sorted) < n {
		s.sorted, s.spare, s.ranks = make([]entry, n), make([]entry, n), make([]uint32, n)
	}
	s.sorted, s.spare, s.ranks = s.sorted[:n], s.spare[:n], s.ranks[:n]
}

// entry is an element of a row: a key, which orders as the values do and is
// equal where they are, above its load.
type entry uint64

func entryOf(key, load uint32) entry { return entry(key)<<32 | entry(load) }
func (e entry) key() uint32          { return uint32(e >> 32) }
func (e entry) load() uint32         { return uint32(e) }

// fewest is the length below which comparing is faster than counting.
const fewest = 1024

// sort leaves the row's elements in sorted, smallest first. An element's load is
// that of its index, or the index itself where loads is nil. The row holds no
// NaN and has the length that the sorter was resized to.
//
// The values of a dump are float32 or int32, so 32 bits order them, and three
// rounds of counting sort a vocabulary of 151,936 some ten times as fast as
// comparing does. Other rows are compared first, and keyed by their place.
func (s *sorter) sort(row []float64, loads []uint32) {
	if len(row) < fewest || !s.keyInts(row, loads) && !s.keyFloats(row, loads) {
		s.compare(row, loads)
		return
	}
	s.count()
}

// loadOf is what element i carries.
func loadOf(loads []uint32, i int) uint32 {
	if loads == nil {
		return uint32(i)
	}
	return loads[i]
}

// keyFloats keys float32 values; false when one isn't.
func (s *sorter) keyFloats(row []float64, loads []uint32) bool {
	const sign = 1 << 31
	out := s.sorted[:len(row)]
	for i, x := range row {
		f := float32(x)
		if float64(f) != x {
			return false
		}
		if f == 0 {
			f = 0 // -0 too
		}
		// Of negative values the larger bits are the smaller value, so all bits
		// turn over; of the others the sign alone. Without a branch, because
		// signs are random.
		bits := math.Float32bits(f)
		bits ^= uint32(int32(bits)>>31) | sign
		out[i] = entryOf(bits, loadOf(loads, i))
	}
	return true
}

// keyInts keys int32 values by their distance from the smallest; false when one
// isn't.
func (s *sorter) keyInts(row []float64, loads []uint32) bool {
	low := int64(math.MaxInt32)
	for _, x := range row {
		if !(x >= math.MinInt32 && x <= math.MaxInt32) || float64(int64(x)) != x {
			return false
		}
		low = min(low, int64(x))
	}
	out := s.sorted[:len(row)]
	for i, x := range row {
		out[i] = entryOf(uint32(int64(x)-low), loadOf(loads, i))
	}
	return true
}

// count sorts by the keys without comparing (radix sort; D. E. Knuth, "The Art of
// Computer Programming" 3, 5.2.5): first by their upper digit, then each run of
// one upper digit by the other two, the lowest first. A run mostly fits the
// fastest cache.
func (s *sorter) count() {
	var upper [1 << upperDigit]uint32
	for _, e := range s.sorted {
		upper[e>>(64-upperDigit)]++
	}
	if upper[s.sorted[0]>>(64-upperDigit)] == uint32(len(s.sorted)) {
		countRun(s.sorted, s.spare)
		s.sorted, s.spare = s.spare, s.sorted
		return
	}
	starts(upper[:])
	for _, e := range s.sorted {
		at := &upper[e>>(64-upperDigit)]
		s.spare[*at] = e
		*at++
	}
	from := uint32(0)
	for _, to := range upper {
		if to > from {
			countRun(s.spare[from:to], s.sorted[from:to])
			from = to
		}
	}
}

const (
	upperDigit = 11
	digits     = 21 // the other bits of a key
	lowDigit   = 11
)

// countRun sorts a run of keys with one upper digit, and leaves the result in
// out.
func countRun(run, out []entry) {
	if len(run) < 64 {
		copy(out, run)
		slices.SortFunc(out, func(x, y entry) int { return cmp.Compare(x.key(), y.key()) })
		return
	}
	var low [1 << lowDigit]uint32
	var middle [1 << (digits - lowDigit)]uint32
	for _, e := range run {
		low[e>>32%(1<<lowDigit)]++
		middle[e>>(32+lowDigit)%(1<<(digits-lowDigit))]++
	}
	starts(low[:])
	for _, e := range run {
		at := &low[e>>32%(1<<lowDigit)]
		out[*at] = e
		*at++
	}
	if middle[run[0]>>(32+lowDigit)%(1<<(digits-lowDigit))] == uint32(len(run)) {
		return // they don't differ further up
	}
	starts(middle[:])
	for _, e := range out {
		at := &middle[e>>(32+lowDigit)%(1<<(digits-lowDigit))]
		run[*at] = e
		*at++
	}
	copy(out, run)
}

// starts turns counts into the places where their elements start.
func starts(counts []uint32) {
	at := uint32(0)
	for i, n := range counts {
		counts[i], at = at, at+n
	}
}

// compare sorts any row; equal values get one key.
func (s *sorter) compare(row []float64, loads []uint32) {
	for i := range row {
		s.sorted[i] = entry(i)
	}
	slices.SortFunc(s.sorted, func(x, y entry) int { return cmp.Compare(row[x.load()], row[y.load()]) })
	var key uint32
	var last float64
	for i, e := range s.sorted {
		x := row[e.load()]
		if i > 0 && x != last {
			key++
		}
		s.sorted[i], last = entryOf(key, loadOf(loads, int(e.load()))), x
	}
}
