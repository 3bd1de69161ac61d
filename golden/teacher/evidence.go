package teacher

import (
	"fmt"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
)

const (
	evidenceProfile = "external_exact_teacher_reference_target_v1"
	artifactID      = "external_exact_teacher_logits"
	artifactRole    = "external_full_vocabulary_f32_target_rows"
	selfHashKey     = "evidence_sha256"
)

// The keys of evidence.
var (
	evidenceLayout = layout{"schema_version", "profile", "reference_input_sha256", "prediction_plan_sha256", "target_artifact", "greedy_trajectories",
		"implementation", "external_reference", "runtime_dependency", "source_teacher_authority", "sensitivity_authority", "allocator_authority",
		"selector_authority", "autoquant_authority", "dwq", selfHashKey}
	artifactLayout   = layout{"artifact_id", "role", "byte_len", "sha256"}
	trajectoryLayout = layout{"stable_id", "prompt_token_ids_sha256", "token_ids", "token_ids_sha256"}
	// evidenceFlags are the values that the script writes: the target comes from
	// outside, and has authority over nothing.
	evidenceFlags = []struct {
		key   string
		value bool
	}{{"external_reference", true}, {"runtime_dependency", false}, {"source_teacher_authority", false}, {"sensitivity_authority", false},
		{"allocator_authority", false}, {"selector_authority", false}, {"autoquant_authority", false}, {"dwq", false}}
)

// NewEvidence binds a plan to the target that was written for it, with the
// trajectories and the producer. The hash of itself comes last.
func NewEvidence(plan *Plan, target dumpfmt.TargetSum, trajectories []Trajectory, by Implementation) (canonical.Value, error) {
	if len(trajectories) != len(plan.Prompts) {
		return canonical.Value{}, fmt.Errorf("teacher: evidence of %s: trajectories: got %d, want %d", plan.File, len(trajectories), len(plan.Prompts))
	}
	list := make([]canonical.Value, len(trajectories))
	for i, t := range trajectories {
		p := plan.Prompts[i]
		if t.Example != p.Example {
			return canonical.Value{}, fmt.Errorf("teacher: evidence of %s: trajectory %d: got one of example %d, want example %d", plan.File, i, t.Example, p.Example)
		}
		sum, err := TrajectorySHA256(t.Tokens)
		if err != nil {
			return canonical.Value{}, err
		}
		ids := make([]int64, len(t.Tokens))
		for j, id := range t.Tokens {
			ids[j] = int64(id)
		}
		list[i] = object("stable_id", plan.Examples[p.Example].ID, "prompt_token_ids_sha256", p.PrefixSHA256,
			"token_ids", canonical.Ints(ids), "token_ids_sha256", sum)
	}
	artifact := object("artifact_id", artifactID, "role", artifactRole, "byte_len", canonical.Int(target.Bytes), "sha256", Sum(target.SHA256))
	members := object("schema_version", canonical.Int(1), "profile", evidenceProfile, "reference_input_sha256", plan.InputSHA256,
		"prediction_plan_sha256", plan.PlanSHA256, "target_artifact", artifact, "greedy_trajectories", canonical.Array(list...),
		"implementation", by.value()).Members()
	for _, f := range evidenceFlags {
		members = append(members, canonical.Member{Key: f.key, Value: canonical.Bool(f.value)})
	}
	v := canonical.Object(members...)
	sum, err := v.SHA256(canonical.InsertionOrder)
	if err != nil {
		return canonical.Value{}, fmt.Errorf("teacher: evidence of %s: %w", plan.File, err)
	}
	return v.With(selfHashKey, canonical.String(Sum(sum).String())), nil
}

// object is one of keys and values that alternate: a value, or what is written as a
// string.
func object(pairs ...any) canonical.Value {
	members := make([]canonical.Member, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		v, ok := pairs[i+1].(canonical.Value)
		if !ok {
			v = canonical.String(fmt.Sprint(pairs[i+1]))
		}
		members = append(members, canonical.Member{Key: fmt.Sprint(pairs[i]), Value: v})
	}
	return canonical.Object(members...)
}

// EvidenceBytes are the canonical bytes and a line break.
func EvidenceBytes(evidence canonical.Value) ([]byte, error) {
	b, err := evidence.Append(nil, canonical.InsertionOrder)
	if err != nil {
		return nil, fmt.Errorf("teacher: evidence: %w", err)
	}
	return append(b, '\n'), nil
}
