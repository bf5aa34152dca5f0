package activities

import (
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// maxMessage bounds the texts of failures, in bytes: they are part of the mutable state of
// the run.
const maxMessage = 1024

// bounded makes a text fit for a failure. A program may write anything, and a failure that is
// not valid UTF-8 cannot be sent at all.
func bounded(s string) string {
	return shorten.Text(strings.ToValidUTF8(s, "\uFFFD"), maxMessage)
}
