package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Stop(a *cli.App) *cobra.Command {
	o := stopOptions{runs: cli.RunSelector{Of: cli.OpenRuns}}
	cmd := &cobra.Command{
		Use:   "stop [flags] RUN... | RUN TASK...",
		Short: "Stop runs, or some of a run's tasks (--kill, --graceful)",
		Args:  o.runs.Args(cli.SomeArgs(1, "RUN")),
		RunE:  func(cmd *cobra.Command, args []string) error { return runStop(cmd.Context(), a, args, &o) },
	}
	fs := cmd.Flags()
	o.given = fs.Changed
	o.runs.Flags(cmd)
	fs.Var(&o.grace, "grace", "wait this `TIME` before SIGKILL, instead of the spec's grace")
	fs.BoolVar(&o.kill, "kill", false, "kill the processes with SIGKILL")
	fs.BoolVar(&o.wait, "wait", false, "wait until the runs have ended")
	fs.BoolVar(&o.graceful, "graceful", false, "ask the tasks to stop by themselves")
	fs.BoolVar(&o.abandon, "abandon", false, "end the runs on the server, without a result")
	fs.DurationVar(&o.notice, "notice", 0, "notify the tasks, and stop them after this `TIME`")
	fs.BoolVar(&o.requeue, "requeue", false, "with --notice: return the runs to the queue")
	fs.StringVar(&o.reason, "reason", "", "with --graceful, --notice and --abandon: the reason, a `TEXT` that reports show")
	fs.BoolVar(&o.yes, "yes", false, "do not ask for confirmation if many runs match")
	cmd.MarkFlagsMutuallyExclusive(ways...)
	cmd.MarkFlagsMutuallyExclusive("requeue", "wait") // the tasks do not end, so there is nothing to wait for
	return cmd
}

// stopOptions holds the flags of [Stop].
type stopOptions struct {
	runs                               cli.RunSelector
	grace                              cli.Duration
	kill, wait, graceful, abandon, yes bool
	notice                             time.Duration
	requeue                            bool
	reason                             string
	given                              func(flag string) bool
}

// ways lists the flags that exclude each other.
var ways = []string{"kill", "graceful", "notice", "abandon", "grace"}

// check refuses flags that require another flag which is missing.
func (o *stopOptions) check() error {
	switch {
	case o.given("notice") && o.notice <= 0:
		return cli.Usagef("--notice %s: specify the time until the stop, such as 2m", o.notice)
	case o.requeue && !o.given("notice"):
		return cli.Usagef("--requeue requires --notice; add --notice, or omit --requeue")
	case o.given("reason") && !o.graceful && !o.abandon && !o.given("notice"):
		return cli.Usagef("--reason requires --graceful, --notice or --abandon; add one of them, or omit --reason")
	}
	return nil
}

// runStop implements [Stop].
func runStop(ctx context.Context, a *cli.App, args []string, o *stopOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	c, s, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(args) > 0 && !slices.ContainsFunc(ways, o.given) && !o.wait && !namesTasks(args) {
		rest, err := stopTrials(ctx, a, c, args)
		if err != nil || len(rest) == 0 {
			return err
		}
		args = rest
	}
	chosen, err := o.runs.AllOrTasks(ctx, c, args)
	if err != nil {
		return err
	}
	if len(chosen.Tasks) > 0 {
		return stopTasks(ctx, a, chosen.Runs[0], chosen.Tasks, o)
	}
	if !o.yes && chosen.Matched > cli.MaxMatched {
		if err := a.Confirm(chosen.IDs(), "Stop them?", "nothing was stopped"); err != nil {
			return err
		}
	}
	var sweeps []*starter.Run
	for _, r := range chosen.Runs {
		if s, err := r.Summary(ctx); err == nil && s.Sweep {
			sweeps = append(sweeps, r)
		}
	}
	for _, flag := range []string{"kill", "graceful", "notice", "grace"} {
		if len(sweeps) > 0 && o.given(flag) {
			id := sweeps[0].ID
			return cli.Usagef("--%s applies to runs, but %s is a sweep; name its trials as '%s.*', or omit the flag", flag, id, id)
		}
	}
	stop := o.stop()
	if !o.abandon {
		namespace, err := cli.NamespaceOf(s)
		if err != nil {
			return err
		}
		stop = unpaused(namespace, stop)
	}
	err = stopRuns(ctx, a, chosen.Runs, stop, o.wait)
	if o.abandon {
		for _, r := range sweeps {
			err = cmp.Or(err, abandonTrials(ctx, c, r, o.reason))
		}
	}
	return err
}

// stopTasks stops some of a run's tasks.
func stopTasks(ctx context.Context, a *cli.App, r *starter.Run, tasks []string, o *stopOptions) error {
	for _, flag := range []string{"wait", "graceful", "notice", "abandon"} {
		if o.given(flag) {
			return cli.Usagef("--%s applies to whole runs, but %s is a task of run %s; omit one of them", flag, tasks[0], r.ID)
		}
	}
	q := spec.TaskRequest{Grace: o.givenGrace()}
	if o.kill {
		q.Signal = "SIGKILL"
	}
	before, err := r.Status(ctx)
	if err != nil {
		return err
	}
	names, err := cli.NamesOf(before, tasks)
	if err != nil {
		return err
	}
	answer, err := cli.AskTasks(ctx, r, names, spec.UpdateTerminateTask, q)
	if err == nil {
		err = awaitEnds(ctx, r, before, slices.Clone(answer.Tasks))
	}
	if err != nil {
		return err
	}
	return cli.PrintAnswer(a, r.ID, "stopped", answer)
}

// awaitEnds waits until the run has recorded the exits of the tasks' processes, because until
// then it refuses to restart the tasks.
func awaitEnds(ctx context.Context, r *starter.Run, before *starter.Status, tasks []string) error {
	for again := (retry.Backoff{First: 50 * time.Millisecond, Most: time.Second}); len(tasks) > 0; {
		if err := again.Sleep(ctx); err != nil {
			return err
		}
		now, err := r.Status(ctx)
		if err != nil {
			return err
		}
		if now.State == spec.RunEnded || now.Unanswered {
			return nil
		}
		tasks = slices.DeleteFunc(tasks, func(name string) bool { return !isSame(taskOf(before, name), taskOf(now, name)) })
	}
	return nil
}

// isSame reports whether a task still has its earlier process.
func isSame(before, now starter.TaskStatus) bool {
	return (now.State == spec.TaskRunning || now.State == spec.TaskStopping) && now.NextStart.IsZero() && now.PID == before.PID
}

func taskOf(s *starter.Status, name string) starter.TaskStatus {
	for _, t := range s.Tasks {
		if t.Name == name {
			return t
		}
	}
	return starter.TaskStatus{}
}

// givenGrace returns the grace period, or nil if the flag is not set.
func (o *stopOptions) givenGrace() *spec.Duration {
	if !o.given("grace") {
		return nil
	}
	return o.grace.Spec()
}

// stop returns the function that stops a run as the flags request.
func (o *stopOptions) stop() stopFunc {
	switch {
	case o.graceful:
		return stopGracefully(spec.TogetherRequest{Reason: o.reason})
	case o.given("notice"):
		return giveNotice(spec.NoticeRequest{Within: spec.Duration(o.notice), Reason: o.reason, Requeue: o.requeue})
	case o.abandon:
		return abandon(cmp.Or(o.reason, "clusterrun stop --abandon"))
	case o.kill, o.given("grace"):
		return stopAll(spec.TerminateAllRequest{Grace: o.givenGrace()})
	}
	return StopSignal
}
