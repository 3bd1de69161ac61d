package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// Ctrl-C is told in words of its own, a cancelled context of anything else isn't.
func TestInterruptedIsSaidSo(t *testing.T) {
	for _, pressed := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		if pressed {
			cancel()
		}
		var stderr bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetContext(ctx)
		(&app{stderr: &stderr}).complain(cmd, fmt.Errorf("targets: nothing written: %w", context.Canceled))
		cancel()
		want := map[bool]string{true: "interrupted", false: "context canceled"}[pressed]
		require.Equal(t, "plumbline: targets: nothing written: "+want+"\n", stderr.String())
	}
}
