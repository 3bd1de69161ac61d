package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

func TestReadGivesBackWhatWasWritten(t *testing.T) {
	all := samples()
	real, err := embedded()
	require.NoError(t, err)
	require.Equal(t, conformance.Fails, real.Conclusion, "it has a planted fault")
	all["of a run"] = real
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			want := written(t, r)
			got, err := Read(bytes.NewReader(want))
			require.NoError(t, err)
			require.Equal(t, string(want), string(written(t, got)))
		})
	}
	t.Run("every field", func(t *testing.T) {
		want := written(t, filled(t))
		d := decodingOf(want)
		got, err := d.report() // without asking whether it contradicts itself: it does
		require.NoError(t, err)
		require.Equal(t, string(want), string(written(t, got)))
	})
	t.Run("in another order and layout", func(t *testing.T) {
		var v any
		want := written(t, all["fails"])
		require.NoError(t, json.Unmarshal(want, &v))
		compact, err := json.Marshal(v) // sorted: schema_version is not the first
		require.NoError(t, err)
		got, err := Read(bytes.NewReader(compact))
		require.NoError(t, err)
		require.Equal(t, string(want), string(written(t, got)))
	})
}

func TestReadRefuses(t *testing.T) {
	whole := string(written(t, samples()["fails"]))
	change := func(old, with string) string {
		t.Helper()
		require.Contains(t, whole, old)
		return strings.Replace(whole, old, with, 1)
	}
	for _, tt := range []struct {
		name, text string
		says       []string
	}{
		{"nothing", "", []string{"byte 0", "got an empty file"}},
		{"no JSON", "conclusion: conforms\n", []string{"byte 0", "invalid character 'c'"}},
		{"an array", "[]", []string{"byte 1", "got an array, want an object"}},
		{"garbage behind it", whole + "x", []string{fmt.Sprintf("byte %d", len(whole)), "something after the report"}},
		{"a second one", whole + whole, []string{"an object after the report"}},
		{"an unknown key", change(`"executed"`, `"exectued"`), []string{"/exectued", `an unknown key "exectued"`}},
		{"an unknown key further in", change(`"channel": -1`, `"chanel": -1`), []string{"/checks/0/findings/0/at/chanel"}},
		{"a key twice", change(`"executed"`, `"conclusion": "conforms", "executed"`), []string{"/conclusion", "for the second time"}},
		{"a case twice", change(`"paris": {`, `"berlin": {`), []string{"/cases/berlin", "for the second time"}},
		{"a key in capitals", change(`"executed"`, `"Executed"`), []string{`an unknown key "Executed"`}},
		{"a key that is missing", change(`"executed": 7,`, ``), []string{"got no executed"}},
		{"a text for a number", change(`"executed": 7`, `"executed": "2"`), []string{"/executed", "got a string, want a whole number"}},
		{"a fraction", change(`"executed": 7`, `"executed": 2.5`), []string{"/executed", "got 2.5, want a whole number"}},
		{"a number too large", change(`"got": 0.5`, `"got": 1e999`), []string{"/checks/0/findings/0/got", "got 1e999"}},
		{"another word for NaN", change(`"got": 0.5`, `"got": "nan"`), []string{"/checks/0/findings/0/got", `got "nan", want a number, "NaN", "+Inf" or "-Inf"`}},
		{"a number for a text", change(`"reproduce": "`, `"reproduce": 1, "x": "`), []string{"/reproduce", "got a number, want a string"}},
		{"null for a list", change(`"power": [`, `"power": null, "x": [`), []string{"/power", "got null"}},
		{"an unknown conclusion", change(`"fails"`, `"passes"`), []string{"/conclusion", `got "passes", want one of "conforms", "partial", "fails", "nothing judged"`}},
		{"an unknown status", change(`"status": "fail"`, `"status": "failed"`), []string{"/checks/0/status", `got "failed"`}},
		{"an unknown kind", change(`"kind": "layer"`, `"kind": ""`), []string{"/kind", `got ""`}},
		{"bytes that are no text", change("berlin", "berl\xffin"), []string{"invalid UTF-8"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.json")
			require.NoError(t, os.WriteFile(path, []byte(tt.text), 0o600))
			_, err := ReadFile(path)
			var broken *FormatError
			require.ErrorAs(t, err, &broken)
			for _, s := range append(tt.says, "report: "+path+": byte ") {
				assert.Contains(t, err.Error(), s)
			}
		})
	}
}

func TestReadRefusesOtherVersions(t *testing.T) {
	whole := string(written(t, samples()["fails"]))
	for _, tt := range []struct {
		name, text string
		got        int
		says       string
	}{
		{"1", strings.Replace(whole, `"schema_version": 2`, `"schema_version": 1`, 1), 1, "schema_version: got 1, want 2: version 1 lacks"},
		{"3", strings.Replace(whole, `"schema_version": 2`, `"schema_version": 3`, 1), 3, "a newer plumbline wrote it"},
		{"0", strings.Replace(whole, `"schema_version": 2`, `"schema_version": 0`, 1), 0, "got 0, want 2"},
		{"another shape before the version", `{"judges": [{"a": [1]}], "schema_version": 3}`, 3, "got 3, want 2"},
		{"version 1 without what is new", `{"conclusion": "conforms", "schema_version": 1}`, 1, "got 1, want 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.text))
			var v *VersionError
			require.ErrorAs(t, err, &v)
			require.Equal(t, VersionError{Got: tt.got, Want: 2}, *v)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// A report that was cut off anywhere is never taken for a whole one.
func TestReadRefusesHalfAReport(t *testing.T) {
	whole := bytes.TrimSpace(written(t, samples()["fails"]))
	for n := range whole {
		_, err := Read(bytes.NewReader(whole[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "after %d bytes", n)
		var f *FormatError
		require.ErrorAs(t, err, &f)
		require.LessOrEqual(t, f.Offset, int64(n))
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReadTellsAFaultOfTheDiskFromOneOfTheReport(t *testing.T) {
	lost := errors.New("input/output error")
	whole := written(t, samples()["fails"])
	_, err := Read(io.MultiReader(bytes.NewReader(whole[:500]), failing{lost}))
	require.ErrorIs(t, err, lost)
	var f *FormatError
	require.NotErrorAs(t, err, &f)
	_, err = ReadFile(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadHasALimit(t *testing.T) {
	whole := written(t, samples()["fails"])
	_, err := read(bytes.NewReader(whole), "x.json", int64(len(whole)))
	require.NoError(t, err)
	_, err = read(bytes.NewReader(whole), "x.json", int64(len(whole))-2)
	require.ErrorContains(t, err, fmt.Sprintf("got more than %d bytes", len(whole)-2))
	var f *FormatError
	require.ErrorAs(t, err, &f)
	_, err = read(bytes.NewReader(whole[:len(whole)-3]), "x.json", int64(len(whole))-3)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a cut report of just the limit is a cut report")
}

func TestReadTakesManyFindings(t *testing.T) {
	r := samples()["fails"]
	f := r.Checks[0].Findings[0]
	for len(r.Checks[0].Findings) < 100_000 {
		r.Checks[0].Findings = append(r.Checks[0].Findings, f)
	}
	got, err := Read(bytes.NewReader(written(t, r)))
	require.NoError(t, err)
	require.Len(t, got.Checks[0].Findings, 100_000)
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"nothing-judged", "waived", "shard"} { // small ones: minimising takes long
		var b bytes.Buffer
		require.NoError(f, json.Compact(&b, written(f, samples()[name])))
		f.Add(b.Bytes())
	}
	f.Add([]byte(`{"schema_version": 1}`))
	f.Add([]byte(`{"schema_version": 2, "conclusion": "conforms", "executed": 1e3, "cases": {"a": null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		once := written(t, r)
		again, err := Read(bytes.NewReader(once))
		require.NoError(t, err)
		require.Equal(t, once, written(t, again))
		if len(r.Failures()) > 0 && failed(r) != nil && !r.ReferenceFailed {
			require.Equal(t, conformance.Fails, r.Conclusion)
		}
		for _, format := range []Format{FormatText, FormatMarkdown, FormatJUnit} {
			require.NoError(t, Write(io.Discard, r, format))
		}
	})
}
