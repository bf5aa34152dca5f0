package activities

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// A failure that is cut in the middle of a character cannot be sent.
func TestBounded(t *testing.T) {
	for shift := range 4 {
		s := bounded(strings.Repeat("x", shift) + strings.Repeat("\u20ac", 1000))
		assert.True(t, utf8.ValidString(s))
		assert.LessOrEqual(t, len(s), maxMessage)
	}
	assert.Equal(t, "a\uFFFDb", bounded("a\xffb"))
	assert.Equal(t, "short", bounded("short"))
}
