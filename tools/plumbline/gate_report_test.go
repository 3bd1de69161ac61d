package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/conformance/report"
)

// exactPair is two dump folders of one engine, the second with or without a fault.
func exactPair(t *testing.T, fault bool) []string {
	t.Helper()
	dir := t.TempDir()
	want, got := filepath.Join(dir, "want"), filepath.Join(dir, "got")
	require.NoError(t, writeDumps(want, "int8", []string{"berlin", "paris"}))
	require.NoError(t, writeDumps(got, "int8", []string{"berlin", "paris"}))
	if fault {
		path := filepath.Join(got, "paris.layers.bin")
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		b[len(b)-1] ^= 1
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	return []string{"gate", "--exact", "--golden", want, "--candidate", got}
}

func TestGateWritesItsReport(t *testing.T) {
	for _, tt := range []struct {
		fault bool
		code  int
		want  conformance.Conclusion
	}{{false, exitDone, conformance.Conforms}, {true, exitFails, conformance.Fails}} {
		dir := filepath.Join(t.TempDir(), "report")
		var out, stderr bytes.Buffer
		require.Equal(t, tt.code, run(append(exactPair(t, tt.fault), "--report", dir), &out, &stderr), stderr.String())
		require.Equal(t, "report: "+filepath.Join(dir, "report.json")+"\n", stderr.String())
		rep, err := report.ReadFile(filepath.Join(dir, report.JSONFile))
		require.NoError(t, err)
		require.Equal(t, tt.want, rep.Conclusion)
		require.Contains(t, out.String(), "conclusion: "+string(tt.want))
		stderr.Reset()
		require.Equal(t, tt.code, run(append(exactPair(t, tt.fault), "--report", filepath.Join(t.TempDir(), "r"), "--quiet"), &out, &stderr))
		require.Empty(t, stderr.String())
		for _, f := range []string{"report.md", "junit.xml"} {
			b, err := os.ReadFile(filepath.Join(dir, f))
			require.NoError(t, err)
			require.Contains(t, string(b), string(tt.want))
		}
	}
}

// The verdict is told although the report can't be written; a bad verdict keeps its code,
// and a good one is a broken run.
func TestAReportThatCantBeWrittenChangesNoBadVerdict(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a folder in which nobody can make one: /proc")
	}
	for _, tt := range []struct {
		fault bool
		code  int
		says  string
	}{{false, exitBroken, "conclusion: conforms\n"}, {true, exitFails, "conclusion: fails\n"}} {
		var out, stderr bytes.Buffer
		require.Equal(t, tt.code, run(append(exactPair(t, tt.fault), "--report", "/proc/plumbline"), &out, &stderr))
		require.Contains(t, out.String(), tt.says)
		require.Contains(t, stderr.String(), "plumbline: --report: report: /proc/plumbline/report.json: ")
	}
}

// The same where it is standard output that fails: the report is written.
func TestAVerdictThatCantBePrintedIsWritten(t *testing.T) {
	for _, tt := range []struct {
		fault bool
		code  int
		want  conformance.Conclusion
	}{{false, exitBroken, conformance.Conforms}, {true, exitFails, conformance.Fails}} {
		dir := filepath.Join(t.TempDir(), "report")
		var stderr bytes.Buffer
		require.Equal(t, tt.code, run(append(exactPair(t, tt.fault), "--report", dir), fullOutput{}, &stderr))
		require.Contains(t, stderr.String(), "standard output: no space left")
		rep, err := report.ReadFile(filepath.Join(dir, report.JSONFile))
		require.NoError(t, err)
		require.Equal(t, tt.want, rep.Conclusion)
	}
}

type fullOutput struct{}

func (fullOutput) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWithReport(t *testing.T) {
	lost := errors.New("disk full")
	reference := errors.New("the reference failed")
	for _, tt := range []struct {
		name          string
		verdict, told error
		code          int
		says          string
	}{
		{"conforms", nil, nil, exitDone, ""},
		{"fails", exitWith(exitFails), nil, exitFails, ""},
		{"conforms, not written", nil, lost, exitBroken, "disk full"},
		{"fails, not written", exitWith(exitFails), lost, exitFails, "disk full"},
		{"not judged, not written", exitWith(exitNotJudged), lost, exitNotJudged, "disk full"},
		{"the reference failed, not written", reference, lost, exitBroken, "the reference failed\ndisk full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := withReport(tt.verdict, nil, tt.told)
			require.Equal(t, tt.code, exitCode(err))
			var e *exitError
			if errors.As(err, &e) && e.err == nil {
				err = nil
			}
			if tt.says == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tt.says)
			}
		})
	}
}
