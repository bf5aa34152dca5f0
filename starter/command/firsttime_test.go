package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatIsSaidOnceToAUser(t *testing.T) {
	a, again := &app{}, &app{}
	a.global.stateDir = t.TempDir() + "/state"
	again.global.stateDir = a.global.stateDir
	assert.True(t, a.firstTime("said-x"))
	assert.False(t, again.firstTime("said-x"))
	assert.True(t, again.firstTime("said-y"))
}
