package help

import (
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// link is a link to another page. A terminal shows only its words.
var link = lazyregexp.New(`\[([^\]]+)\]\([^)]*\.md[^)]*\)`)

// begins is the mark of an item of a list.
var begins = lazyregexp.New(`^ *(- |[0-9]+\. )`)

// Render returns a page as it was written, except that links are only words, blocks of code are
// indented, and paragraphs have lines of at most width columns.
func Render(page string, width int) string {
	var b strings.Builder
	var paragraph []string
	end := func() {
		if len(paragraph) == 0 {
			return
		}
		mark := begins().FindString(paragraph[0])
		text := link().ReplaceAllString(strings.TrimPrefix(strings.Join(paragraph, " "), mark), "$1")
		for _, line := range shorten.Wrap(text, width-len(mark)) {
			b.WriteString(mark + line + "\n")
			mark = strings.Repeat(" ", len(mark))
		}
		paragraph = nil
	}
	inCode := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			end()
			inCode = !inCode
		case inCode:
			b.WriteString(strings.TrimRight("    "+line, " ") + "\n")
		case line == "", strings.HasPrefix(line, "|"):
			end()
			b.WriteString(strings.ReplaceAll(link().ReplaceAllString(line, "$1"), `\|`, "|") + "\n")
		default:
			if begins().MatchString(line) {
				end()
			}
			paragraph = append(paragraph, line)
		}
	}
	end()
	return b.String()
}
