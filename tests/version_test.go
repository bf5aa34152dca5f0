package tests

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// All parts of a release have the same version.
func TestOneVersion(t *testing.T) {
	for file, line := range map[string]string{
		"../CHANGELOG.md": "\n## [" + spec.Version + "]",
		"../activities/tasks/python/pyproject.toml": "\nversion = \"" + spec.Version + "\"\n",
		"../activities/tasks/taskapi/openapi.yaml":  "\n  version: " + spec.Version + "\n",
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(text), line, file)
	}
	assert.DirExists(t, "../workflows/testdata/replay/v"+spec.Version, "make record records its histories")
}
