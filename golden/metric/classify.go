package metric

// Kind says whether a row can be measured at all.
type Kind int

// Kinds of rows. Only an Ordinary row has a direction and a scale to compare.
const (
	// Ordinary is a finite row with at least two different values.
	Ordinary Kind = iota
	// Empty is a row without elements.
	Empty
	// NonFinite is a row that holds a NaN or an infinity.
	NonFinite
	// AllZero is a row of zeros (of either sign).
	AllZero
	// Constant is a finite row of one repeated value other than zero. A row of
	// one element is Constant (or AllZero).
	Constant
)

func (k Kind) String() string {
	switch k {
	case Ordinary:
		return "ordinary"
	case Empty:
		return "empty"
	case NonFinite:
		return "non-finite"
	case AllZero:
		return "all zero"
	case Constant:
		return "constant"
	}
	return "unknown"
}

// Class is what [Classify] found.
type Class struct {
	Kind Kind
	// Index is the first NaN or infinity of a NonFinite row, else -1.
	Index int
	// Value is the value at Index, or the repeated value of a Constant row.
	Value float64
}

// Degenerate is true for every kind but Ordinary.
func (c Class) Degenerate() bool { return c.Kind != Ordinary }

// Classify tells whether a row is finite and not degenerate.
func Classify(row []float64) Class {
	if len(row) == 0 {
		return Class{Kind: Empty, Index: -1}
	}
	for i, x := range row {
		if !finite(x) {
			return Class{Kind: NonFinite, Index: i, Value: x}
		}
	}
	if !constant(row) {
		return Class{Kind: Ordinary, Index: -1}
	}
	if row[0] == 0 {
		return Class{Kind: AllZero, Index: -1}
	}
	return Class{Kind: Constant, Index: -1, Value: row[0]}
}

// Finite reports whether the row holds no NaN and no infinity, and the index of
// the first one if it does (-1 otherwise). An empty row is finite.
func Finite(row []float64) (first int, ok bool) {
	for i, x := range row {
		if !finite(x) {
			return i, false
		}
	}
	return -1, true
}

func finite(x float64) bool { return x-x == 0 }

// constant is true when all elements are equal and finite.
func constant(row []float64) bool {
	for _, x := range row {
		if x != row[0] || !finite(x) {
			return false
		}
	}
	return true
}
