package teacher

import (
	"github.com/plumbline-go/plumbline/dumpfmt"
)

// GreedyTokens is the length of a greedy trajectory.
const GreedyTokens = 32

// Kind is what a prediction point is for.
type Kind uint8

const (
	// TeacherForced: the next token is the example's own.
	TeacherForced Kind = iota
	// GenerationNext: the model goes on by itself.
	GenerationNext
)

var kindNames = [...]string{TeacherForced: "teacher_forced", GenerationNext: "generation_next"}

// String returns the kind's tag.
func (k Kind) String() string { return kindNames[k] }

// Plan is a sound plan.
type Plan struct {
	// File is the summary that holds it.
	File string
	// Vocab is the width of a row.
	Vocab    int
	Examples []Example
	// Points are in order: an example's together, in the order of the examples, the
	// prefix never shrinking within one. A point's ordinal is its index.
	Points []Point
	// Prompts are the generation examples that a trajectory is wanted of, in the
	// plan's order.
	Prompts []Prompt
	// InputSHA256 is reference_input_sha256, PlanSHA256 the plan's manifest_sha256.
	InputSHA256, PlanSHA256 Sum
}

// Example is a tokenised text.
type Example struct {
	ID, RenderMode string
	Tokens         []int
}

// Point is a place in an example at which a row of logits is wanted.
type Point struct {
	Ordinal int
	// Example is the index of the example, Prefix how many of its tokens come before.
	Example, Prefix int
	PrefixSHA256    Sum
	Kind            Kind
	// TargetIndex and TargetID are a teacher-forced point's own next token.
	TargetIndex, TargetID int
}

// Prompt is a generation example.
type Prompt struct {
	// Example and Point are indices.
	Example, Point int
	PrefixSHA256   Sum
}

// TargetSpec is what the plan's target file has to hold.
func (p *Plan) TargetSpec() dumpfmt.TargetSpec {
	s := dumpfmt.TargetSpec{Vocab: p.Vocab, Prefixes: make([][32]byte, len(p.Points))}
	for i, x := range p.Points {
		s.Prefixes[i] = x.PrefixSHA256
	}
	return s
}
