package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
	"github.com/plumbline-go/plumbline/golden/teacher"
)

const targetsPlan = "testdata/targets/summary.json"

// The rows after a prompt are those that `logits` writes, bit for bit, and the
// trajectory is its output.
func TestTargetsAreTheRowsOfLogits(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join("..", "..", "fixtures", "qwen2-seeded")
	files := teacher.Files{Summary: targetsPlan, Target: filepath.Join(dir, "target.bin"), Evidence: filepath.Join(dir, "evidence.json")}
	var out, stderr bytes.Buffer
	require.Equal(t, exitDone, run([]string{"targets", "--model-dir", model, "--source-teacher-summary", targetsPlan,
		"--output-target", files.Target, "--output-evidence", files.Evidence, "--dtype", "float32", "--quiet"}, &out, &stderr), stderr.String())
	v, err := teacher.Verify(t.Context(), files)
	require.NoError(t, err)
	for _, path := range []string{files.Target, files.Evidence} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), st.Mode())
	}
	// The prompt of point 5 is 8,9,7,9.
	dump := filepath.Join(dir, "logits.bin")
	require.Equal(t, exitDone, run([]string{"logits", "--model", model, "--ids", "8,9,7,9", "--max-new", "32", "--dump-logits", dump, "--quiet"}, &out, &stderr), stderr.String())
	target, err := dumpfmt.OpenTarget(files.Target)
	require.NoError(t, err)
	defer func() { _ = target.Close() }()
	logits, err := dumpfmt.OpenFloatLogits(dump)
	require.NoError(t, err)
	defer func() { _ = logits.Close() }()
	x, y := make([]float32, v.Plan.Vocab), make([]float32, v.Plan.Vocab)
	require.NoError(t, errors.Join(target.Row(5, x), logits.Row(0, y)))
	for i := range x {
		if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
			t.Fatalf("logit %d: got %v, logits wrote %v", i, x[i], y[i])
		}
	}
	// Point 7 is behind 2 in one batch, point 8 a step further.
	require.Equal(t, exitDone, run([]string{"logits", "--model", model, "--ids", "2,7", "--max-new", "1", "--dump-logits", dump + "2", "--quiet"}, &out, &stderr), stderr.String())
	step, err := dumpfmt.OpenFloatLogits(dump + "2")
	require.NoError(t, err)
	defer func() { _ = step.Close() }()
	require.NoError(t, errors.Join(target.Row(8, x), step.Row(0, y)))
	var worst, largest float64
	for i := range x {
		worst, largest = max(worst, math.Abs(float64(x[i]-y[i]))), max(largest, math.Abs(float64(y[i])))
	}
	require.LessOrEqual(t, worst, 1e-4*largest, "a prefix in one batch and in steps agree but for rounding")
	ids := trajectoriesOf(t, files.Evidence)[0]
	require.Contains(t, out.String(), "output_ids: "+ids+"\n")
	require.Equal(t, strconv.Itoa(v.Argmax[5]), strings.Fields(ids)[0])
}

// An evidence file that appears while the model runs is kept, and the target that
// nothing vouches for is taken back.
func TestTargetsWithoutEvidenceAreTakenBack(t *testing.T) {
	dir := t.TempDir()
	f := targetsFlags{target: filepath.Join(dir, "target.bin"), evidence: filepath.Join(dir, "evidence.json")}
	plan, err := teacher.Read(targetsPlan)
	require.NoError(t, err)
	a := &app{stderr: &bytes.Buffer{}, quiet: true}
	appear := func(n int) (teacher.Session, error) {
		err := os.WriteFile(f.evidence, []byte("theirs"), 0o600)
		return constantSession(make([]float32, plan.Vocab)), err
	}
	_, err = a.writeTargets(t.Context(), plan, appear, teacher.Implementation{}, f)
	require.ErrorIs(t, err, os.ErrExist)
	require.ErrorContains(t, err, "targets: nothing written")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	data, err := os.ReadFile(f.evidence)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(data))

	// A logit that isn't finite ends the run, and leaves nothing.
	require.NoError(t, os.Remove(f.evidence))
	row := make([]float32, plan.Vocab)
	row[3] = float32(math.NaN())
	_, err = a.writeTargets(t.Context(), plan, func(int) (teacher.Session, error) { return constantSession(row), nil }, teacher.Implementation{}, f)
	require.ErrorContains(t, err, "targets: nothing written: teacher: example forced/one, row after 4 tokens: value 3: got NaN")
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// constantSession answers everything with one row.
type constantSession []float32

func (s constantSession) Prefill(context.Context, []int) ([]float32, error) { return s, nil }
func (s constantSession) Step(context.Context, int) ([]float32, error)      { return s, nil }
func (constantSession) Close() error                                        { return nil }

// trajectoriesOf are the tokens of each trajectory, with spaces between them.
func trajectoriesOf(t *testing.T, path string) []string {
	evidence, err := canonical.ReadFile(path, 1<<20)
	require.NoError(t, err)
	list, _ := evidence.Get("greedy_trajectories")
	var all []string
	for i := range list.Len() {
		ids, _ := list.Index(i).Get("token_ids")
		small, ok := ids.Ints()
		require.True(t, ok)
		all = append(all, strings.Trim(fmt.Sprint(small), "[]"))
	}
	return all
}
