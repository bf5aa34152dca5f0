package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatIsSaidOnceToAUser(t *testing.T) {
	a, again := &App{}, &App{}
	a.Global.StateDir = t.TempDir() + "/state"
	again.Global.StateDir = a.Global.StateDir
	assert.True(t, a.FirstTime("said-x"))
	assert.False(t, again.FirstTime("said-x"))
	assert.True(t, again.FirstTime("said-y"))
}
