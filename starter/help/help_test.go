package help

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const sample = "# A *title* of `code`\n\nOne two\nthree `a b` \\<x> [four](five.md), [six](https://seven.example).\n\n" +
	"- an item that goes on and on\n- another\n  1. inner\n  2. second\n\n" +
	"```sh no-run=\"a reason\"\nls | wc   # a line that is longer than the page is wide\n```\n\n" +
	"| name | what it means |\n| --- | --- |\n| `x` | words that are wrapped here |\n| yy | \\| |\n"

func TestRender(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `A title of `+"`code`"+`

One two three `+"`a b`"+`
<x> four, six
<https://seven.example>.

- an item that goes on
  and on
- another
  1. inner
  2. second

    ls | wc   # a line that is longer than the page is wide

name  what it means
`+"`x`"+`   words that are
      wrapped here
yy    |
`, Render(sample, 22, false))
}

// Colour changes no word and no line but for the marks of code.
func TestRenderInColour(t *testing.T) {
	t.Parallel()
	text := Render(sample, 22, true)
	assert.Contains(t, text, bold+"A title of code"+plain)
	assert.Contains(t, text, bold+"a b"+plain+" <x>")
	assert.NotContains(t, text, "`")
	assert.Contains(t, text, "\n"+bold+"name"+plain)
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, codeIndent) {
			assert.LessOrEqual(t, columns(strings.TrimSuffix(line, "\n")), 24, line)
		}
	}
}

// Every topic has a title, and is as readable in a narrow terminal.
func TestTopics(t *testing.T) {
	t.Parallel()
	assert.Contains(t, Names(), "exit-codes")
	for _, name := range Names() {
		topic, found := Find(name)
		assert.True(t, found)
		assert.True(t, strings.HasPrefix(topic.Text, "# "+topic.Title+"\n\n"), "%s begins with # and its title", name)
		assert.LessOrEqual(t, len(topic.Title), 70, "%s is a line in the list of topics", name)
		assert.NotEmpty(t, Render(topic.Text, 40, false))
	}
	for _, name := range []string{"", "nosuch", "../help", "../topics/spec", "spec.md"} {
		_, found := Find(name)
		assert.False(t, found, name)
	}
}
