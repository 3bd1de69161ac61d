package kernel

import (
	"math"
	"strings"

	"github.com/plumbline-go/plumbline/golden/metric"
)

// Figures are the numbers of a row, as the CSV has them: in the tensors' unit,
// but for MSE (squared), NRMSE (none) and RelErrPct (per cent).
type Figures struct {
	MaxAbs, MeanAbs, MSE, NRMSE, RelErrPct, RefMeanAbs, CandMeanAbs float64
}

// figuresOf are a tensor's figures by the script's rules.
func figuresOf(s metric.TensorStats) Figures {
	return Figures{s.MaxAbs, s.MeanAbs, s.MSE, s.NRMSE(), s.LegacyRelErrPct(), s.RefMeanAbs, s.CandMeanAbs}
}

// Problem is why a row has no figures.
type Problem uint8

const (
	// None: the row has figures.
	None Problem = iota
	// Missing: a side has no such tensor.
	Missing
	// WrongSize: a side's tensor has another size or shape.
	WrongSize
	// Unreadable: a side's file can't be read as what it should be.
	Unreadable
)

// Row is one tensor of the inventory.
type Row struct {
	Key
	// Problem and Note are set where a side has no tensor to compare; of two
	// sides' problems, the graver. The note is the script's, where it has one:
	// MISSING:PATH or SIZE_MISMATCH:PATH:expected=N,got=N, joined by ";".
	Problem Problem
	Note    string
	// Absent: a recorded CSV has no such row.
	Absent bool

	Figures
	// Stats is nil for a row from a recorded CSV.
	Stats *metric.TensorStats
}

// Compared reports whether the row has figures.
func (r *Row) Compared() bool { return r.Problem == None }

// unreadableNote begins what Plumbline notes where the script has no note: a tensor
// of the right size that can't be read.
const unreadableNote = "UNREADABLE:"

// killsScript reports whether the script ends with a traceback reading the row's
// tensors.
func (r *Row) killsScript() bool {
	return r.Problem == Unreadable && strings.Contains(r.Note, unreadableNote)
}

// NonFinite reports whether either side holds a NaN or an infinity, or values whose
// float32 mean overflows, which the figures can't tell from one.
func (r *Row) NonFinite() bool {
	if r.Stats != nil && r.Stats.NonFinite() > 0 {
		return true
	}
	f := r.Figures
	for _, x := range []float64{f.MaxAbs, f.MeanAbs, f.NRMSE, f.RelErrPct, f.RefMeanAbs, f.CandMeanAbs} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return true
		}
	}
	return math.IsNaN(f.MSE) // the square of a sound difference may overflow
}

// ZeroReference reports whether the reference is all zero: nRMSE has no
// denominator then.
func (r *Row) ZeroReference() bool {
	if r.Stats != nil {
		return r.Stats.SumSqRef == 0
	}
	return r.RefMeanAbs == 0
}

// Relative is the row's nRMSE, no number where there is no denominator, or no figure.
func (r *Row) Relative() float64 {
	switch {
	case !r.Compared():
		return math.NaN()
	case r.Stats != nil:
		return r.Stats.RelativeL2()
	case r.ZeroReference():
		return math.NaN()
	}
	return r.NRMSE
}
