package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

const (
	// completionTakes is the longest time that a shell waits for a server.
	completionTakes = 2 * time.Second
	// completed is the number of latest runs that are offered.
	completed = 50
)

// lookUp returns the words that a server offers. After an error it returns those found before.
type lookUp func(ctx context.Context, c client.Client, args []string) []string

// CompleteAll adds the completion of runs, tasks and hosts to all commands whose usage takes
// them.
func CompleteAll(a *App, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		CompleteAll(a, c)
	}
	completeFlags(cmd)
	words := strings.Fields(cmd.Use)
	tasks := slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "TASK") })
	several := slices.Contains(words, "RUN...")
	switch {
	case (several || slices.Contains(words, "RUN")) && cmd.ValidArgsFunction == nil:
		cmd.ValidArgsFunction = Complete(a, func(ctx context.Context, c client.Client, args []string) (found []string) {
			last, err := cmd.Flags().GetBool("last")
			last = last && err == nil
			if last {
				runs, err := starter.List(ctx, c, starter.ListOptions{Limit: 1})
				if err != nil || len(runs) == 0 {
					return nil
				}
				args = append([]string{runs[0].RunID}, args...)
			}
			if tasks && len(args) > 0 {
				found = completeTasks(ctx, c, args)
			}
			if len(args) == 0 || several && !last {
				found = append(found, CompleteRuns(ctx, c, nil)...)
			}
			return found
		})
	case slices.Contains(words, "HOST"):
		cmd.ValidArgsFunction = Complete(a, func(ctx context.Context, c client.Client, args []string) []string {
			if len(args) > 0 {
				return nil
			}
			queue, err := cmd.Flags().GetString("queue")
			if err != nil {
				queue = spec.TaskQueue
			}
			return completeHostsOf(ctx, c, queue)
		})
	case len(words) == 1 && cmd.ValidArgsFunction == nil: // it has no arguments
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	if slices.Contains(words, "RUN") || cmd.Name() == "list" {
		if f := cmd.Flags().Lookup("on-host"); f != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, Complete(a, completeHosts))
		}
	}
}

// completeFlags adds the completion of flags whose usage lists their values, as in task|group.
// A word in capitals in such a list stands for other values.
func completeFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(f.Usage, "|") {
			return
		}
		name, _ := pflag.UnquoteUsage(f)
		values := slices.DeleteFunc(strings.Split(name, "|"), func(v string) bool { return v != strings.ToLower(v) })
		if strings.Contains(name, "|") {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

// Complete returns a completion that asks a server. It offers nothing if there is no server.
func Complete(a *App, find lookUp) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTakes)
		defer cancel()
		c, _, err := a.DialExisting(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		offered := slices.DeleteFunc(find(ctx, c, args), func(word string) bool {
			name, _, _ := strings.Cut(word, "\t")
			return !strings.HasPrefix(name, start) || slices.Contains(args, name)
		})
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// CompleteRuns offers the latest runs with their commands.
func CompleteRuns(ctx context.Context, c client.Client, _ []string) []string {
	runs, _ := starter.List(ctx, c, starter.ListOptions{Limit: completed})
	return list.Of(runs, func(r starter.Summary) string { return r.RunID + "\t" + strings.Join(strings.Fields(r.Command), " ") })
}

// completeTasks offers the tasks of a run. The first argument is the ID of the run or its
// beginning.
func completeTasks(ctx context.Context, c client.Client, args []string) []string {
	id, err := starter.Find(ctx, c, args[0])
	if err != nil {
		return nil
	}
	names, _, _ := starter.Get(c, id, "").TaskNames(ctx)
	return names
}

// completeHosts offers the hosts of the latest runs.
func completeHosts(ctx context.Context, c client.Client, _ []string) []string {
	runs, _ := starter.List(ctx, c, starter.ListOptions{Limit: completed})
	var hosts []string
	for _, r := range runs {
		hosts = append(hosts, r.Hosts...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// completeHostsOf offers the hosts of a queue.
func completeHostsOf(ctx context.Context, c client.Client, queue string) []string {
	hosts, _ := starter.GetFleet(c, queue).Hosts(ctx)
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name
	}
	return names
}
