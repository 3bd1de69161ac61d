package conformance

import (
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
)

// smokeTable is one dump of an answer to a fake.
type smokeTable struct {
	name, file, dtype string // layers or logits; its file, which may be empty; the declared type
	want              [][]float64
	rows, width       int
	read              func(int, []float64) error
}

// judge says which answer the dump holds, right or wrong; the error says where it is
// neither.
func (t smokeTable) judge(k engine.Case) (saw string, err error) {
	if t.rows != len(t.want) || t.width != len(t.want[0]) {
		return SmokeSawOther, fmt.Errorf("%s: got %d rows of %d, want %d of %d: the program doesn't know the fakes",
			t.name, t.rows, t.width, len(t.want), len(t.want[0]))
	}
	got := make([][]float64, t.rows)
	for i := range got {
		got[i] = make([]float64, t.width)
		if err := t.read(i, got[i]); err != nil {
			return SmokeSawOther, err
		}
	}
	for i, want := range t.want {
		for j := range want {
			now := SmokeSawOther
			switch got[i][j] {
			case want[j]:
				now = SmokeSawRight
			case want[j] + 1:
				now = SmokeSawWrong
			}
			if saw == "" {
				saw = now
			}
			if now != saw || now == SmokeSawOther {
				return SmokeSawOther, fmt.Errorf("%s%s: row %d, channel %d: got %v, want %v in the right answer and %v in the wrong one%s",
					t.name, t.at(i, j), i, j, got[i][j], want[j], want[j]+1, t.resembles(k, got))
			}
		}
	}
	return saw, nil
}

// at is where in its file a value stands; empty for an answer without one.
func (t smokeTable) at(row, channel int) string {
	size := map[string]int{engine.LayersFloat32: 4, engine.LayersInt8Scaled: 1, engine.LogitsInt32: 4}[t.dtype]
	if t.file == "" || size == 0 {
		return ""
	}
	head, rowHead := 32, 0 // see package dumpfmt
	if t.name == "logits" {
		head = 16
	}
	if t.dtype == engine.LayersInt8Scaled {
		rowHead = 16
	}
	return fmt.Sprintf(" %s, byte 0x%X", t.file, head+row*(rowHead+t.width*size)+rowHead+channel*size)
}

// resembles says what else the values are: those of the other fake, or rows that have
// changed places.
func (t smokeTable) resembles(k engine.Case, got [][]float64) string {
	other := engine.SmokeRight()
	if k.Name == other.Name {
		other = engine.SmokeWrong()
	}
	for _, like := range []struct {
		rows [][]float64
		text string
	}{
		{engine.SmokeRows(other)[:t.rows], fmt.Sprintf("; these are the values of an answer to %s", other.Name)},
		{reversed(t.want), "; its rows have changed places"},
	} {
		for plus := range 2 {
			same := true
			for i := range got {
				for j, x := range got[i] {
					same = same && x == like.rows[i][j]+float64(plus)
				}
			}
			if same {
				return like.text
			}
		}
	}
	return ""
}

func reversed(rows [][]float64) [][]float64 {
	out := make([][]float64, 0, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		out = append(out, rows[i])
	}
	return out
}
