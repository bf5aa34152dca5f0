package help

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestRender(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `# A title of `+"`code`"+`

One two three `+"`a b`"+`
four, five six.

- an item that goes on
  and on
- another

    ls | wc   # a line that is longer than the page is wide

| name | what it means |
`, Render("# A title of `code`\n\nOne two\nthree `a b` [four](five.md), [five\nsix](seven.md).\n\n"+
		"- an item that goes\n  on and on\n- another\n\n"+
		"```sh no-run=\"a reason\"\nls | wc   # a line that is longer than the page is wide\n```\n\n"+
		"| name | what it [means](five.md) |\n", 22))
}

// Every topic has a title, and is as readable in a narrow terminal.
func TestTopics(t *testing.T) {
	t.Parallel()
	assert.Contains(t, Names(), "exit-codes")
	assert.Len(t, slices.Compact(Names()), len(Names()), "names are unique")
	pages := must.Get(filepath.Glob("topics/*.md"))(t)
	assert.Empty(t, pages, "a topic belongs in the directory of a group")
	for _, name := range Names() {
		topic, found := Find(name)
		assert.True(t, found)
		assert.True(t, strings.HasPrefix(topic.Text, "# "+topic.Title+"\n\n"), "%s begins with # and its title", name)
		assert.LessOrEqual(t, len(topic.Title), 63, "%s is a line in the list of topics", name)
		assert.NotEmpty(t, Render(topic.Text, 40))
		assert.LessOrEqual(t, strings.Count(topic.Text, "\n"), 150, "%s is a page", name)
	}
	for _, name := range []string{"", "nosuch", "../help", "../topics/spec", "spec.md"} {
		_, found := Find(name)
		assert.False(t, found, name)
	}
}

var (
	mention = regexp.MustCompile("`clusterrun help\\s([a-z-]+)")
	linked  = regexp.MustCompile(`\]\(([^)#:]+)\)`)
)

// The topics and files to which the README and the topics link exist.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := []string{"../../README.md"}
	for _, name := range Names() {
		topic, _ := Find(name)
		pages = append(pages, topic.Path)
	}
	for _, page := range pages {
		text := must.Get(os.ReadFile(page))(t)
		for _, m := range mention.FindAllStringSubmatch(string(text), -1) {
			_, found := Find(m[1])
			assert.True(t, found, "%s names the topic %s", page, m[1])
		}
		for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(page), m[1]))
			assert.NoError(t, err, page)
		}
	}
}
