package top

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCleanLinesAreOne(t *testing.T) {
	assert.Equal(t, "a run b", clean("a\nrun b\n"))
	assert.Equal(t, "red    x", clean("\x1b[31mred\tx\r\n"))
}
