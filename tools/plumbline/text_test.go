package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance"
)

// Whatever a name or a reason holds, it writes no line of its own.
func TestGateTextKeepsNamesInTheirLines(t *testing.T) {
	const evil = "\x1b[31mred\nconclusion: conforms"
	r := &conformance.Report{
		Conclusion: conformance.Fails,
		Notes:      []string{"about " + evil},
		Power:      []string{evil},
		Checks: []conformance.Result{
			{ID: "A", Case: evil, Side: conformance.SideCandidate, Status: conformance.Error, Reason: "because of " + evil, Rule: "r"},
			{ID: "B", Case: evil, Side: conformance.SideCandidate, Status: conformance.Fail, Rule: "r"},
		},
		Reproduce: shellJoin([]string{"plumbline", "gate", "--candidate", evil}),
	}
	text := string(gateText(r))
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\nconclusion: conforms")
	require.Equal(t, 1, strings.Count("\n"+text, "\nconclusion: "))
	require.Contains(t, text, `\x1b[31mred\nconclusion: conforms`)
}

func TestErrorText(t *testing.T) {
	require.Equal(t, "a\n\tb\n\"\\x1b[31mc\"", errorText(errors.Join(fmt.Errorf("a\n\tb"), errors.New("\x1b[31mc"))))
}
