package shipped

import (
	"path"
	"strings"
)

// pattern is a line of a .gitignore file.
type pattern struct {
	// elements match the elements of a path from the checkout's root.
	elements []string
	// onlyDir reports whether the pattern matches only directories, and includes whether its
	// matches are packed.
	onlyDir, includes bool
}

// parsePattern parses a line of a directory's .gitignore file.
func parsePattern(line string, dir []string) (p pattern) {
	line, p.includes = strings.CutPrefix(line, "!")
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	line, p.onlyDir = strings.CutSuffix(line, "/")
	for _, name := range dir {
		p.elements = append(p.elements, quoted.Replace(name))
	}
	if !strings.Contains(line, "/") {
		p.elements = append(p.elements, "**") // a name, at any depth
	}
	line = strings.ReplaceAll(strings.TrimPrefix(line, "/"), "[!", "[^")
	p.elements = append(p.elements, strings.Split(line, "/")...)
	return p
}

// quoted escapes a name for use as a pattern.
var quoted = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// matches reports whether a path's elements match a pattern's.
func matches(pattern, at []string) bool {
	switch {
	case len(pattern) == 0 || len(at) == 0:
		return len(pattern) == len(at)
	case pattern[0] != "**":
		ok, err := path.Match(pattern[0], at[0])
		return err == nil && ok && matches(pattern[1:], at[1:])
	case len(pattern) == 1:
		return true // everything inside
	}
	return matches(pattern[1:], at) || matches(pattern, at[1:])
}
