package page_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/conformance/report/page"
)

// BenchmarkHTML29x100 writes the page of a model of 28 layers on 100 prompts, most
// rows of which are over their bounds. The target is a second and 2 MB.
func BenchmarkHTML29x100(b *testing.B) {
	r := sample(29, 100, 3)
	require.NoError(b, page.Write(&bytes.Buffer{}, r)) // templates and font are made once
	var out bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		require.NoError(b, page.Write(&out, r))
	}
	b.ReportMetric(float64(out.Len()), "bytes")
}

// BenchmarkHTML100kFindings has more findings than a page takes.
func BenchmarkHTML100kFindings(b *testing.B) {
	r := many(100_000)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		require.NoError(b, page.Write(&out, r))
	}
	b.ReportMetric(float64(out.Len()), "bytes")
}
