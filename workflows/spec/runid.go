package spec

import (
	"errors"
	"fmt"
	"strings"
)

// maxRunID is the maximum length of a run ID, in bytes. It is well below the server's own limit
// and fits in a directory name.
const maxRunID = 200

// CheckRunID returns an error, worded as the end of a sentence, if id cannot be used for a new
// run. The server accepts any string, but people type run IDs, and log directories are named
// after them.
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

// IsPattern reports whether a string is a pattern of run IDs rather than a run ID.
func IsPattern(text string) bool { return strings.ContainsAny(text, "*?[") }

var patternEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Beginning returns a pattern for strings with that prefix.
func Beginning(text string) string { return patternEscaper.Replace(text) + "*" }
