package wrap

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLines(t *testing.T) {
	assert.Equal(t, []string{"one two", "three-and-more", "é ü ö", "four"}, Lines(" one  two three-and-more\té ü ö four", 7))
	assert.Empty(t, Lines(" ", 7))
}
