package conformance

import (
	"bytes"
	"context"
	"encoding/gob"

	"github.com/plumbline-go/plumbline/golden/teacher"
)

// WithMemory lets tests of the suite run each clean prompt once.
var WithMemory = withMemory

// JudgeTeacher is the outcome of one check of a teacher, without a run around it.
func JudgeTeacher(ctx context.Context, t *Teacher, id string) (*Outcome, error) {
	c := Builtin().Lookup(id)
	ev, err := teacherEvidence(ctx, &Config{Teacher: t}, []*Check{c})
	if err != nil {
		return nil, err
	}
	return c.Across(&RunEvidence{Teacher: ev, Budgets: DefaultBudgets()}), nil
}

// RulesOfChecks are the rules of a teacher's files, by the check they belong to.
var RulesOfChecks = map[string][]teacher.Rule{
	"PlanReceipts": receiptRules, "PrefixHash": prefixRules, "PointKinds": kindRules, "GreedyTrajectory": trajectoryRules,
}

// BFloat16Step lets tests hold it to a table.
var BFloat16Step = bfloat16Step

// Wire is what a shard's evidence holds.
type Wire = shardWire

// Rewritten is a shard whose evidence says something else, with a hash that fits.
func Rewritten(s ShardReport, change func(*Wire)) (ShardReport, error) {
	w, err := readEvidence(s.Name, s.Evidence, s.Report)
	if err != nil {
		return s, err
	}
	change(w)
	var b bytes.Buffer
	b.WriteString(evidenceMagic)
	if err := gob.NewEncoder(&b).Encode(w); err != nil {
		return s, err
	}
	rep, info := *s.Report, *s.Report.Shard
	info.Evidence = evidenceHash(b.Bytes())
	rep.Shard, s.Report, s.Evidence = &info, &rep, b.Bytes()
	return s, nil
}
