package metric

import (
	"cmp"
	"math"
	"slices"
)

// sorter sorts rows and keeps its memory between two of the same length, which
// is below 2^31.
type sorter struct{ sorted, spare []entry }

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
// NaN.
//
// The values of a dump are float32 or int32, so 32 bits order them, and three
// rounds of counting sort a vocabulary of 151,936 some ten times as fast as
// comparing does. Other rows are compared first, and keyed by their place.
func (s *sorter) sort(row []float64, loads []uint32) {
	if len(s.sorted) != len(row) {
		s.sorted, s.spare = make([]entry, len(row)), make([]entry, len(row))
	}
	if len(row) >= fewest && (s.keyInts(row) || s.keyFloats(row)) {
		s.load(loads)
		s.count()
		return
	}
	s.compare(row)
	s.load(loads)
}

// load replaces the indices that the elements carry.
func (s *sorter) load(loads []uint32) {
	if loads == nil {
		return
	}
	for i, e := range s.sorted {
		s.sorted[i] = entryOf(e.key(), loads[e.load()])
	}
}

// keyFloats keys float32 values; false when one isn't.
func (s *sorter) keyFloats(row []float64) bool {
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
		out[i] = entryOf(bits, uint32(i))
	}
	return true
}

// keyInts keys int32 values by their distance from the smallest; false when one
// isn't.
func (s *sorter) keyInts(row []float64) bool {
	low := int64(math.MaxInt32)
	for _, x := range row {
		if !(x >= math.MinInt32 && x <= math.MaxInt32) || float64(int64(x)) != x {
			return false
		}
		low = min(low, int64(x))
	}
	out := s.sorted[:len(row)]
	for i, x := range row {
		out[i] = entryOf(uint32(int64(x)-low), uint32(i))
	}
	return true
}

// count sorts by the keys, digit after digit from the lowest (radix sort; D. E.
// Knuth, "The Art of Computer Programming" 3, 5.2.5). Digits in which no two keys
// differ are left out: the logits of an integer engine mostly fill 22 bits.
func (s *sorter) count() {
	const rounds, digit = 3, 11
	var counts [rounds][1 << digit]uint32
	for _, e := range s.sorted {
		v := e.key()
		counts[0][v&(1<<digit-1)]++
		counts[1][v>>digit&(1<<digit-1)]++
		counts[2][v>>(2*digit)]++
	}
	first := s.sorted[0].key()
	for k := range rounds {
		place := &counts[k]
		if place[first>>(k*digit)&(1<<digit-1)] == uint32(len(s.sorted)) {
			continue
		}
		at := uint32(0)
		for i, n := range place {
			place[i], at = at, at+n
		}
		shift := 32 + k*digit
		from, to := s.sorted, s.spare
		for _, e := range from {
			p := &place[e>>shift&(1<<digit-1)]
			to[*p] = e
			*p++
		}
		s.sorted, s.spare = to, from
	}
}

// compare sorts any row; equal values get one key.
func (s *sorter) compare(row []float64) {
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
		s.sorted[i], last = entryOf(key, e.load()), x
	}
}
