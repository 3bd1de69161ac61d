package conformance

import (
	"context"
	"fmt"
	"math"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/metric"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// TargetRow is a row of a target beside the reference's.
type TargetRow struct {
	// Point is the prediction point's ordinal, Example the stable id.
	Point   int
	Example string
	// Error is the relative L2 of the reference's row from the target's; Floor is the
	// target's own error from float64, at least one rounding.
	Error, Floor float64
	// Token is the target's largest logit, Pick the reference's, at the lowest id on
	// ties. Regret is how far the target has Token above Pick. Sigma is the standard
	// deviation of the target's row, Top its largest logit.
	Token, Pick        int
	Regret, Sigma, Top float64
}

// TrajectoryFlip is where the reference's greedy trajectory leaves a recorded one;
// Regret is how far it has its own token above the recorded one, and the rest is that
// of its row. What comes behind has another input.
type TrajectoryFlip struct {
	Point, Step int
	Example     string
	Token, Pick int
	Floor       float64

	Regret, Sigma, Top float64
}

// bfloat16Rounding is one rounding of bfloat16, relative: half a unit in the last
// place.
const bfloat16Rounding = 0x1p-9

// bfloat16Step is the distance of bfloat16 values at x.
func bfloat16Step(x float64) float64 {
	if x == 0 {
		return 0
	}
	_, exp := math.Frexp(x) // x is below 2^exp
	return math.Ldexp(1, exp-8)
}

// targetRun follows the reference through a plan, row by row. Only two rows and the
// target's are in memory.
type targetRun struct {
	ev     *TeacherEvidence
	target *dumpfmt.Target
	buf    []float32
	// exact is the float64 model's row where the reference's last one was; nil without
	// one. own are the reference's errors from it.
	exact []float64
	own   []float64
	// along is the recorded trajectory that the reference is on, until it leaves it.
	along []int
	point teacher.Point
	step  int
}

// runReference runs the reference through the plan, beside its float64 twin where
// nothing recorded how far the target is from float64.
func (ev *TeacherEvidence) runReference(ctx context.Context, t *Teacher) error {
	switch {
	case ev.NoTarget != "":
		ev.NoRows = ev.NoTarget
	case ev.FramingErr != nil || ev.ValueErr != nil:
		ev.NoRows = "the target has no readable rows"
	case t.Open == nil:
		ev.NoRows = "the run has no reference of the teacher"
	case t.Golden == nil && t.Float64 == nil:
		ev.NoRows = "nothing bounds the rows: no golden's record, and no float64 model"
	}
	if ev.NoRows != "" {
		return nil
	}
	ev.RowsPlain = t.Golden == nil
	if n := 0; !ev.RowsPlain {
		if n = len(t.Golden.Manifest.Precision.Points); n != len(ev.Plan.Points) {
			return fmt.Errorf("golden %s: precision: got %d points, want the plan's %d", t.Golden.Manifest.Set, n, len(ev.Plan.Points))
		}
	}
	target, err := dumpfmt.NewTarget(t.Target, t.TargetBytes, t.TargetFile)
	if err != nil {
		return err
	}
	r := &targetRun{ev: ev, target: target, buf: make([]float32, ev.Plan.Vocab)}
	open := func(positions int) (teacher.Session, error) {
		r.along = nil
		s, err := t.Open(positions)
		if err != nil || !ev.RowsPlain {
			return &watched{Session: s, run: r}, err
		}
		exact, err := t.Float64(positions)
		return &watched{s, exact, r}, err
	}
	if _, err := teacher.Execute(ctx, ev.Plan, open, r.row); err != nil {
		return err
	}
	r.floors(t)
	return nil
}

// row compares the row of a point.
func (r *targetRun) row(p teacher.Point, row []float32) error {
	if err := r.target.Row(p.Ordinal, r.buf); err != nil {
		return err
	}
	got, want := wide(row), wide(r.buf)
	x := TargetRow{Point: p.Ordinal, Example: r.ev.Plan.Examples[p.Example].ID, Error: metric.RelativeL2(got, want),
		Token: metric.ArgMax(want), Pick: metric.ArgMax(got), Sigma: spread(want)}
	x.Top, x.Regret = want[x.Token], metric.Regret(want, x.Pick)
	r.ev.Rows = append(r.ev.Rows, x)
	if r.exact != nil {
		r.own = append(r.own, metric.RelativeL2(got, r.exact))
	}
	r.along, r.point, r.step = nil, p, 0
	if p.Kind == teacher.GenerationNext {
		r.along = r.ev.greedy[p.Example]
		r.follow(got)
	}
	return nil
}

// follow holds the token that a row chooses to the recorded trajectory.
func (r *targetRun) follow(row []float64) {
	if r.step >= len(r.along) {
		return
	}
	want, got := r.along[r.step], metric.ArgMax(row)
	if got != want {
		r.ev.Flips = append(r.ev.Flips, TrajectoryFlip{Point: r.point.Ordinal, Step: r.step, Example: r.ev.Plan.Examples[r.point.Example].ID,
			Token: want, Pick: got, Regret: metric.Regret(row, want), Sigma: spread(row), Top: row[got]})
		r.along = nil
	}
	r.step++
}

// floors adds how far the target's rows are from float64. Where that wasn't recorded,
// the reference's own error stands in, or that of all its rows where one is lucky.
func (r *targetRun) floors(t *Teacher) {
	floor := func(i int) float64 { return t.Golden.Manifest.Precision.Points[i] }
	along := func(x TrajectoryFlip) float64 { return t.Golden.Manifest.Precision.Trajectories[x.Example] }
	if r.ev.RowsPlain {
		sum := 0.0
		for _, e := range r.own {
			sum += e * e
		}
		all := math.Sqrt(sum / float64(len(r.own)))
		floor = func(i int) float64 { return max(r.own[i], all) }
		along = func(x TrajectoryFlip) float64 { return floor(x.Point) }
	}
	for i := range r.ev.Rows {
		r.ev.Rows[i].Floor = max(floor(i), bfloat16Rounding)
	}
	for i, x := range r.ev.Flips {
		r.ev.Flips[i].Floor = max(along(x), bfloat16Rounding)
	}
}

// watched is a session whose rows are looked at, and run beside that of its float64
// twin.
type watched struct {
	teacher.Session
	exact teacher.Session
	run   *targetRun
}

func (w *watched) Prefill(ctx context.Context, ids []int) ([]float32, error) {
	row, err := w.Session.Prefill(ctx, ids)
	if err == nil && w.exact != nil {
		err = w.twin(w.exact.Prefill(ctx, ids))
	}
	return row, err
}

func (w *watched) Step(ctx context.Context, id int) ([]float32, error) {
	row, err := w.Session.Step(ctx, id)
	if err != nil {
		return row, err
	}
	if w.exact != nil {
		err = w.twin(w.exact.Step(ctx, id))
	}
	if err == nil && w.run.along != nil {
		w.run.follow(wide(row))
	}
	return row, err
}

func (w *watched) twin(row []float32, err error) error {
	w.run.exact = wide(row)
	return err
}

func (w *watched) Close() error {
	err := w.Session.Close()
	if w.exact != nil {
		if e := w.exact.Close(); err == nil {
			err = e
		}
	}
	return err
}

func wide(row []float32) []float64 {
	out := make([]float64, len(row))
	for i, x := range row {
		out[i] = float64(x)
	}
	return out
}
