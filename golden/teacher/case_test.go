package teacher

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
)

// The case that testdata/make_case.py made.
const (
	caseSummary  = "testdata/case/summary.json"
	caseTarget   = "testdata/case/target.bin"
	caseEvidence = "testdata/case/evidence.json"
	caseVocab    = 37
)

func readCase(t testing.TB, path string) canonical.Value {
	t.Helper()
	v, err := canonical.ReadFile(path, 1<<20)
	require.NoError(t, err)
	return v
}

func casePlan(t testing.TB) *Plan {
	t.Helper()
	p, err := Read(caseSummary)
	require.NoError(t, err)
	return p
}

// made is the model that make_case.py made up.
type made struct {
	ids   []int
	row   []float32
	calls *[]string
	most  int
}

func (m *made) logits() ([]float32, error) {
	state := 7
	for _, id := range m.ids {
		state = (state*1_000_003 + id + 1) % (1 << 31)
	}
	for i := range m.row {
		m.row[i] = float32((state>>(i%11))*(i+3)%97-48) / 8
	}
	return m.row, nil
}

func (m *made) Prefill(_ context.Context, ids []int) ([]float32, error) {
	m.ids = slices.Clone(ids)
	*m.calls = append(*m.calls, "prefill "+strconv.Itoa(len(ids)))
	return m.logits()
}

func (m *made) Step(_ context.Context, id int) ([]float32, error) {
	m.ids = append(m.ids, id)
	if len(m.ids) > m.most {
		panic("more positions than asked for")
	}
	*m.calls = append(*m.calls, "step")
	return m.logits()
}

func (m *made) Close() error {
	*m.calls = append(*m.calls, "close "+strconv.Itoa(len(m.ids)))
	return nil
}

func open(calls *[]string) func(int) (Session, error) {
	return func(most int) (Session, error) {
		*calls = append(*calls, "open "+strconv.Itoa(most))
		return &made{row: make([]float32, caseVocab), calls: calls, most: most}, nil
	}
}

// A run writes what Python wrote for the same model, byte for byte, in the script's
// schedule.
func TestExecuteWritesWhatPythonWrote(t *testing.T) {
	plan := casePlan(t)
	dir := t.TempDir()
	w, err := dumpfmt.CreateTarget(filepath.Join(dir, "target.bin"), plan.TargetSpec())
	require.NoError(t, err)
	defer func() { _ = w.Abort() }()
	var calls []string
	trajectories, err := Execute(t.Context(), plan, open(&calls), func(p Point, row []float32) error {
		calls = append(calls, "point "+strconv.Itoa(p.Ordinal))
		return w.WriteRow(p.Ordinal, row)
	})
	require.NoError(t, err)
	sum, err := w.Commit()
	require.NoError(t, err)
	require.Equal(t, strings.Fields(strings.ReplaceAll(`
		open~10 prefill~4 point~0 step point~1 point~2 step step step point~3 step step point~4 close~10
		open~35 prefill~4 point~5 `+strings.Repeat("step ", 31)+`close~35
		open~32 prefill~1 point~6 `+strings.Repeat("step ", 31)+`close~32
		open~2 prefill~1 point~7 step point~8 close~2`, "~", "_")), strings.Fields(strings.ReplaceAll(strings.Join(calls, "\n"), " ", "_")))
	require.Equal(t, 7+32+32+2, plan.Calls())
	require.Equal(t, 35, plan.MaxPositions())

	evidence, err := NewEvidence(plan, sum, trajectories, Implementation{
		Name: "made up", ProducerSHA256: sumOf("producer"), RepositoryURL: "https://example.org/<made-up>", PackageVersion: "v0",
		DependencyLockSHA256: sumOf("modules"), GoVersion: "go1", FrameworkVersion: "none", Device: "paper", SourceDType: "eighths", Attention: "none", Cache: true,
	})
	require.NoError(t, err)
	written, err := EvidenceBytes(evidence)
	require.NoError(t, err)
	require.NoError(t, dumpfmt.WriteFile(filepath.Join(dir, "made", "evidence.json"), written, dumpfmt.WriteOptions{Perm: 0o600}))
	for path, want := range map[string]string{"target.bin": caseTarget, "made/evidence.json": caseEvidence} {
		got, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		python, err := os.ReadFile(want)
		require.NoError(t, err)
		require.True(t, string(got) == string(python), "%s: got %q, want %q", path, got, python)
		st, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), st.Mode())
	}

	v, err := Verify(t.Context(), Files{Summary: caseSummary, Target: filepath.Join(dir, "target.bin"), Evidence: filepath.Join(dir, "made", "evidence.json")})
	require.NoError(t, err)
	require.Equal(t, sum, v.Target)
	require.Equal(t, "made up", v.Producer)
	self, _ := evidence.Get("evidence_sha256")
	text, _ := self.Text()
	require.Equal(t, text, v.EvidenceSHA256.String())
	require.Equal(t, trajectories[0].Tokens[0], v.Argmax[5])
}

// path addresses a value: keys and indices, joined by "/".
func at(v canonical.Value, path string) canonical.Value {
	for _, key := range strings.Split(path, "/") {
		if i, err := strconv.Atoi(key); err == nil && v.Kind() == canonical.KindArray {
			v = v.Index(i)
			continue
		}
		v, _ = v.Get(key)
	}
	return v
}

// replaced returns v with what change makes of the value at path; with the zero path
// that is v itself.
func replaced(v canonical.Value, path string, change func(canonical.Value) canonical.Value) canonical.Value {
	if path == "" {
		return change(v)
	}
	key, rest, _ := strings.Cut(path, "/")
	if v.Kind() == canonical.KindArray {
		i, err := strconv.Atoi(key)
		if err != nil || i >= v.Len() {
			panic("no element " + path)
		}
		all := elements(v)
		all[i] = replaced(all[i], rest, change)
		return canonical.Array(all...)
	}
	m, _ := v.Get(key)
	return v.With(key, replaced(m, rest, change))
}

func elements(v canonical.Value) []canonical.Value {
	all := make([]canonical.Value, v.Len())
	for i := range all {
		all[i] = v.Index(i)
	}
	return all
}

// edit changes a summary or evidence.
type edit func(canonical.Value) canonical.Value

// set replaces a value with one of JSON.
func set(path, text string) edit {
	return func(v canonical.Value) canonical.Value {
		return replaced(v, path, func(canonical.Value) canonical.Value { return value(text) })
	}
}

func value(text string) canonical.Value {
	v, err := canonical.Parse(text, []byte(text))
	if err != nil {
		panic(err)
	}
	return v
}

func without(path, key string) edit {
	return func(v canonical.Value) canonical.Value {
		return replaced(v, path, func(o canonical.Value) canonical.Value { return o.Without(key) })
	}
}

// last moves a key to the end of its object.
func last(path, key string) edit {
	return func(v canonical.Value) canonical.Value {
		return replaced(v, path, func(o canonical.Value) canonical.Value {
			m, _ := o.Get(key)
			return o.Without(key).With(key, m)
		})
	}
}

// list changes an array.
func list(path string, change func([]canonical.Value) []canonical.Value) edit {
	return func(v canonical.Value) canonical.Value {
		return replaced(v, path, func(a canonical.Value) canonical.Value { return canonical.Array(change(elements(a))...) })
	}
}

func all(edits ...edit) edit {
	return func(v canonical.Value) canonical.Value {
		for _, e := range edits {
			v = e(v)
		}
		return v
	}
}

const (
	inInput = "reference_input"
	inPlan  = inInput + "/prediction_plan"
)

// rehashed makes the plan's hash, the input's and the summary's right again, so that
// only what was changed is wrong.
func rehashed(v canonical.Value) canonical.Value {
	manifest := canonical.String(mustSum(at(v, inPlan).Without("manifest_sha256")).String())
	v = v.With("prediction_plan_sha256", manifest)
	v = replaced(v, inPlan, func(p canonical.Value) canonical.Value { return p.With("manifest_sha256", manifest) })
	if sum, ok := inputSHA256(at(v, inInput)); ok {
		v = replaced(v, inInput, func(p canonical.Value) canonical.Value {
			return p.With("reference_input_sha256", canonical.String(sum.String()))
		})
	}
	return v
}
