package help

import (
	"embed"
	"slices"
	"strings"
)

//go:embed topics/*/*.md
var files embed.FS

// Topic is a page of help.
type Topic struct {
	Name  string
	Title string
	Text  string // Markdown, the title included
	Path  string // in this directory
}

// Group is the topics that serve one purpose.
type Group struct {
	Title  string
	Topics []Topic // sorted by name
}

// groups are the directories of topics, in the order in which they are listed.
var groups = []struct{ dir, title string }{
	{"start", "Start"},
	{"guides", "Guides"},
	{"reference", "Reference"},
	{"concepts", "Concepts"},
}

// Groups returns all topics by purpose.
func Groups() []Group {
	all := make([]Group, len(groups))
	for i, g := range groups {
		all[i] = Group{g.title, topicsIn(g.dir)}
	}
	return all
}

// Names returns the names of all topics, sorted.
func Names() (names []string) {
	for _, g := range Groups() {
		for _, t := range g.Topics {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Find returns the topic of that name and reports whether there is one.
func Find(name string) (Topic, bool) {
	for _, g := range Groups() {
		if i := slices.IndexFunc(g.Topics, func(t Topic) bool { return t.Name == name }); i >= 0 {
			return g.Topics[i], true
		}
	}
	return Topic{}, false
}

// topicsIn returns the topics of a directory.
func topicsIn(dir string) []Topic {
	dir = "topics/" + dir
	entries, err := files.ReadDir(dir)
	if err != nil {
		panic(err) // they are part of the program
	}
	topics := make([]Topic, len(entries))
	for i, e := range entries {
		t := Topic{Name: strings.TrimSuffix(e.Name(), ".md"), Path: dir + "/" + e.Name()}
		text, err := files.ReadFile(t.Path)
		if err != nil {
			panic(err)
		}
		t.Text = string(text)
		t.Title, _, _ = strings.Cut(strings.TrimPrefix(t.Text, "# "), "\n")
		topics[i] = t
	}
	return topics
}
