package report

import (
	"bytes"
	"context"

	"path/filepath"
	"sync"
	"testing"

	"github.com/plumbline-go/plumbline/conformance"
	"github.com/plumbline-go/plumbline/tools/suite"
)

// ofTheSuite is the report of the suite on the embedded model, prompts and candidate.
var ofTheSuite = sync.OnceValues(func() (*conformance.Report, error) {
	cfg, err := suite.Embedded()
	if err != nil {
		return nil, err
	}
	return conformance.Evaluate(context.Background(), cfg)
})

// BenchmarkReporting is what a gate on the embedded model spends on its report folder.
// conformance's BenchmarkEvaluate is what it spends on the verdict.
func BenchmarkReporting(b *testing.B) {

	r, err := ofTheSuite()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	b.Run("folder", func(b *testing.B) {
		for b.Loop() {
			if err := OverwriteFolder(filepath.Join(dir, "report"), r); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, f := range []Format{FormatText, FormatJSON, FormatMarkdown, FormatJUnit} {
		b.Run(string(f), func(b *testing.B) {
			var size counter
			for b.Loop() {
				size = 0
				if err := Write(&size, r, f); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "B/report")
		})
	}
	b.Run("read", func(b *testing.B) {
		var j bytes.Buffer
		if err := r.WriteJSON(&j); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(j.Len()))
		for b.Loop() {
			if _, err := Read(bytes.NewReader(j.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
