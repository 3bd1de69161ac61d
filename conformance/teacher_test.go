package conformance_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/golden/teacher"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// summary is what the tests read of a plan, by themselves.
type summary struct {
	Input struct {
		Vocab    int `json:"vocabulary_size"`
		Examples []struct {
			ID   string `json:"stable_id"`
			Mode string `json:"render_mode"`
			IDs  []int  `json:"token_ids"`
		} `json:"examples"`
		Plan struct {
			Receipts []struct {
				ID    string `json:"stable_id"`
				Mode  string `json:"render_mode"`
				Count int    `json:"token_count"`
				Hash  string `json:"token_ids_sha256"`
			} `json:"examples"`
			Points []struct {
				ID     string         `json:"stable_id"`
				Kind   map[string]any `json:"kind"`
				Prefix int            `json:"prefix_token_count"`
				Hash   string         `json:"prefix_token_ids_sha256"`
			} `json:"prediction_points"`
		} `json:"prediction_plan"`
	} `json:"reference_input"`
}

// tokens are the ids of an example.
func (s *summary) tokens(id string) []int {
	for _, e := range s.Input.Examples {
		if e.ID == id {
			return e.IDs
		}
	}
	return nil
}

// teacherRig is the embedded teacher, with files that a test may change.
type teacherRig struct {
	*conformance.Teacher
	plan   summary
	target []byte
}

func teacherOf(t *testing.T) *teacherRig {
	t.Helper()
	onlyOnEmbedded(t)
	made, err := suite.Teacher()
	require.NoError(t, err)
	r := &teacherRig{Teacher: made, target: make([]byte, made.TargetBytes)}
	_, err = made.Target.ReadAt(r.target, 0)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(made.Plan, &r.plan))
	return r
}

func (r *teacherRig) judge(t *testing.T, id string) *conformance.Outcome {
	t.Helper()
	o, err := conformance.JudgeTeacher(t.Context(), r.Teacher, id)
	require.NoError(t, err)
	require.NotNil(t, o)
	return o
}

// withTarget judges other bytes of the target.
func (r *teacherRig) withTarget(t *testing.T, data []byte, id string) *conformance.Outcome {
	t.Helper()
	was, n := r.Target, r.TargetBytes
	defer func() { r.Target, r.TargetBytes = was, n }()
	r.Target, r.TargetBytes = bytes.NewReader(data), int64(len(data))
	return r.judge(t, id)
}

// row is where a row's frame starts in the target.
func (r *teacherRig) row(i int) int { return 30 + i*(60+4*r.plan.Input.Vocab) }

func (r *teacherRig) rows() int { return len(r.plan.Input.Plan.Points) }

// framed is a SHA-256 of a frame, a count and ids, by the description of the format.
func framed(head []byte, ids []int) string {
	b := binary.LittleEndian.AppendUint64(bytes.Clone(head), uint64(len(ids)))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func prefixOf(ids []int) string { return framed([]byte("hf2q-teacher-prefix-token-ids-v1"), ids) }

// replaced is the teacher with one text of its plan replaced, where it is the only one.
func (r *teacherRig) replaced(t *testing.T, old, by string) *teacherRig {
	t.Helper()
	require.Equal(t, 1, bytes.Count(r.Plan, []byte(old)), old)
	other, changed := *r.Teacher, *r
	other.Plan = bytes.Replace(r.Plan, []byte(old), []byte(by), 1)
	changed.Teacher = &other
	return &changed
}

// TestPlanReceipts: id, render mode, count and hash of every example's tokens are those
// of its receipt; no token can be another.
func TestPlanReceipts(t *testing.T) {
	holds(t, "PlanReceipts", conformance.SideCandidate)
	r := teacherOf(t)
	require.Len(t, r.plan.Input.Plan.Receipts, len(r.plan.Input.Examples))
	for i, e := range r.plan.Input.Examples {
		got := r.plan.Input.Plan.Receipts[i]
		head := binary.LittleEndian.AppendUint32([]byte("hf2q-token-ids-v1"), uint32(len(e.ID)))
		assert.Equal(t, framed(append(head, e.ID...), e.IDs), got.Hash, e.ID)
		assert.Equal(t, []any{e.ID, e.Mode, len(e.IDs)}, []any{got.ID, got.Mode, got.Count})
	}
	// A receipt that is wrong in one digit names its example, whatever else is wrong.
	for _, got := range r.plan.Input.Plan.Receipts {
		bad := r.replaced(t, got.Hash, "f0"+got.Hash[2:])
		if o := bad.judge(t, "PlanReceipts"); assert.Equal(t, conformance.Fail, o.Status, got.ID) {
			assert.Equal(t, conformance.KindProvenance, o.Kind)
			assert.True(t, slices.ContainsFunc(o.Findings, func(f conformance.Finding) bool {
				return f.Metric == string(teacher.RuleReceipt) && bytes.Contains([]byte(f.Detail), []byte("example "+got.ID))
			}), "%s: %v", got.ID, o.Findings)
		}
	}
}

// TestPrefixHash: the prefix hash of every point is that of so many tokens, and of no
// other number of them.
func TestPrefixHash(t *testing.T) {
	holds(t, "PrefixHash", conformance.SideCandidate)
	r := teacherOf(t)
	last := map[string]int{}
	for i, p := range r.plan.Input.Plan.Points {
		ids := r.plan.tokens(p.ID)
		assert.Equal(t, prefixOf(ids[:p.Prefix]), p.Hash, "point %d", i)
		assert.GreaterOrEqual(t, p.Prefix, last[p.ID], "point %d", i)
		last[p.ID] = p.Prefix
		// The hash of a prompt's point is there again.
		if p.Kind["kind"] == "generation_next" || p.Prefix == 1 {
			continue
		}
		bad := r.replaced(t, p.Hash, prefixOf(ids[:p.Prefix-1]))
		if o := bad.judge(t, "PrefixHash"); assert.Equal(t, conformance.Fail, o.Status, "point %d", i) && assert.Len(t, o.Findings, 1) {
			f := o.Findings[0]
			assert.Equal(t, string(teacher.RulePrefix), f.Metric)
			assert.Equal(t, &i, f.At.Point)
		}
	}
}

// TestPointKinds: two kinds, with their keys; a teacher-forced target is the token
// behind the prefix.
func TestPointKinds(t *testing.T) {
	holds(t, "PointKinds", conformance.SideCandidate)
	r := teacherOf(t)
	forced := 0
	for i, p := range r.plan.Input.Plan.Points {
		if p.Kind["kind"] == "generation_next" {
			assert.Len(t, p.Kind, 1, "point %d", i)
			continue
		}
		forced++
		assert.Equal(t, map[string]any{"kind": "teacher_forced", "target_token_index": float64(p.Prefix),
			"target_token_id": float64(r.plan.tokens(p.ID)[p.Prefix])}, p.Kind, "point %d", i)
	}
	assert.Greater(t, forced, r.rows()/2)
}

// TestTargetFraming: a target that is cut anywhere, or has another byte anywhere but in
// its values, is framed wrongly.
func TestTargetFraming(t *testing.T) {
	holds(t, "TargetFraming", conformance.SideCandidate)
	r := teacherOf(t)
	fails := func(data []byte, format string, args ...any) {
		t.Helper()
		o := r.withTarget(t, data, "TargetFraming")
		if assert.Equal(t, conformance.Fail, o.Status, format, args) {
			assert.Equal(t, conformance.KindFormat, o.Kind)
			assert.Equal(t, conformance.Skip, r.withTarget(t, data, "TargetFinite").Status, "nobody knows where the values are")
		}
	}
	// At every byte of the first row and its frame, and around the edges of all rows.
	for n := range r.row(1) + 61 {
		if n < 100 || n%13 == 0 || n > r.row(1)-3 {
			fails(r.target[:n], "%d bytes", n)
		}
	}
	for i := 2; i <= r.rows(); i++ {
		for _, n := range []int{r.row(i) - 3, r.row(i) - 1, r.row(i)} {
			if n < len(r.target) {
				fails(r.target[:n], "%d bytes", n)
			}
		}
	}
	fails(append(slices.Clone(r.target), 0), "a byte more")
	fails(append(slices.Clone(r.target), r.target[r.row(r.rows()-1):]...), "the last row again")
	for _, i := range []int{0, r.rows() - 1} {
		for at := r.row(i); at < r.row(i)+60; at++ {
			data := slices.Clone(r.target)
			data[at] ^= 0x10
			fails(data, "byte %d", at)
		}
	}
	// Another value is none of its business.
	data := slices.Clone(r.target)
	data[r.row(3)+60] ^= 1
	assert.Equal(t, conformance.Pass, r.withTarget(t, data, "TargetFraming").Status)
}

// TestTargetFinite: one value that isn't finite, in any row, at either end, is found at
// its byte, and the framing stays sound.
func TestTargetFinite(t *testing.T) {
	holds(t, "TargetFinite", conformance.SideCandidate)
	r := teacherOf(t)
	for i, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Float64frombits(0xFFF0000000000001)} {
		for _, at := range []int{r.row(i) + 60, r.row(i+1) - 4, len(r.target) - 4} {
			data := slices.Clone(r.target)
			binary.LittleEndian.PutUint32(data[at:], math.Float32bits(float32(x)))
			o := r.withTarget(t, data, "TargetFinite")
			if assert.Equal(t, conformance.Fail, o.Status) && assert.Len(t, o.Findings, 1) {
				assert.Contains(t, o.Findings[0].Metric, fmt.Sprintf("at byte 0x%X", at))
			}
			assert.Equal(t, conformance.Skip, r.withTarget(t, data, "TargetFraming").Status)
		}
	}
	data := slices.Clone(r.target)
	binary.LittleEndian.PutUint32(data[r.row(2)+64:], math.Float32bits(math.MaxFloat32))
	assert.Equal(t, conformance.Pass, r.withTarget(t, data, "TargetFinite").Status)
}

// TestGreedyTrajectory: 32 tokens per generation prompt, with their hash; each of them
// matters, and the first is the largest logit of the prompt's row.
func TestGreedyTrajectory(t *testing.T) {
	holds(t, "GreedyTrajectory", conformance.SideCandidate)
	r := teacherOf(t)
	var evidence struct {
		Trajectories []struct {
			ID   string `json:"stable_id"`
			IDs  []int  `json:"token_ids"`
			Hash string `json:"token_ids_sha256"`
		} `json:"greedy_trajectories"`
	}
	require.NoError(t, json.Unmarshal(r.Evidence, &evidence))
	require.Len(t, evidence.Trajectories, 3)
	for _, x := range evidence.Trajectories {
		assert.Len(t, x.IDs, 32, x.ID)
		assert.Equal(t, framed([]byte("hf2q-exact-teacher-greedy-tokens-v1"), x.IDs), x.Hash, x.ID)
		text := func(ids []int) []byte {
			b, err := json.Marshal(ids)
			require.NoError(t, err)
			return b
		}
		require.Equal(t, 1, bytes.Count(r.Evidence, text(x.IDs)))
		for i := range x.IDs {
			ids := slices.Clone(x.IDs)
			ids[i] ^= 2
			bad := *r.Teacher
			bad.Evidence = bytes.Replace(r.Evidence, text(x.IDs), text(ids), 1)
			o, err := conformance.JudgeTeacher(t.Context(), &bad, "GreedyTrajectory")
			require.NoError(t, err)
			if assert.Equal(t, conformance.Fail, o.Status, "%s: token %d", x.ID, i) {
				assert.Equal(t, string(teacher.RuleTrajectory), o.Findings[0].Metric)
			}
		}
	}
	// What means the same in another spelling is no producer's.
	bad := *r.Teacher
	bad.Evidence = bytes.Replace(r.Evidence, []byte(`":`), []byte(`": `), 1)
	o, err := conformance.JudgeTeacher(t.Context(), &bad, "GreedyTrajectory")
	require.NoError(t, err)
	assert.Equal(t, conformance.Fail, o.Status)
}

// TestTargetOnce: the writer keeps what is there, and shows nothing that isn't whole.
func TestTargetOnce(t *testing.T) {
	holds(t, "TargetOnce", conformance.SideReference)
}

// TestTargetGolden: the reference has the rows of transformers' bfloat16 run of the
// plan, and its tokens wherever they are clear; also by the bound that needs no record.
func TestTargetGolden(t *testing.T) {
	holds(t, "TargetGolden", conformance.SideReference)
	r := teacherOf(t)
	plain := *r.Teacher
	plain.Golden = nil
	o, err := conformance.JudgeTeacher(t.Context(), &plain, "TargetGolden")
	require.NoError(t, err)
	assert.Equal(t, conformance.Pass, o.Status, "%v", o.Findings)
	ties := 0
	for _, f := range o.Findings {
		if f.Metric == "relative L2 of the row" {
			assert.Contains(t, f.Limit.Source, "the reference's own error from float64")
			continue
		}
		ties++
		assert.Zero(t, float64(f.Got), "the one flip is of two logits that are equal in the target: %s", f)
	}
	assert.LessOrEqual(t, ties, 2, "the plan has two exact ties")
	assert.Len(t, o.Findings, r.rows()+ties)
}

func TestBFloat16Step(t *testing.T) {
	for x, want := range map[float64]float64{1: 0x1p-7, 1.99: 0x1p-7, 2: 0x1p-6, -3.5: 0x1p-6, 0.75: 0x1p-8, 256: 2, 0: 0} {
		assert.Equal(t, want, conformance.BFloat16Step(x), x)
	}
}

// TestWhatATeacherLacksIsSkipped: nothing passes that wasn't there, and what can't be
// judged says why.
func TestWhatATeacherLacksIsSkipped(t *testing.T) {
	r := teacherOf(t)
	files := []string{"PlanReceipts", "PrefixHash", "PointKinds", "TargetFraming", "TargetFinite", "GreedyTrajectory", "TargetGolden"}
	for name, c := range map[string]struct {
		change func(x *conformance.Teacher)
		want   string // one letter per file check
	}{
		"all":             {func(*conformance.Teacher) {}, "pppppp."},
		"no target":       {func(x *conformance.Teacher) { x.Target = nil }, "pppsspS"},
		"no evidence":     {func(x *conformance.Teacher) { x.Evidence = nil }, "pppppsp"},
		"no reference":    {func(x *conformance.Teacher) { x.Open = nil }, "ppppppS"},
		"nothing bounds":  {func(x *conformance.Teacher) { x.Golden, x.Float64 = nil, nil }, "ppppppS"},
		"plan no JSON":    {func(x *conformance.Teacher) { x.Plan = []byte("{") }, "fsssssS"},
		"plan of another": {func(x *conformance.Teacher) { x.Plan = bytes.Replace(x.Plan, []byte("v1"), []byte("v2"), 1) }, "fppsssS"},
		"no points": {func(x *conformance.Teacher) {
			x.Plan = bytes.Replace(x.Plan, []byte(`"prediction_points"`), []byte(`"predictions"`), 1)
		}, "fsssssS"},
		"no input":     {func(x *conformance.Teacher) { x.Plan = []byte(`{"executed":true,"structural_target_receipt":{"a":1}}`) }, "fsssssS"},
		"evidence cut": {func(x *conformance.Teacher) { x.Evidence = x.Evidence[:100] }, "pppppf."},
		"target empty": {func(x *conformance.Teacher) { x.Target, x.TargetBytes = bytes.NewReader(nil), 0 }, "pppfspS"},
	} {
		x := *r.Teacher
		c.change(&x)
		for i, id := range files {
			if c.want[i] == '.' {
				continue // a second, and judged above
			}
			o, err := conformance.JudgeTeacher(t.Context(), &x, id)
			require.NoError(t, err)
			want := map[byte]conformance.Status{'p': conformance.Pass, 'f': conformance.Fail, 's': conformance.Skip, 'S': conformance.Skip}[c.want[i]]
			assert.Equal(t, want, o.Status, "%s: %s: %s %v", name, id, o.Reason, o.Findings)
			assert.Equal(t, want == conformance.Skip, o.Reason != "", "%s: %s", name, id)
		}
	}
	o, err := conformance.JudgeTeacher(t.Context(), nil, "TargetFraming")
	require.NoError(t, err)
	assert.Nil(t, o)
}

// unreadableAt fails behind a byte.
type unreadableAt struct {
	data []byte
	at   int64
}

func (u unreadableAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > u.at {
		return 0, errors.New("the disk is gone")
	}
	return copy(p, u.data[off:]), nil
}

// TestTheTeachersRunBreaks: what is no fault of a file is the run's error.
func TestTheTeachersRunBreaks(t *testing.T) {
	r := teacherOf(t)
	for want, change := range map[string]func(x *conformance.Teacher){
		"Plan is empty":    func(x *conformance.Teacher) { x.Plan = nil },
		"the disk is gone": func(x *conformance.Teacher) { x.Target = unreadableAt{r.target, 40_000} },
		"no weights": func(x *conformance.Teacher) {
			x.Open = func(int) (teacher.Session, error) { return nil, errors.New("no weights") }
		},
		"no float64": func(x *conformance.Teacher) {
			x.Golden, x.Float64 = nil, func(int) (teacher.Session, error) { return nil, errors.New("no float64") }
		},
		"width: got 639, want 640": func(x *conformance.Teacher) { x.Open = func(int) (teacher.Session, error) { return narrow(639), nil } },
	} {
		x := *r.Teacher
		change(&x)
		_, err := conformance.JudgeTeacher(t.Context(), &x, "TargetGolden")
		require.ErrorContains(t, err, want)
	}
}

// narrow is a session of another vocabulary.
type narrow int

func (n narrow) Prefill(context.Context, []int) ([]float32, error) { return make([]float32, n), nil }
func (n narrow) Step(context.Context, int) ([]float32, error)      { return make([]float32, n), nil }
func (narrow) Close() error                                        { return nil }

// TestEveryRuleOfAPlanHasOneCheck: a rule that no check looks at would be silence.
func TestEveryRuleOfAPlanHasOneCheck(t *testing.T) {
	onlyOnEmbedded(t)
	source, err := os.ReadFile("../golden/teacher/problem.go")
	require.NoError(t, err)
	all := regexp.MustCompile(`Rule\w+ +Rule = "([^"]+)"`).FindAllSubmatch(source, -1)
	require.Greater(t, len(all), 15)
	for _, m := range all {
		rule, n := teacher.Rule(m[1]), 0
		for id, rules := range conformance.RulesOfChecks {
			if slices.Contains(rules, rule) && (id != "GreedyTrajectory" || rule != teacher.RuleFields) { // both files have fields
				n++
			}
		}
		if rule == teacher.RuleTarget {
			continue // of a file that TargetFraming and TargetFinite read themselves
		}
		assert.Equal(t, 1, n, rule)
	}
}

// TestTargetBounds: errors and regrets on both sides of their bounds, by hand.
func TestTargetBounds(t *testing.T) {
	type row = conformance.TargetRow
	sound := row{Error: 0.0199, Floor: 0.01, Token: 3, Pick: 3, Sigma: 1, Top: 3}
	with := func(change func(x *row)) row {
		x := sound
		change(&x)
		return x
	}
	// sqrt 2 times 2 times 0.01 is 0.0283; two steps of bfloat16 at 3 are 0.03125, at
	// 1.5 half of that.
	for name, c := range map[string]struct {
		row  row
		want conformance.Status
	}{
		"sound":                    {sound, conformance.Pass},
		"too far":                  {with(func(x *row) { x.Error = 0.0201 }), conformance.Fail},
		"no number":                {with(func(x *row) { x.Error = math.NaN() }), conformance.Fail},
		"a tie by bfloat16":        {with(func(x *row) { x.Pick, x.Regret = 4, 0.0312 }), conformance.Pass},
		"none by bfloat16":         {with(func(x *row) { x.Pick, x.Regret = 4, 0.0313 }), conformance.Fail},
		"a tie by the error":       {with(func(x *row) { x.Pick, x.Regret, x.Top = 4, 0.0282, 1.5 }), conformance.Pass},
		"none by the error":        {with(func(x *row) { x.Pick, x.Regret, x.Top = 4, 0.0284, 1.5 }), conformance.Fail},
		"another spread":           {with(func(x *row) { x.Pick, x.Regret, x.Sigma = 4, 0.05, 2 }), conformance.Pass},
		"the same token, whatever": {with(func(x *row) { x.Regret = 9 }), conformance.Pass},
	} {
		ev := &conformance.RunEvidence{Teacher: &conformance.TeacherEvidence{Rows: []row{sound, c.row}}, Budgets: conformance.DefaultBudgets()}
		check := conformance.Builtin().Lookup("TargetGolden")
		assert.Equal(t, c.want, check.Across(ev).Status, name)
		if c.row.Pick == c.row.Token {
			continue
		}
		ev.Teacher.Rows = ev.Teacher.Rows[:1]
		ev.Teacher.Flips = []conformance.TrajectoryFlip{{Token: 3, Pick: c.row.Pick, Regret: c.row.Regret, Sigma: c.row.Sigma, Top: c.row.Top, Floor: c.row.Floor}}
		assert.Equal(t, c.want, check.Across(ev).Status, "%s, in a trajectory", name)
	}
}
