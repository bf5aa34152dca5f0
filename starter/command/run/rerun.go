package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/inspect"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/submit"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Rerun(a *cli.App) *cobra.Command {
	var flags rerunOptions

	cmd := &cobra.Command{
		Use:   "rerun [flags] RUN [-- COMMAND]",
		Short: "Run an earlier run again",
		Args: flags.runs.Args(func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args = args[:len(args)-(cmd.Flags().NArg()-at)]
			}
			return cli.OneArg("RUN")(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return runRerun(cmd.Context(), a, cmd, args, &flags) },
	}
	flags.o.register(cmd.Flags(), &flags.f)
	cmd.Flags().BoolVar(&flags.background, "submit", false, "start it on the queue's host workers and return, like submit; default: the way the earlier run was started")
	cmd.Flags().BoolVar(&flags.failed, "failed", false, "in a sweep, run the trials again that have not succeeded, as part of the same sweep")
	flags.runs.Flags(cmd)
	return cmd
}

// rerunOptions holds the flags of [Rerun].
type rerunOptions struct {
	f          specs.SpecFlags
	o          runOptions
	runs       cli.RunSelector
	background bool
	failed     bool
}

// runRerun runs the command [Rerun].
func runRerun(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, flags *rerunOptions) error {
	var of *runrecord.Account
	var given *spec.RunSpec
	var done bool
	var command []string
	err := cli.WithRun(ctx, a, &flags.runs, args, func(r *starter.Run, rest []string) (err error) {
		command = rest
		if done, err = rerunSweep(ctx, a, cmd, r, flags); err != nil || done {
			return err
		}
		if given, err = inspect.SpecOfRun(ctx, r); err == nil {
			of, err = inspect.AccountHere(ctx, r)
		}
		return err
	})
	if err != nil || done {
		return err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return err
	}
	s, err := specs.ReadSource(a, specs.Source{Given: text, Run: "the spec of run " + of.Status.RunID, Command: command}, &flags.f)
	if err != nil {
		return err
	}
	if flags.o.sweep != nil {
		flags.o.sweep.Run = s
	}
	private := spec.IsPrivateQueue(of.Status.Queue) || spec.IsAgentsQueue(of.Status.Queue)
	if !cmd.Flags().Changed("submit") {
		flags.background = !private && !flags.o.remote
	}
	if flags.background && flags.o.remote {
		return cli.Usagef("--submit returns immediately, but --remote waits; use only one of them")
	}
	if !private && !cmd.Flags().Changed("queue") && (flags.background || flags.o.remote) {
		flags.o.queue = of.Status.Queue
	}
	sayChanges(a, of)
	flags.o.torchrun = of.Status.Torchrun
	if flags.background {
		return submit.SubmitSpec(a, cmd, nil, s, &flags.f, starter.Options{
			ID: flags.o.id, Queue: flags.o.queue, Sweep: flags.o.sweep, Resume: flags.o.resume, Started: flags.o.started,
		}, &flags.o.signing)
	}
	return runSpec(a, cmd, nil, s, &flags.f, &flags.o)
}

// sayChanges prints what has changed on this machine since a run was started.
func sayChanges(a *cli.App, of *runrecord.Account) {
	if changes := changedHere(of); len(changes) > 0 {
		a.Say("since run %s:\n%s", of.Status.RunID, strings.Join(changes, "\n"))
	}
}

// changedHere returns changes to programs, directories and clusterrun's version.
func changedHere(of *runrecord.Account) (changes []string) {
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(changes, text) {
			changes = append(changes, text)
		}
	}
	for _, t := range of.Tasks {
		if t.Start == nil {
			continue
		}
		if t.Start.Version != spec.Version {
			note("clusterrun was %s, and is now %s", t.Start.Version, spec.Version)
		}
		if _, err := os.Stat(t.Start.Dir); err != nil && !of.Spec.Ships() {
			note("the directory %s: %s", t.Start.Dir, reason(err))
		}
		for _, then := range t.Start.Files {
			info, err := os.Stat(then.Path)
			switch {
			case err != nil && of.Spec.Ships() && strings.HasPrefix(then.Path, t.Start.Dir):
			case err != nil:
				note("%s: %s", then.Path, reason(err))
			case info.Size() != then.Size || !info.ModTime().Equal(then.Modified):
				note("%s has changed: it had %d bytes and was modified at %s; now it has %d bytes and was modified at %s", then.Path,
					then.Size, then.Modified.Local().Format(cli.LocalTime), info.Size(), info.ModTime().Local().Format(cli.LocalTime))
			}
		}
	}
	return changes
}

// reason returns the cause of err without the path.
func reason(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
