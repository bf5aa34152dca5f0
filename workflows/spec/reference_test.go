package spec

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestReferenceGolden(t *testing.T) {
	golden(t, "testdata/reference.golden.txt", Reference())
}

func TestReferenceFitsTheScreen(t *testing.T) {
	for line := range strings.SplitSeq(Reference(), "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), referenceColumns, line)
	}
	for _, f := range fields {
		if strings.HasPrefix(f.of, "Archive.") || strings.HasPrefix(f.of, "HostService.") || strings.HasPrefix(f.of, "Signature.") || strings.HasPrefix(f.of, "Batch.") {
			continue // not written by hand
		}
		assert.Contains(t, Reference(), f.example+"\n", f.of)
	}
}
