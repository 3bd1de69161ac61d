package teacher

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/canonical"
)

// heldTo is what the case's evidence is held to.
func heldTo(t testing.TB) EvidenceOf {
	t.Helper()
	v, err := Verify(t.Context(), Files{Summary: caseSummary, Target: caseTarget, Evidence: caseEvidence})
	require.NoError(t, err)
	return EvidenceOf{Plan: v.Plan, Target: &v.Target, Argmax: v.Argmax}
}

// rehashedEvidence makes the evidence's own hash right again.
func rehashedEvidence(v canonical.Value) canonical.Value {
	if v.Kind() != canonical.KindObject {
		return v
	}
	return v.With(selfHashKey, canonical.String(mustSum(v.Without(selfHashKey)).String()))
}

func TestEveryFaultOfEvidenceIsNamed(t *testing.T) {
	const tr = "greedy_trajectories"
	flag := func(key, text string) struct {
		edit edit
		rule Rule
		want string
	} {
		return struct {
			edit edit
			rule Rule
			want string
		}{set(key, text), RuleEvidence, key + ": got " + text}
	}
	for name, c := range map[string]struct {
		edit edit
		rule Rule
		want string
	}{
		"no object":       {func(canonical.Value) canonical.Value { return value("[]") }, RuleEvidence, "the evidence: got [], want an object"},
		"schema":          {set("schema_version", "1.0"), RuleEvidence, "schema_version: got 1.0, want 1"},
		"profile":         {set("profile", `"v2"`), RuleEvidence, `profile: got v2, want external_exact_teacher_reference_target_v1`},
		"input hash":      {set("reference_input_sha256", bad), RuleEvidence, "reference_input_sha256: got 0000"},
		"plan hash":       {set("prediction_plan_sha256", bad), RuleEvidence, "prediction_plan_sha256: got 0000"},
		"artifact":        {set("target_artifact/artifact_id", `"x"`), RuleEvidence, "target_artifact.artifact_id: got x, want external_exact_teacher_logits"},
		"role":            {set("target_artifact/role", `"x"`), RuleEvidence, "target_artifact.role: got x"},
		"length":          {set("target_artifact/byte_len", "1901"), RuleEvidence, "target_artifact.byte_len: got 1901, want 1902"},
		"target hash":     {set("target_artifact/sha256", bad), RuleEvidence, "target_artifact.sha256: got 0000"},
		"last hex digit":  {func(v canonical.Value) canonical.Value { return lastDigit(v, "target_artifact/sha256") }, RuleEvidence, "target_artifact.sha256: got"},
		"no artifact":     {without("", "target_artifact"), RuleFields, "target_artifact: got no such key"},
		"a key more":      {set("extra", "1"), RuleFields, "extra: got a key that isn't known"},
		"reordered":       {last("", "profile"), RuleFields, "reference_input_sha256: got as key 2, want profile there"},
		"artifact's keys": {last("target_artifact", "role"), RuleFields, "target_artifact.byte_len: got as key 2, want role there"},

		"a trajectory less":    {list(tr, drop(1)), RuleTrajectory, "greedy_trajectories: got 1 trajectories, want 2 trajectories"},
		"trajectories swapped": {list(tr, swap(0, 1)), RuleTrajectory, `example gen/é 😀, greedy_trajectories[0].stable_id: got "gen/<&>\u2028", want gen/é 😀`},
		"prompt's hash":        {set(tr+"/1/prompt_token_ids_sha256", bad), RuleTrajectory, "greedy_trajectories[1].prompt_token_ids_sha256: got 0000"},
		"31 tokens":            {list(tr+"/0/token_ids", drop(31)), RuleTrajectory, "token_ids: got 31 tokens, want 32"},
		"33 tokens":            {list(tr+"/0/token_ids", again(0)), RuleTrajectory, "token_ids: got 33 tokens, want 32"},
		"another token":        {set(tr+"/0/token_ids/20", "36"), RuleTrajectory, "greedy_trajectories[0].token_ids_sha256: got"},
		"another first token":  {set(tr+"/0/token_ids/0", "36"), RuleTrajectory, "point 5, greedy_trajectories[0].token_ids[0]: got 36, want 24, the largest logit of the point's row"},
		"token outside":        {set(tr+"/0/token_ids/20", "37"), RuleTrajectory, "token_ids[20]: got 37, want 0 to 36"},
		"negative token":       {set(tr+"/0/token_ids/20", "-1"), RuleTrajectory, "token_ids[20]: got -1, want 0 to 36"},
		"token a float":        {set(tr+"/0/token_ids/20", "3.0"), RuleTrajectory, "want an array of integers"},
		"trajectory's hash":    {set(tr+"/1/token_ids_sha256", bad), RuleTrajectory, "greedy_trajectories[1].token_ids_sha256: got 0000"},
		"no tokens":            {without(tr+"/1", "token_ids"), RuleFields, "greedy_trajectories[1].token_ids: got no such key"},
		"no array":             {set(tr, "{}"), RuleTrajectory, "greedy_trajectories: got {}, want an array"},

		"producer's hash":   {set("implementation/producer_sha256", `"x"`), RuleFields, `implementation.producer_sha256: got "x", want 64`},
		"lock's hash":       {set("implementation/dependency_lock_sha256", `"x"`), RuleFields, `implementation.dependency_lock_sha256: got "x", want 64`},
		"producer no text":  {set("implementation/name", "1"), RuleFields, "implementation.name: got 1, want a string"},
		"two languages":     {set("implementation/python_version", `"3"`), RuleFields, "implementation.python_version: got a key that isn't known"},
		"logits' type":      {set("implementation/logit_dtype", `"bf16"`), RuleEvidence, "implementation.logit_dtype: got bf16, want f32_le"},
		"cache no boolean":  {set("implementation/cache_enabled", "1"), RuleFields, "implementation.cache_enabled: got 1"},
		"no producer":       {set("implementation", "null"), RuleEvidence, "implementation: got null, want an object"},
		"external":          flag("external_reference", "false"),
		"runtime":           flag("runtime_dependency", "true"),
		"teacher":           flag("source_teacher_authority", "true"),
		"authority as text": flag("selector_authority", "0"),
		"dwq":               flag("dwq", "null"),
	} {
		problems := CheckEvidence("e.json", rehashedEvidence(c.edit(readCase(t, caseEvidence))), heldTo(t))
		require.NotEmpty(t, problems, name)
		var texts []string
		for _, p := range problems {
			texts = append(texts, p.Error())
		}
		text := strings.Join(texts, "\n")
		require.Equal(t, c.rule, problems[0].Rule, "%s: %s", name, text)
		require.Contains(t, texts[0], c.want, name)
		require.NotContains(t, text, "rule of our own", name)
		if strings.HasPrefix(c.want, "the evidence") {
			continue
		}
		require.Empty(t, ofRule(problems, RuleEvidenceHash), "the hash was made again: %s", text)
	}
	require.Empty(t, CheckEvidence("e.json", rehashedEvidence(readCase(t, caseEvidence)), heldTo(t)))
}

// ofRule returns the problems with a rule.
func ofRule(problems []Problem, rule Rule) []Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return p.Rule != rule })
}

func lastDigit(v canonical.Value, path string) canonical.Value {
	text, _ := at(v, path).Text()
	other := "0"
	if strings.HasSuffix(text, "0") {
		other = "1"
	}
	return set(path, `"`+text[:len(text)-1]+other+`"`)(v)
}

// The hash of itself holds what nothing else can tell.
func TestEvidenceHashHoldsTheProducer(t *testing.T) {
	held := heldTo(t)
	for _, key := range []string{"name", "repository_url", "package_version", "device", "source_dtype"} {
		problems := CheckEvidence("e.json", set("implementation/"+key, `"other"`)(readCase(t, caseEvidence)), held)
		require.Len(t, problems, 1)
		require.Equal(t, RuleEvidenceHash, problems[0].Rule)
		require.ErrorContains(t, &problems[0], "teacher: e.json: evidence_sha256: got ")
	}
}

// A target that is refused isn't held against the evidence a second time.
func TestEvidenceWithoutATarget(t *testing.T) {
	held := heldTo(t)
	held.Target, held.Argmax = nil, nil
	require.Empty(t, CheckEvidence("e.json", readCase(t, caseEvidence), held))
}

// caseIn copies the case to a folder and returns its three paths.
func caseIn(t *testing.T) Files {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, from := range []string{caseSummary, caseTarget, caseEvidence} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		paths = append(paths, filepath.Join(dir, filepath.Base(from)))
		require.NoError(t, os.WriteFile(paths[len(paths)-1], data, 0o600))
	}
	return Files{Summary: paths[0], Target: paths[1], Evidence: paths[2]}
}

// One bit of any byte of target or evidence is found.
func TestVerifyFindsEveryFlippedByte(t *testing.T) {
	files := caseIn(t)
	for _, path := range []string{files.Target, files.Evidence} {
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		put := func(i int, c byte) {
			_, err := f.WriteAt([]byte{c}, int64(i))
			require.NoError(t, err)
		}
		for i, c := range good {
			put(i, c^1<<(i%7))
			_, err := Verify(t.Context(), files)
			put(i, c)
			var refused *RefusedError
			require.ErrorAs(t, err, &refused, "%s byte 0x%X", path, i)
			var format *dumpfmt.FormatError
			switch {
			case path == files.Evidence:
			case errors.As(err, &format):
				require.LessOrEqual(t, format.Offset, int64(i))
				require.Greater(t, format.Offset+4, int64(i), "a value has four bytes")
			default:
				require.ErrorContains(t, err, "teacher: "+files.Target+": SHA-256 of the file: got ")
				require.ErrorContains(t, err, ", as "+files.Evidence+" says")
			}
		}
		require.NoError(t, f.Close())
	}
	_, err := Verify(t.Context(), files)
	require.NoError(t, err)
}

// One bit of any byte of a summary is found, unless the summary means the same
// without it, or it lies in the receipt, which nothing holds.
func TestParseFindsEveryFlippedByte(t *testing.T) {
	good, err := os.ReadFile(caseSummary)
	require.NoError(t, err)
	meaning := readCase(t, caseSummary).Without("structural_target_receipt")
	accepted := 0
	for i, c := range good {
		data := append([]byte(nil), good...)
		data[i] = c ^ 1<<(i%7)
		if _, err := Parse("x.json", data); err != nil {
			continue
		}
		accepted++
		v, err := canonical.Parse("x.json", data)
		require.NoError(t, err)
		require.True(t, same(meaning, v.Without("structural_target_receipt")), "byte 0x%X: %q became %q", i, c, data[i])
	}
	require.Less(t, accepted, 60, "white space that became other white space, and the receipt")
}

func TestVerifyTellsEverything(t *testing.T) {
	files := caseIn(t)
	data, err := os.ReadFile(files.Target)
	require.NoError(t, err)
	data[34]++
	require.NoError(t, os.WriteFile(files.Target, data, 0o600))
	require.NoError(t, os.WriteFile(files.Evidence, []byte("{}\n"), 0o600))
	_, err = Verify(t.Context(), files)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, &refused.Problems[0], "row 0: point ordinal at byte 0x22: got 0x01, want 0x00")
	require.Equal(t, RuleTarget, refused.Problems[0].Rule)
	require.ErrorContains(t, &refused.Problems[1], files.Evidence+": schema_version: got no such key")

	require.NoError(t, os.WriteFile(files.Evidence, []byte("{"), 0o600))
	_, err = Verify(t.Context(), files)
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, &refused.Problems[1], "canonical: "+files.Evidence+": at byte 0x1")

	// Pretty evidence means the same, but no producer wrote it.
	files = caseIn(t)
	data, err = os.ReadFile(files.Evidence)
	require.NoError(t, err)
	for _, c := range []struct{ data, want string }{
		{strings.Replace(string(data), `"schema_version":1`, `"schema_version": 1`, 1), `byte 0x12: got ' ', want '1', as canonical JSON and a line break have it`},
		{strings.TrimSuffix(string(data), "\n"), `byte 0x74F: got the end, want '\n'`},
		{string(data) + "\n", `byte 0x750: got '\n', want the end`},
	} {
		require.NoError(t, os.WriteFile(files.Evidence, []byte(c.data), 0o600))
		_, err = Verify(t.Context(), files)
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, c.want)
	}

	// Evidence that is too long isn't read.
	require.NoError(t, os.Truncate(files.Evidence, MaxEvidenceBytes+1))
	_, err = Verify(t.Context(), files)
	var size *canonical.SizeError
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, err, &size)
	require.ErrorContains(t, err, "got 67108865 bytes, want at most 67108864 (not read)")

	// A plan with a fault is all that is told.
	require.NoError(t, os.WriteFile(files.Summary, []byte("[]"), 0o600))
	_, err = Verify(t.Context(), files)
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Problems, 1)
	require.NoError(t, os.WriteFile(files.Summary, []byte(`{"a":1,"a":2}`), 0o600))
	_, err = Verify(t.Context(), files)
	require.ErrorAs(t, err, &refused)
	var syntax *canonical.SyntaxError
	require.ErrorAs(t, err, &syntax)
	require.True(t, syntax.Own)
}

// What can't be read isn't refused.
func TestVerifyOfMissingFiles(t *testing.T) {
	files := caseIn(t)
	none := filepath.Join(t.TempDir(), "none")
	for _, paths := range []Files{{Summary: none, Target: files.Target, Evidence: files.Evidence}, {Summary: files.Summary, Target: none, Evidence: files.Evidence}, {Summary: files.Summary, Target: files.Target, Evidence: none}} {
		_, err := Verify(t.Context(), paths)
		var refused *RefusedError
		require.False(t, errors.As(err, &refused))
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, none)
	}
}
