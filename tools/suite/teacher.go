package suite

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/engine/reference"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// teacherWeights is the embedded Qwen3.5 checkpoint.
var teacherWeights = sync.OnceValues(func() (engine.Weights, error) {
	w, err := reference.LoadFS(fixtures.Qwen35Model(), ".")
	if err != nil {
		return nil, err
	}
	return engine.Resident(w), nil
})

// Teacher is the embedded Qwen3.5 checkpoint, a plan for it, and the target and the
// evidence that transformers' bfloat16 run of the plan recorded.
func Teacher() (*conformance.Teacher, error) {
	set, err := golden.Teacher()
	if err != nil {
		return nil, err
	}
	t := &conformance.Teacher{
		Plan: fixtures.TeacherSummary(), PlanFile: "summary.json", TargetFile: "target.bin", EvidenceFile: "evidence.json",
		Golden: set, Checkpoint: fixtures.Qwen35Model(),
		Open: sessions(teacherWeights, reference.BFloat16), Float64: sessions(teacherWeights, reference.Float64),
	}
	if t.Evidence, err = set.Evidence(); err != nil {
		return nil, err
	}
	target, err := set.Target()
	setTarget(t, target)
	return t, err
}

func setTarget(t *conformance.Teacher, data []byte) {
	t.Target, t.TargetBytes = bytes.NewReader(data), int64(len(data))
}

// sessions opens sessions of an engine that is made by the first of them.
func sessions(open func() (engine.Weights, error), d reference.DType) func(positions int) (teacher.Session, error) {
	made := sync.OnceValues(func() (*reference.Engine, error) {
		w, err := open()
		if err != nil {
			return nil, err
		}
		return reference.New(w, reference.WithDType(d))
	})
	return func(positions int) (teacher.Session, error) {
		e, err := made()
		if err != nil {
			return nil, err
		}
		return OpenSession(e, positions)
	}
}

// OpenSession is [reference.Engine.NewSession] as a teacher's session, nil beside an
// error.
func OpenSession(e *reference.Engine, positions int) (teacher.Session, error) {
	s, err := e.NewSession(positions)
	if err != nil {
		return nil, err // a nil *Session would be no nil interface
	}
	return s, nil
}

// plantInTeacher plants a fault in a teacher's plan, in what was made for it, in its
// model, or in the writer of targets. ok is false when the control is not one of
// these.
func plantInTeacher(cfg conformance.Config, k conformance.Control) (_ conformance.Config, ok bool, err error) {
	if !teacherFault(k.Mutant) {
		return cfg, false, nil
	}
	if cfg.Teacher == nil {
		return cfg, true, fmt.Errorf("suite: %s: got no teacher to plant it in", k.Mutant)
	}
	planted := *cfg.Teacher
	cfg.Teacher = &planted
	if edit, ok := planFaults[k.Mutant]; ok {
		planted.Plan, err = edited(planted.Plan, edit)
		return cfg, true, err
	}
	if edit, ok := evidenceFaults[k.Mutant]; ok {
		planted.Evidence, err = edited(planted.Evidence, edit)
		return cfg, true, err
	}
	if edit, ok := targetFaults[k.Mutant]; ok {
		data, err := readAll(planted.Target, planted.TargetBytes)
		if err != nil {
			return cfg, true, err
		}
		setTarget(&planted, edit(data))
		return cfg, true, nil
	}
	if create, ok := writerFaults[k.Mutant]; ok {
		planted.Create = create
		return cfg, true, nil
	}
	switch k.Mutant {
	case "plan-no-json":
		planted.Plan = planted.Plan[:len(planted.Plan)/2]
	case "recorded-plan-bit-flipped":
		planted.Plan = bytes.Clone(planted.Plan)
		planted.Plan[100] ^= 1
	case "recorded-target-bit-flipped":
		planted.Golden, err = planted.Golden.Replaced(flippedTarget)
	default:
		w, err := teacherWeights()
		if err != nil {
			return cfg, true, err
		}
		m, err := mutant.Lookup(k.Mutant)
		if err != nil {
			return cfg, true, err
		}
		if w, err = m.Weights(w, k.Layer); err != nil {
			return cfg, true, err
		}
		broken := func() (engine.Weights, error) { return w, nil }
		planted.Open, planted.Float64 = sessions(broken, reference.BFloat16), sessions(broken, reference.Float64)
	}
	return cfg, true, err
}

// teacherFault reports whether a fault is one of a teacher.
func teacherFault(name string) bool {
	_, plan := planFaults[name]
	_, target := targetFaults[name]
	_, evidence := evidenceFaults[name]
	_, writer := writerFaults[name]
	return plan || target || evidence || writer || slices.Contains(otherTeacherFaults, name)
}

// otherTeacherFaults are those of a plan as a whole, of what was recorded, and of the
// model.
var otherTeacherFaults = []string{"plan-no-json", "recorded-plan-bit-flipped", "recorded-target-bit-flipped",
	"recurrent-state-stale", "conv-state-off-by-one", "attention-gate-missing", "beta-wrong-row"}
