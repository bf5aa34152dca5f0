package command

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What --show cannot show is named, and the command has not done what it was asked.
func TestStacksOfAnotherHost(t *testing.T) {
	here := filepath.Join(t.TempDir(), "stacks.txt")
	require.NoError(t, os.WriteFile(here, []byte("main\n"), 0o600))
	captured := []stacksOfTask{{Task: "worker-0", Host: "a", File: here}, {Task: "worker-1", Host: "b", File: here + ".away"}}
	for _, json := range []bool{false, true} {
		var out, errs bytes.Buffer
		a := &app{out: &out, err: &errs}
		a.global.json = json
		assert.Equal(t, exitMachinery, codeOf(a.printStacks("iris-1", nil, captured, true)))
		assert.Contains(t, out.String(), "main")
		assert.Equal(t, "clusterrun: not on this machine, and left out:\n  worker-1: "+here+".away on b\n", errs.String())
		assert.NoError(t, a.printStacks("iris-1", nil, captured[:1], true))
		assert.NoError(t, a.printStacks("iris-1", nil, captured, false))
	}
}
