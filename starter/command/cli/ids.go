package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// CheckID checks --id.
func CheckID(cmd *cobra.Command, id string) error {
	if !cmd.Flags().Changed("id") {
		return nil
	}
	if err := spec.CheckRunID(id); err != nil {
		return Usagef("--id %q %s", shorten.Text(id, 80), err)
	}
	return nil
}

// CheckRun refuses text that cannot be a run ID or be sent in the headers of requests.
func CheckRun(id string) error {
	switch {
	case id == "":
		return Usagef("RUN is empty; use a run ID from `clusterrun list`")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }):
		return Usagef("%q is not a run ID: it contains non-ASCII characters; `clusterrun list` shows the runs", id)
	}
	return nil
}
