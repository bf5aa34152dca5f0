package spec

import (
	"errors"
	"fmt"
	"strings"
)

// maxRunID is the maximum length of a run ID, in bytes. It is well below the server's limit, and
// fits in a directory name.
const maxRunID = 200

// CheckRunID returns an error, worded as the end of a sentence, if id cannot be used for a new
// run. The server accepts any string, but people type run IDs, and log directories are named
// after them.
func CheckRunID(id string) error {
	switch {
	case id == "":
		return errors.New("is empty; use a name, or omit it")
	case len(id) > maxRunID:
		return fmt.Errorf("has %d bytes; use at most %d", len(id), maxRunID)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return errors.New("contains spaces, quotes, backslashes or non-ASCII characters; remove them")
	case IsPattern(id):
		return errors.New("contains *, ? or [, which are reserved for patterns; remove them")
	case strings.HasPrefix(id, "clusterrun/"):
		return errors.New("starts with clusterrun/, which is reserved for clusterrun's own workflows; choose another ID")
	}
	return nil
}

// IsPattern reports whether a string is a pattern of run IDs rather than a run ID.
func IsPattern(text string) bool { return strings.ContainsAny(text, "*?[") }

var patternEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// Beginning returns a pattern for strings with the given prefix.
func Beginning(text string) string { return patternEscaper.Replace(text) + "*" }
