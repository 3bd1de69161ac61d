package suite

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/golden/canonical"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

// planFaults change a summary. All but those that are seen in a hash of the whole
// leave the hashes of the whole right, as a tool would that writes a plan anew.
var planFaults = map[string]func(summary canonical.Value) (canonical.Value, error){
	"plan-token-changed": rehashed(func(in canonical.Value) (canonical.Value, error) {
		return at(in, addTo(1), "examples", 1, "token_ids", 9), nil
	}),
	"plan-nested-keys-reordered": func(v canonical.Value) (canonical.Value, error) {
		return at(v, func(limits canonical.Value) canonical.Value {
			members := slices.Clone(limits.Members())
			slices.Reverse(members)
			return canonical.Object(members...)
		}, "reference_input", "target_limits"), nil
	},
	"plan-hash-of-another": rehashedInput(func(in canonical.Value) (canonical.Value, error) {
		return at(in, func(canonical.Value) canonical.Value { return canonical.String(teacher.Sum{1}.String()) }, "prediction_plan", "manifest_sha256"), nil
	}),
	"plan-prefix-off-by-one": rehashed(func(in canonical.Value) (canonical.Value, error) {
		const point = 3
		p := get(in, "prediction_plan", "prediction_points", point)
		ids, n := tokensOf(in, get(p, "stable_id")), number(get(p, "prefix_token_count"))
		sum, err := teacher.PrefixSHA256(ids[:n-1])
		return at(in, func(canonical.Value) canonical.Value { return canonical.String(sum.String()) },
			"prediction_plan", "prediction_points", point, "prefix_token_ids_sha256"), err
	}),
	"plan-ids-swapped": rehashed(func(in canonical.Value) (canonical.Value, error) {
		return swapped(in, []any{"prediction_plan", "prediction_points", 2, "stable_id"}, []any{"prediction_plan", "prediction_points", 9, "stable_id"}), nil
	}),
	"plan-prefixes-shrink": rehashed(func(in canonical.Value) (canonical.Value, error) {
		const points = "prediction_points"
		in = swapped(in, []any{"prediction_plan", points, 1}, []any{"prediction_plan", points, 2})
		return swapped(in, []any{"prediction_plan", points, 1, "point_ordinal"}, []any{"prediction_plan", points, 2, "point_ordinal"}), nil
	}),
	"kind-extra-key": rehashed(ofKind(func(kind canonical.Value) canonical.Value { return kind.With("weight", canonical.Int(1)) })),
	"kind-unknown-tag": rehashed(ofKind(func(kind canonical.Value) canonical.Value {
		return kind.With("kind", canonical.String("teacher_guided"))
	})),
	"kind-another-target": rehashed(ofKind(func(kind canonical.Value) canonical.Value {
		return at(kind, addTo(1), "target_token_id")
	})),
}

func ofKind(change func(kind canonical.Value) canonical.Value) func(in canonical.Value) (canonical.Value, error) {
	return func(in canonical.Value) (canonical.Value, error) {
		return at(in, change, "prediction_plan", "prediction_points", 4, "kind"), nil
	}
}

// evidenceFaults change evidence.
var evidenceFaults = map[string]func(canonical.Value) (canonical.Value, error){
	"trajectory-token-changed": rehashedEvidence(false, func(ids []int) []int {
		ids[9] ^= 1
		return ids
	}),
	"trajectory-short": rehashedEvidence(true, func(ids []int) []int { return ids[:len(ids)-1] }),
	"trajectory-of-another-first-token": rehashedEvidence(true, func(ids []int) []int {
		ids[0] ^= 1
		return ids
	}),
	"trajectory-forged": rehashedEvidence(true, func(ids []int) []int {
		ids[9] ^= 1
		return ids
	}),
	"evidence-of-another-target": func(v canonical.Value) (canonical.Value, error) {
		v = at(v, func(canonical.Value) canonical.Value { return canonical.String(teacher.Sum{1}.String()) }, "target_artifact", "sha256")
		return selfHashed(v, "evidence_sha256")
	},
	"evidence-byte-changed": func(v canonical.Value) (canonical.Value, error) {
		return at(v, func(canonical.Value) canonical.Value { return canonical.String("another device") }, "implementation", "device"), nil
	},
}

// rehashedEvidence changes the second trajectory, and the evidence's hash of itself;
// with fitted, the trajectory's hash too.
func rehashedEvidence(fitted bool, change func(ids []int) []int) func(canonical.Value) (canonical.Value, error) {
	return func(v canonical.Value) (canonical.Value, error) {
		small, _ := get(v, "greedy_trajectories", 1, "token_ids").Ints()
		var ids []int
		for _, id := range small {
			ids = append(ids, int(id))
		}
		ids = change(ids)
		sum, err := teacher.TrajectorySHA256(ids)
		if err != nil {
			return v, err
		}
		v = at(v, func(x canonical.Value) canonical.Value {
			var all []int64
			for _, id := range ids {
				all = append(all, int64(id))
			}
			x = x.With("token_ids", canonical.Ints(all))
			if fitted {
				x = x.With("token_ids_sha256", canonical.String(sum.String()))
			}
			return x
		}, "greedy_trajectories", 1)
		return selfHashed(v, "evidence_sha256")
	}
}

// rehashed changes a reference input, and fits the hash of the plan and all that hold
// it.
func rehashed(change func(in canonical.Value) (canonical.Value, error)) func(canonical.Value) (canonical.Value, error) {
	return rehashedInput(func(in canonical.Value) (canonical.Value, error) {
		in, err := change(in)
		if err != nil {
			return in, err
		}
		plan, err := selfHashed(get(in, "prediction_plan"), "manifest_sha256")
		return in.With("prediction_plan", plan), err
	})
}

// rehashedInput is rehashed, but for the plan's own hash.
func rehashedInput(change func(in canonical.Value) (canonical.Value, error)) func(canonical.Value) (canonical.Value, error) {
	return func(v canonical.Value) (canonical.Value, error) {
		in, err := change(get(v, "reference_input"))
		if err != nil {
			return v, err
		}
		if in, err = selfHashed(in, "reference_input_sha256"); err != nil {
			return v, err
		}
		return v.With("reference_input", in).With("prediction_plan_sha256", get(in, "prediction_plan", "manifest_sha256")), nil
	}
}

// selfHashed is an object with the hash of its other members.
func selfHashed(v canonical.Value, key string) (canonical.Value, error) {
	sum, err := v.Without(key).SHA256(canonical.InsertionOrder)
	return v.With(key, canonical.String(teacher.Sum(sum).String())), err
}

// edited is a JSON file with a change, in canonical bytes and a line break.
func edited(data []byte, edit func(canonical.Value) (canonical.Value, error)) ([]byte, error) {
	v, err := canonical.Parse("planted", data)
	if err != nil {
		return nil, err
	}
	if v, err = edit(v); err != nil {
		return nil, err
	}
	return teacher.EvidenceBytes(v)
}

// get is what lies under keys and indices.
func get(v canonical.Value, path ...any) canonical.Value {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v, _ = v.Get(p)
		case int:
			v = v.Index(p)
		}
	}
	return v
}

// at is v with what lies under keys and indices changed.
func at(v canonical.Value, change func(canonical.Value) canonical.Value, path ...any) canonical.Value {
	if len(path) == 0 {
		return change(v)
	}
	inner := at(get(v, path[0]), change, path[1:]...)
	if key, ok := path[0].(string); ok {
		return v.With(key, inner)
	}
	elements := make([]canonical.Value, v.Len())
	for i := range elements {
		if elements[i] = v.Index(i); i == path[0] {
			elements[i] = inner
		}
	}
	return canonical.Array(elements...)
}

func swapped(v canonical.Value, a, b []any) canonical.Value {
	x, y := get(v, a...), get(v, b...)
	v = at(v, func(canonical.Value) canonical.Value { return y }, a...)
	return at(v, func(canonical.Value) canonical.Value { return x }, b...)
}

func addTo(n int64) func(canonical.Value) canonical.Value {
	return func(v canonical.Value) canonical.Value { return canonical.Int(int64(number(v)) + n) }
}

func number(v canonical.Value) int {
	n, _ := v.Int()
	return int(n)
}

// tokensOf are the ids of the example with a stable id.
func tokensOf(in, id canonical.Value) []int {
	want, _ := id.Text()
	examples := get(in, "examples")
	for i := range examples.Len() {
		if got, _ := get(examples, i, "stable_id").Text(); got != want {
			continue
		}
		var out []int
		ids := get(examples, i, "token_ids")
		for k := range ids.Len() {
			out = append(out, number(ids.Index(k)))
		}
		return out
	}
	return nil
}

// targetFaults change a target file. A row has its frame before it.
var targetFaults = map[string]func(data []byte) []byte{
	"target-truncated":  func(data []byte) []byte { return data[:len(data)-1] },
	"target-byte-added": func(data []byte) []byte { return append(data, 0) },
	"target-ordinal-repeated": func(data []byte) []byte {
		copy(targetRow(data, 3)[4:12], targetRow(data, 2)[4:12])
		return data
	},
	"target-rows-swapped": func(data []byte) []byte {
		a, b := targetRow(data, 1)[20:], targetRow(data, 2)[20:] // all but what counts them
		held := slices.Clone(a)
		copy(a, b)
		copy(b, held)
		return data
	},
	"target-nan": func(data []byte) []byte {
		binary.LittleEndian.PutUint32(targetRow(data, 2)[60+4*17:], math.Float32bits(float32(math.NaN())))
		return data
	},
	"target-infinite": func(data []byte) []byte {
		binary.LittleEndian.PutUint32(targetRow(data, 5)[60:], math.Float32bits(float32(math.Inf(-1))))
		return data
	},
}

// targetRow is a row with its frame. The first frame says how wide rows are.
func targetRow(data []byte, i int) []byte {
	const magic, frame = 30, 60
	size := frame + 4*int(binary.LittleEndian.Uint64(data[magic+12:]))
	return data[magic+i*size:][:size]
}

func readAll(r io.ReaderAt, size int64) ([]byte, error) {
	data := make([]byte, size)
	if n, err := r.ReadAt(data, 0); err != nil && n < len(data) {
		return nil, fmt.Errorf("suite: target: %w", err)
	}
	return data, nil
}

func flippedTarget(f fs.FS) (fs.FS, error) { return mutant.FlipBit(f, "target.bin", 8*1000+5) }
