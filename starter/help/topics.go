package help

import (
	"embed"
	"strings"
)

//go:embed topics/*.md
var files embed.FS

// Topic is a page of help.
type Topic struct {
	Name  string
	Title string
	Text  string // Markdown, the title included
}

// Names returns the names of all topics, sorted.
func Names() []string {
	entries, err := files.ReadDir("topics")
	if err != nil {
		panic(err) // they are part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".md")
	}
	return names
}

// Find returns the topic of that name and reports whether there is one.
func Find(name string) (Topic, bool) {
	b, err := files.ReadFile("topics/" + name + ".md")
	if err != nil {
		return Topic{}, false
	}
	text := string(b)
	title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
	return Topic{Name: name, Title: title, Text: text}, true
}
