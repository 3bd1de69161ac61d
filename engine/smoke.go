package engine

// Names of the two fakes.
const (
	smokeName      = "plumbline-smoke"
	smokeWrongName = "plumbline-smoke-wrong"
)

// SmokeRight is the fake case that a program answers all right, if its author
// wants the way between it and Plumbline to be tested: the answer is not the
// model's, but [SmokeRows] and [SmokeLogits] in the program's own formats. A
// program that is run per case knows the fakes by their ids, 1,2,3,4,5 and
// 5,4,3,2,1.
func SmokeRight() Case {
	return Case{Name: smokeName, Text: "plumbline smoke: right", TokenIDs: []int{1, 2, 3, 4, 5},
		Why: "an adapter that is sound lets the right answer through"}
}

// SmokeWrong is the fake case that it answers all wrong: every value is one more
// than it should be.
func SmokeWrong() Case {
	return Case{Name: smokeWrongName, Text: "plumbline smoke: wrong", TokenIDs: []int{5, 4, 3, 2, 1},
		Why: "an adapter that is sound lets the wrong answer through as it is"}
}

// SmokeRows is the right answer to a fake: row 0 holds the token ids, row 1
// their negatives. An int8 side writes them as codes with the scale
// 1073741824*2^-30, which is 1.
func SmokeRows(c Case) [][]float64 {
	rows := [][]float64{make([]float64, len(c.TokenIDs)), make([]float64, len(c.TokenIDs))}
	for i, id := range c.TokenIDs {
		rows[0][i], rows[1][i] = float64(id), -float64(id)
	}
	return rows
}

// SmokeLogits is the right answer to a fake: one row, the token ids.
func SmokeLogits(c Case) [][]float64 { return SmokeRows(c)[:1] }
