package teacher

import (
	"context"
	"fmt"
	"math"
)

// Session is one sequence in a model, with its cache.
type Session interface {
	// Prefill runs the prompt in one batch and returns the row of logits after its
	// last id, valid until the next call.
	Prefill(ctx context.Context, ids []int) ([]float32, error)
	// Step appends one id and returns the row after it, valid until the next call.
	Step(ctx context.Context, id int) ([]float32, error)
	Close() error
}

// Trajectory is a greedy continuation of a generation prompt.
type Trajectory struct {
	// Example is the index of the example.
	Example int
	// Tokens are [GreedyTokens] ids, the first of them that of the point's row.
	Tokens []int
}

// Calls is how often a run calls its sessions.
func (p *Plan) Calls() int {
	n := 0
	for _, s := range p.stretches() {
		n += 1 + s.positions() - s.points[0].Prefix
	}
	return n
}

// MaxPositions is how many positions the longest session of a run has.
func (p *Plan) MaxPositions() int {
	n := 0
	for _, s := range p.stretches() {
		n = max(n, s.positions())
	}
	return n
}

// stretch is an example with its points, and whether a trajectory follows.
type stretch struct {
	example int
	points  []Point
	prompt  bool
}

// stretches are in the order in which they are run, that of the points.
func (p *Plan) stretches() []stretch {
	prompts := make(map[int]bool, len(p.Prompts))
	for _, x := range p.Prompts {
		prompts[x.Example] = true
	}
	var all []stretch
	for at := 0; at < len(p.Points); {
		e := p.Points[at].Example
		end := at
		for end < len(p.Points) && p.Points[end].Example == e {
			end++
		}
		all = append(all, stretch{e, p.Points[at:end], prompts[e]})
		at = end
	}
	return all
}

func (s stretch) positions() int {
	n := s.points[len(s.points)-1].Prefix
	if s.prompt {
		n += GreedyTokens - 1
	}
	return n
}

// RowError says that a session's row is not one of the plan's model.
type RowError struct {
	// Example is the stable id, Position how many tokens the row follows.
	Example         string
	Position        int
	What, Got, Want string
}

func (e *RowError) Error() string {
	return fmt.Sprintf("teacher: example %s, row after %d tokens: %s: got %s, want %s", e.Example, e.Position, e.What, e.Got, e.Want)
}

// Execute runs a plan as the script does: per example with points, in order, one
// batched prefill to its first point and single steps from there; after a generation
// prompt [GreedyTokens] greedy tokens, of which the lowest id wins a tie and none ends
// the run. open makes a session for so many positions, closed before the next one is
// opened. each gets every point with its row, valid during the call, in the order of
// the ordinals. A row of another width, or with a value that isn't finite, is a
// [*RowError].
func Execute(ctx context.Context, plan *Plan, open func(maxPositions int) (Session, error), each func(p Point, row []float32) error) ([]Trajectory, error) {
	var trajectories []Trajectory
	for _, x := range plan.stretches() {
		s, err := open(x.positions())
		if err != nil {
			return nil, fmt.Errorf("teacher: example %s: %w", plan.Examples[x.example].ID, err)
		}
		r := run{ctx: ctx, plan: plan, example: x.example, session: s}
		tokens, err := r.points(x.points, x.prompt, each)
		if cerr := s.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("teacher: example %s: close: %w", plan.Examples[x.example].ID, cerr)
		}
		if err != nil {
			return nil, err
		}
		if x.prompt {
			trajectories = append(trajectories, Trajectory{x.example, tokens})
		}
	}
	return trajectories, nil
}

// run is one example's.
type run struct {
	ctx     context.Context
	plan    *Plan
	example int
	session Session
	at      int // tokens so far
}

// points runs the points, and the trajectory where one is wanted.
func (r *run) points(of []Point, prompt bool, each func(Point, []float32) error) ([]int, error) {
	ids := r.plan.Examples[r.example].Tokens
	row, id, err := r.prefill(ids[:of[0].Prefix])
	if err != nil {
		return nil, err
	}
	for _, p := range of {
		for r.at < p.Prefix {
			if row, id, err = r.step(ids[r.at]); err != nil {
				return nil, err
			}
		}
		if err := each(p, row); err != nil {
			return nil, err
		}
	}
	if !prompt {
		return nil, nil
	}
	tokens := []int{id}
	for len(tokens) < GreedyTokens {
		if _, id, err = r.step(id); err != nil {
			return nil, err
		}
		tokens = append(tokens, id)
	}
	return tokens, nil
}

func (r *run) prefill(ids []int) ([]float32, int, error) {
	row, err := r.session.Prefill(r.ctx, ids)
	r.at = len(ids)
	return r.checked(row, err)
}

func (r *run) step(id int) ([]float32, int, error) {
	row, err := r.session.Step(r.ctx, id)
	r.at++
	return r.checked(row, err)
}

// checked is the row with its argmax.
func (r *run) checked(row []float32, err error) ([]float32, int, error) {
	id := r.plan.Examples[r.example].ID
	if err != nil {
		return nil, 0, fmt.Errorf("teacher: example %s, row after %d tokens: %w", id, r.at, err)
	}
	if len(row) != r.plan.Vocab {
		return nil, 0, &RowError{id, r.at, "width", fmt.Sprint(len(row)), fmt.Sprintf("%d, the plan's vocabulary", r.plan.Vocab)}
	}
	best := 0
	for i, x := range row {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 { // NaN or infinite
			return nil, 0, &RowError{id, r.at, fmt.Sprintf("value %d", i), fmt.Sprint(x), "a finite value"}
		}
		if x > row[best] {
			best = i
		}
	}
	return row, best, nil
}
