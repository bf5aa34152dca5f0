package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestHead(t *testing.T) {
	assert.Equal(t, "abc", Head("abc", 3))
	assert.Equal(t, "ab", Head("abc", 2))
	assert.Equal(t, "é", Head("éé", 3), "no half of a character")
	assert.Empty(t, Head("é", 1))
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abcdefgh", 6, "abc…"}, {"ééééé", 6, "é…"}, {"abcdef", 2, ""}, {"abcdef", 3, "…"},
	} {
		assert.Equal(t, c.want, Text(c.text, c.most), "%q in %d", c.text, c.most)
	}
}

func TestMiddle(t *testing.T) {
	assert.Equal(t, "abcdef", Middle("abcdef", 6, "-"))
	assert.Equal(t, "ab-fg", Middle("abcdefg", 5, "-"))
	assert.Equal(t, "é-é", Middle("éééé", 6, "-"))
	assert.Equal(t, "---", Middle("abcdefg", 2, "---"))
}

func TestTraceback(t *testing.T) {
	assert.Equal(t, "short", Traceback("short", 5))
	text := Traceback("first frame\n"+strings.Repeat("ü", 1000)+"\nlast frame", 200)
	assert.LessOrEqual(t, len(text), 200)
	assert.True(t, utf8.ValidString(text))
	assert.Regexp(t, `^first frame\nü+\n… \d+ bytes omitted …\nü+\nlast frame$`, text)
}

func TestList(t *testing.T) {
	names := []string{"a", "b", "c"}
	assert.Equal(t, "a, b, c", List(names, 3))
	assert.Equal(t, "a, b and 1 more", List(names, 2))
}

func TestToFit(t *testing.T) {
	v := []string{strings.Repeat("<", 10), "b", "c"} // < takes six bytes in JSON
	steps := 0
	drop := func() { v, steps = v[1:], steps+1 }
	assert.True(t, ToFit(&v, Size(v), drop))
	assert.Equal(t, 0, steps)
	assert.True(t, ToFit(&v, len(`["b","c"]`), drop, drop))
	assert.Equal(t, []string{"b", "c"}, v)
	assert.False(t, ToFit(&v, 1, drop))
	assert.Equal(t, []string{"c"}, v)
}
