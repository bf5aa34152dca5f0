package cli

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
)

const (
	// completionTakes limits how long a shell waits for a server.
	completionTakes = 2 * time.Second
	// completed is how many of the latest runs are offered.
	completed = 50
)

// CompleteAll adds completion of run IDs to all commands with RUN in their usage.
func CompleteAll(a *App, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		CompleteAll(a, c)
	}
	words := strings.Fields(cmd.Use)
	switch {
	case cmd.ValidArgsFunction != nil:
	case slices.Contains(words, "RUN..."):
		cmd.ValidArgsFunction = completeRuns(a, math.MaxInt)
	case slices.Contains(words, "RUN"):
		cmd.ValidArgsFunction = completeRuns(a, strings.Count(cmd.Use, "RUN"))
	case len(words) == 1: // no arguments
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// completeRuns offers the latest runs with their commands, for up to most arguments. If there is no
// server, it does not offer anything.
func completeRuns(a *App, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) (offered []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTakes)
		defer cancel()
		c, _, err := a.DialExisting(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		runs, _ := starter.List(ctx, c, starter.ListOptions{Limit: completed})
		for _, r := range runs {
			if strings.HasPrefix(r.RunID, start) && !slices.Contains(args, r.RunID) {
				offered = append(offered, r.RunID+"\t"+strings.Join(strings.Fields(r.Command), " "))
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
