package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/fixtures"
)

// BenchmarkShards compares the CPU time (user and system) of four shards, each a
// process, with that of one run: on the embedded prompts, and on three times as many.
func BenchmarkShards(b *testing.B) {
	model, err := filepath.Abs("../../fixtures/qwen2-trained")
	require.NoError(b, err)
	b.Setenv(modelEnv, "")
	cases, err := fixtures.Prompts()
	require.NoError(b, err)
	cpu := func(args ...string) float64 {
		cmd := exec.Command("plumbline", append(args, "--quiet")...)
		out, err := cmd.CombinedOutput()
		require.NoError(b, err, string(out))
		return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	for _, times := range []int{1, 3} {
		b.Run(fmt.Sprintf("prompts=%d", times*len(cases)), func(b *testing.B) {
			dir := b.TempDir()
			var lines strings.Builder
			for k := range times {
				for _, c := range cases {
					// Others than before, and nearly as long; the tokenizer makes the ids.
					line, err := json.Marshal(map[string]any{"name": fmt.Sprintf("%s_%d", c.Name, k), "prompt": c.Name, "text": c.Text + strings.Repeat(" more", k)})
					require.NoError(b, err)
					lines.Write(append(line, '\n'))
				}
			}
			prompts, dumps := filepath.Join(dir, "prompts.jsonl"), filepath.Join(dir, "dumps")
			require.NoError(b, os.WriteFile(prompts, []byte(lines.String()), 0o666))
			cpu("capture", "--model", model, "--prompts", prompts, "--out", dumps)
			gate := []string{"gate", "--model", model, "--candidate", dumps, "--allow-partial", "--report"}
			whole, shards := 0.0, 0.0
			for i := 0; b.Loop(); i++ {
				out := filepath.Join(dir, fmt.Sprint("reports", i))
				whole += cpu(append(gate, filepath.Join(out, "whole"))...)
				for s := range 4 {
					shards += cpu(append(gate, filepath.Join(out, fmt.Sprint(s)), "--shard", fmt.Sprintf("%d/4", s), "--costs", filepath.Join(out, "whole", "report.json"))...)
				}
			}
			b.ReportMetric(whole/float64(b.N), "whole-cpu-s/op")
			b.ReportMetric(shards/float64(b.N), "shards-cpu-s/op")
			b.ReportMetric(shards/whole, "shards/whole")
		})
	}
}
