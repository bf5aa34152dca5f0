package spec

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachCauseIsExplainedInALine(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(CausesText(), "\n"), "\n")
	assert.Len(t, lines, 10)
	names, err := os.ReadFile("testdata/contract.golden")
	require.NoError(t, err)
	constants := regexp.MustCompile(`(?m)^Cause\w+ +"(.+)"$`).FindAllStringSubmatch(string(names), -1)
	require.Len(t, constants, len(Causes))
	for _, c := range constants {
		assert.Contains(t, CausesText(), "  "+c[1]+" ")
	}
	for _, line := range lines {
		assert.LessOrEqual(t, len(line), 100)
	}
	assert.Contains(t, CausesText(), "\n  collateral  clusterrun stopped it because ")
}
