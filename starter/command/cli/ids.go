package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// maxID is the longest run ID, in bytes. It is well below the server's own limit and short
// enough for the name of a directory.
const maxID = 200

// CheckID checks --id. The server accepts any text, but people type a run ID, and it names log
// directories.
func CheckID(cmd *cobra.Command, id string) error {
	switch {
	case !cmd.Flags().Changed("id"):
	case id == "":
		return Usagef("--id is empty; give one, or leave it out")
	case len(id) > maxID:
		return Usagef("--id has %d bytes; give at most %d", len(id), maxID)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return Usagef("--id %q has spaces, quotes, backslashes or characters that are not ASCII; leave those out", id)
	case IsPattern(id):
		return Usagef("--id %q has *, ? or [, which are for patterns of several runs; leave those out", id)
	}
	return nil
}

// CheckRun refuses text that cannot be a run ID or be sent in the headers of requests.
func CheckRun(id string) error {
	switch {
	case id == "":
		return Usagef("RUN is empty; give the ID of a run, as `clusterrun list` shows it")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }):
		return Usagef("%q is no run ID: it has characters that are not ASCII; `clusterrun list` shows the runs there are", id)
	}
	return nil
}
