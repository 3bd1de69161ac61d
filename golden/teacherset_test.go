package golden_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine/mutant"
	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden"
)

func TestTheRecordedTeacherVerifies(t *testing.T) {
	set, err := golden.Teacher()
	require.NoError(t, err)
	assert.Empty(t, set.Verify(fixtures.Qwen35Model(), fixtures.TeacherSummary()))
	recorderIsAsRecorded(t, set.Manifest.Recorder, set.Manifest.Reference, "qwen3_5")

	var summary struct {
		ReferenceInput struct {
			Vocabulary int    `json:"vocabulary_size"`
			SHA256     string `json:"reference_input_sha256"`
			Plan       struct {
				Points []struct {
					Prefix string `json:"prefix_token_ids_sha256"`
				} `json:"prediction_points"`
				Prompts []struct {
					StableID string `json:"stable_id"`
				} `json:"greedy_prompts"`
			} `json:"prediction_plan"`
		} `json:"reference_input"`
	}
	require.NoError(t, json.Unmarshal(fixtures.TeacherSummary(), &summary))
	in := summary.ReferenceInput

	// The framing that formats say, read here by hand.
	target, err := set.Target()
	require.NoError(t, err)
	const magic = "hf2q-exact-teacher-targets-v1\x00"
	require.True(t, bytes.HasPrefix(target, []byte(magic)))
	size := 60 + 4*in.Vocabulary
	require.Len(t, target, len(magic)+len(in.Plan.Points)*size)
	assert.Len(t, set.Manifest.Precision.Points, len(in.Plan.Points))
	ties := 0
	for i, p := range in.Plan.Points {
		frame := target[len(magic)+i*size:][:size]
		assert.Equal(t, "ROW1", string(frame[:4]))
		assert.Equal(t, uint64(i), binary.LittleEndian.Uint64(frame[4:]))
		assert.Equal(t, p.Prefix, fmt.Sprintf("%x", frame[20:52]))
		row := make([]float32, in.Vocabulary)
		for k := range row {
			row[k] = math.Float32frombits(binary.LittleEndian.Uint32(frame[60+4*k:]))
		}
		assert.True(t, isBFloat16(row))
		first := largest(row)
		for k := first + 1; k < len(row); k++ {
			if row[k] == row[first] {
				ties++
			}
		}
	}
	assert.Equal(t, 2, ties, "two points were chosen for their ties")

	data, err := set.Evidence()
	require.NoError(t, err)
	var evidence struct {
		Reference string `json:"reference_input_sha256"`
		Target    struct {
			Bytes  int    `json:"byte_len"`
			SHA256 string `json:"sha256"`
		} `json:"target_artifact"`
		Trajectories []struct {
			StableID string `json:"stable_id"`
			TokenIDs []int  `json:"token_ids"`
		} `json:"greedy_trajectories"`
		Implementation struct {
			Name     string `json:"name"`
			Producer string `json:"producer_sha256"`
		} `json:"implementation"`
	}
	require.NoError(t, json.Unmarshal(data, &evidence))
	assert.Equal(t, in.SHA256, evidence.Reference)
	assert.Equal(t, len(target), evidence.Target.Bytes)
	assert.Equal(t, sum(target), evidence.Target.SHA256)
	require.Len(t, evidence.Trajectories, len(in.Plan.Prompts))
	for i, p := range in.Plan.Prompts {
		assert.Equal(t, p.StableID, evidence.Trajectories[i].StableID)
		assert.Len(t, evidence.Trajectories[i].TokenIDs, 32)
		assert.Positive(t, set.Manifest.Precision.Trajectories[p.StableID])
	}
	// It says who computed and who recorded.
	assert.Contains(t, evidence.Implementation.Name, "huggingface_transformers.")
	assert.Contains(t, evidence.Implementation.Name, "Plumbline's tools/goldens/qwen3_5/teacher.py")
	assert.Equal(t, set.Manifest.Recorder.Sources["tools/goldens/qwen3_5/teacher.py"], evidence.Implementation.Producer)
}

func TestADamagedTeacherIsNamed(t *testing.T) {
	set, err := golden.Teacher()
	require.NoError(t, err)
	damaged := func(change func(fs.FS) (fs.FS, error)) *golden.TeacherSet {
		d, err := set.Replaced(change)
		require.NoError(t, err)
		return d
	}
	one := func(s *golden.TeacherSet, model fs.FS, plan []byte) golden.Problem {
		problems := s.Verify(model, plan)
		require.Len(t, problems, 1)
		return problems[0]
	}
	model, plan := fixtures.Qwen35Model(), fixtures.TeacherSummary()
	for name, h := range set.Manifest.Goldens.Files {
		flipped := damaged(func(f fs.FS) (fs.FS, error) { return mutant.FlipBit(f, name, int(rand.Int64N(8*h.Bytes))) })
		assert.Equal(t, "golden/qwen3_5-teacher/"+name, one(flipped, model, plan).File)
		for _, read := range []func() ([]byte, error){flipped.Target, flipped.Evidence} {
			data, err := read()
			assert.Equal(t, err == nil, data != nil)
		}
		_, targetErr := flipped.Target()
		_, evidenceErr := flipped.Evidence()
		assert.Equal(t, []bool{name == "target.bin", name == "evidence.json"}, []bool{targetErr != nil, evidenceErr != nil})
		gone := damaged(func(f fs.FS) (fs.FS, error) { return copied(f, func(m fstest.MapFS) { delete(m, name) }) })
		assert.Equal(t, "file", one(gone, model, plan).What)
	}
	extra := damaged(func(f fs.FS) (fs.FS, error) {
		return copied(f, func(m fstest.MapFS) { m["target.old"] = &fstest.MapFile{Data: []byte("x")} })
	})
	assert.Equal(t, "orphan", one(extra, model, plan).What)

	// A manifest that doesn't name the target, and a folder without it, agree; it is missing all the same.
	gone := damaged(func(f fs.FS) (fs.FS, error) {
		return copied(f, func(m fstest.MapFS) { delete(m, "target.bin") })
	})
	m := *set.Manifest
	m.Goldens.Files = map[string]golden.FileHash{"evidence.json": set.Manifest.Goldens.Files["evidence.json"]}
	gone.Manifest = &m
	assert.Equal(t, "goldens.files", one(gone, model, plan).What)

	plan[rand.IntN(len(plan))] ^= 1
	assert.Equal(t, "fixtures/qwen3_5-teacher/summary.json", one(set, model, plan).File)
	flipped, err := mutant.FlipBit(model, "model.safetensors", 12345)
	require.NoError(t, err)
	assert.Equal(t, "fixtures/qwen3_5-seeded/model.safetensors", one(set, flipped, fixtures.TeacherSummary()).File)
}

func TestTeacherManifestsThatSayTooLittleAreRefused(t *testing.T) {
	data, err := os.ReadFile("qwen3_5-teacher.manifest.json")
	require.NoError(t, err)
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{`"dtype": "bfloat16"`, `"dtype": "float32"`, "arithmetic"},
		{`"passes": 2`, `"passes": 1`, "passes"},
		{`"passes": 2`, `"passes": 2, "more": 1`, "JSON"},
		{golden.TeacherSchema, golden.TensorSchema, "schema and set"},
		{`"library": "transformers"`, `"library": "plumbline"`, "reference.library"},
		{`"points": [`, `"points": [ 0.5,`, "precision"},
		{`"points": [`, `"points": [ 0,`, "precision"},
	} {
		changed := bytes.Replace(data, []byte(c.old), []byte(c.new), 1)
		file := "qwen3_5-teacher.manifest.json"
		_, err := golden.OpenTeacher(fstest.MapFS{
			file:             {Data: changed},
			file + ".sha256": {Data: fmt.Appendf(nil, "%s  %s\n", golden.HexSum(changed), file)},
		}, strings.TrimSuffix(file, ".manifest.json"))
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		var bad *golden.ManifestError
		require.ErrorAs(t, err, &bad, c.want)
		assert.Equal(t, c.want, bad.What)
	}
}
