package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColourIsWanted(t *testing.T) {
	for _, tt := range []struct {
		name     string
		flag     colourFlag
		env      map[string]string
		terminal bool
		want     bool
	}{
		{"a terminal", "auto", nil, true, true},
		{"a pipe", "auto", nil, false, false},
		{"NO_COLOR", "auto", map[string]string{"NO_COLOR": "1"}, true, false},
		{"NO_COLOR with any value", "auto", map[string]string{"NO_COLOR": "false"}, true, false},
		{"NO_COLOR that is empty", "auto", map[string]string{"NO_COLOR": ""}, true, true},
		{"a terminal without", "auto", map[string]string{"TERM": "dumb"}, true, false},
		{"never", "never", nil, true, false},
		{"always, in a pipe", "always", nil, false, true},
		{"always is the user's own word", "always", map[string]string{"NO_COLOR": "1"}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.flag.wanted(func(k string) string { return tt.env[k] }, func() bool { return tt.terminal })
			require.Equal(t, tt.want, got)
		})
	}
}

func TestColourOfAGate(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	for _, tt := range []struct {
		args []string
		want bool
	}{{nil, false}, {[]string{"--color", "always"}, true}, {[]string{"--color=always", "--json"}, false}, {[]string{"--color=never"}, false}} {
		var out, stderr bytes.Buffer
		require.Equal(t, exitDone, run(append(exactPair(t, false), tt.args...), &out, &stderr), stderr.String())
		require.Equal(t, tt.want, bytes.Contains(out.Bytes(), []byte("\x1b[32mconforms\x1b[0m")), "%v", tt.args)
	}
}
