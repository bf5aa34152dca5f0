package spec

import (
	"errors"
	"fmt"
	"strings"
)

// maxRunID is the longest run ID, in bytes. It is well below the server's own limit and short
// enough for the name of a directory.
const maxRunID = 200

// CheckRunID returns an error if an ID is not fit for a new run, as the end of a sentence. The
// server accepts any text, but people type a run ID, and it names log directories.
func CheckRunID(id string) error {
	switch {
	case id == "":
		return errors.New("is empty; give one, or leave it out")
	case len(id) > maxRunID:
		return fmt.Errorf("has %d bytes; give at most %d", len(id), maxRunID)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return errors.New("has spaces, quotes, backslashes or characters that are not ASCII; leave those out")
	case IsPattern(id):
		return errors.New("has *, ? or [, which are for patterns of several runs; leave those out")
	case strings.HasPrefix(id, "clusterrun/"):
		return errors.New("begins with clusterrun/, as the workflows of clusterrun itself do; give another one")
	}
	return nil
}

// IsPattern reports whether a text is a pattern for run IDs, and no run ID.
func IsPattern(text string) bool { return strings.ContainsAny(text, "*?[") }

var patternEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Beginning returns the pattern that matches texts with a beginning.
func Beginning(text string) string { return patternEscaper.Replace(text) + "*" }
