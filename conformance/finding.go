package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/plumbline-go/plumbline/engine"
)

// Number is a float64 whose JSON form survives NaN and infinities, as the
// strings "NaN", "+Inf" and "-Inf".
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.Marshal(strconv.FormatFloat(f, 'g', -1, 64))
	}
	return json.Marshal(f)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		f, err := strconv.ParseFloat(s, 64)
		*n = Number(f)
		return err
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Limit is the bound a finding was held against.
type Limit struct {
	Value Number `json:"value"`
	// Source says where the bound comes from.
	Source string `json:"source"`
}

// At are the coordinates of a finding; -1 where a coordinate has no meaning.
type At struct {
	Row     int `json:"row"`
	Channel int `json:"channel"`
	// Step is the output token that a row of logits chose, counted from 0; null
	// where there is none.
	Step *int `json:"step,omitempty"`
	// Position is where in the prompt, counted from 0; null where it has no meaning.
	Position *int `json:"position,omitempty"`
	// Point is the ordinal of a prediction point of a teacher's plan; null elsewhere.
	Point *int   `json:"point,omitempty"`
	File  string `json:"file,omitempty"`
}

// Nowhere is the At of a finding without coordinates.
var Nowhere = At{Row: -1, Channel: -1}

// AtRow is the At of a finding on a whole dump row.
func AtRow(row int) At { return At{Row: row, Channel: -1} }

// AtStep is the At of a finding on a row of logits.
func AtStep(step int, file string) At { return At{Row: -1, Channel: -1, Step: &step, File: file} }

// String renders the row with its probe name.
func (a At) String() string {
	if a.Row < 0 {
		return "no row"
	}
	return fmt.Sprintf("%d (%s)", a.Row, engine.RowProbe(a.Row))
}

// Finding is one thing that a check saw: what, how much, the bound and where it
// comes from, and the coordinates.
type Finding struct {
	Probe  engine.Probe `json:"probe,omitempty"`
	Metric string       `json:"metric"`
	Got    Number       `json:"got"`
	Limit  Limit        `json:"limit"`
	At     At           `json:"at"`
	// Exact is true when Got must equal the limit's value.
	Exact bool `json:"exact,omitempty"`
	// Detail is one sentence for people.
	Detail string `json:"detail,omitempty"`
	// follows is true for a finding that another one explains.
	follows bool
}

// String renders the finding on one line.
func (f Finding) String() string {
	s := f.Metric
	if f.Probe != "" {
		s = string(f.Probe) + ": " + s
	}
	if f.Exact {
		s += fmt.Sprintf(": got %v, want %v (%s)", float64(f.Got), float64(f.Limit.Value), f.Limit.Source)
	} else {
		s += fmt.Sprintf(" %.4g, limit %.4g (%s)", float64(f.Got), float64(f.Limit.Value), f.Limit.Source)
	}
	if f.At.Row >= 0 {
		s += fmt.Sprintf(", row %d", f.At.Row)
	}
	if f.At.Position != nil {
		s += fmt.Sprintf(", position %d", *f.At.Position)
	}
	if f.At.Point != nil {
		s += fmt.Sprintf(", point %d", *f.At.Point)
	}
	if f.At.Step != nil {
		s += fmt.Sprintf(", %s", stepName(*f.At.Step))
	}
	if f.At.Channel >= 0 {
		s += fmt.Sprintf(", channel %d", f.At.Channel)
	}
	if f.At.File != "" {
		s += ", " + f.At.File
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}
