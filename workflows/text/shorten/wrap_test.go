package shorten

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWrap(t *testing.T) {
	assert.Equal(t, []string{"one two", "three-and-more", "é ü ö", "four"}, Wrap(" one  two three-and-more\té ü ö four", 7))
	assert.Empty(t, Wrap(" ", 7))
}
