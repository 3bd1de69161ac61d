package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/fixtures"
	"github.com/plumbline-go/plumbline/golden/trace"
)

// BenchmarkTrace is a trace of the embedded 27-layer model, for a number of sources:
// what a source costs, and that memory doesn't follow their number.
func BenchmarkTrace(b *testing.B) {
	dir := b.TempDir()
	require.NoError(b, os.CopyFS(filepath.Join(dir, "model"), fixtures.DeepSeek2Model()))
	for _, sources := range []int{1, 4} {
		b.Run(fmt.Sprintf("sources=%d", sources), func(b *testing.B) {
			var rows []byte
			for n := range sources {
				rows = append(rows, embeddedSource(b, fmt.Sprint("a", n))...)
			}
			path := filepath.Join(dir, "ids.jsonl")
			require.NoError(b, writeFile(path, rows))
			b.ReportAllocs()
			for b.Loop() {
				var out, stderr bytes.Buffer
				require.Equal(b, exitDone, run([]string{"trace", "--model", filepath.Join(dir, "model"), "--sources", path, "--output", filepath.Join(dir, "a.json"), "--overwrite", "--quiet"}, &out, &stderr), stderr.String())
			}
			d, err := trace.Read(filepath.Join(dir, "a.json"))
			require.NoError(b, err)
			b.ReportMetric(d.Execution.ForwardSeconds/float64(sources), "s/source")
			b.ReportMetric(float64(d.Execution.MaxRSSKiB)/1024, "MiB-RSS")
		})
	}
}
