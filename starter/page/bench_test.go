package page

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkLargeRun renders a live run of 2,000 tasks.
func BenchmarkLargeRun(b *testing.B) {
	p := largeRun()
	var page bytes.Buffer
	for b.Loop() {
		page.Reset()
		require.NoError(b, RenderRun(&page, p, Live))
	}
	b.ReportMetric(float64(page.Len()), "page-bytes")
}
