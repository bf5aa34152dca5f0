package source

import (
	"path"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// section is the part of a patch about one file.
type section struct {
	name string
	// head are the lines before the first hunk, and body are the hunks.
	head, body string
	binary     bool
}

// sections divides a patch that was made without renames.
func sections(patch string) (all []section) {
	const begin = "diff --git "
	for patch != "" {
		end := strings.Index(patch[1:], "\n"+begin) + 2
		if end < 2 {
			end = len(patch)
		}
		if part := patch[:end]; strings.HasPrefix(part, begin) {
			all = append(all, sectionOf(part))
		}
		patch = patch[end:]
	}
	return all
}

func sectionOf(part string) (s section) {
	s.head = part
	if at := strings.Index(part, "\n@@ "); at >= 0 {
		s.head, s.body = part[:at+1], part[at+1:]
	}
	s.binary = strings.Contains(s.head, "\nBinary files ")
	first, _, _ := strings.Cut(strings.TrimPrefix(s.head, "diff --git "), "\n")
	// "a/NAME b/NAME", both quoted if a character in it needs it.
	half := first[:len(first)/2]
	if text, err := strconv.Unquote(half); err == nil {
		half = text
	}
	s.name = strings.TrimPrefix(half, "a/")
	return s
}

// counts returns the numbers of added and removed lines.
func (s section) counts() (added, removed int) {
	for line := range strings.Lines(s.body) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed
}

const (
	hidden  = "(perhaps a secret)"
	leftOut = "(the content is left out)\n"
)

// assigned matches a string literal that is assigned to a name, and plain a value without quotes in
// a file that is not code.
var (
	assigned = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_.-]*)["']?\]?\s*(?::=|=|:)\s*(["'])((?:[^"'\\]|\\.)+)["']`)
	plain    = lazyregexp.New(`^[+ -]\s*(?:export\s+)?["']?([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*[:=]\s*(\S.*)`)
)

// settings are the extensions of files that have settings instead of code.
var settings = map[string]bool{"": true, ".cfg": true, ".conf": true, ".ini": true, ".json": true, ".properties": true, ".sh": true, ".toml": true, ".yaml": true, ".yml": true}

// withoutSecrets returns the section without what is probably secret, and reports whether its content
// is left out.
func (s section) withoutSecrets() (section, bool) {
	base := strings.ToLower(path.Base(s.name))
	switch {
	case strings.HasPrefix(base, ".env"), strings.HasPrefix(base, "id_"), strings.HasPrefix(base, "credentials"),
		base == ".netrc", base == ".npmrc", base == ".pypirc", base == ".pgpass", base == ".htpasswd",
		strings.HasSuffix(base, ".pem"), strings.HasSuffix(base, ".key"), strings.HasSuffix(base, ".p12"),
		strings.Contains(s.body, "PRIVATE KEY-----"):
		s.body = leftOut
		return s, true
	}
	var b strings.Builder
	for line := range strings.Lines(s.body) {
		b.WriteString(s.hide(line))
	}
	s.body = b.String()
	return s, false
}

// hide returns a line of a hunk without what is probably secret.
func (s section) hide(line string) string {
	if spec.LooksSecret("", line) { // by its value
		return line[:1] + hidden + "\n"
	}
	for _, m := range assigned().FindAllStringSubmatch(line, -1) {
		if looksSecret(m[1], m[3]) {
			line = strings.Replace(line, m[2]+m[3]+m[2], m[2]+hidden+m[2], 1)
		}
	}
	if m := plain().FindStringSubmatchIndex(line); m != nil && settings[path.Ext(s.name)] && !strings.Contains(line, hidden) && looksSecret(line[m[2]:m[3]], line[m[4]:m[5]]) {
		line = line[:m[4]] + hidden + "\n"
	}
	return line
}

// looksSecret reports whether a value is probably secret by its name.
func looksSecret(name, value string) bool {
	return spec.LooksSecret(strings.NewReplacer(".", "_", "-", "_").Replace(name), value)
}
