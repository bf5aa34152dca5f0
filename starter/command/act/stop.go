package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Stop(a *cli.App) *cobra.Command {
	var wait bool
	together := togetherFlags{onlyWithTogether: []string{"reason", "error", "kind"}}
	cmd := &cobra.Command{
		Use:   "stop [flags] RUN...",
		Short: "Stop runs by their stop signal and grace, or ask their tasks to stop together",
		Long: `Stops runs: every task gets the spec's stop signal, and SIGKILL after its grace. It returns
when the runs have been asked or, with --wait, when they have ended. A run that nobody
executes is ended on the server, without a result; if it still has processes, their hosts
stop them. If one run cannot be stopped, the others still are; the exit code is then that
of the worst.

With --together no signal is sent. The tasks learn that they are to stop, as if one of them
had asked for it, and end by themselves when it suits them. Tasks that still run when the
grace of the spec's stop_together is over are stopped, and the run fails with their names.
If an error is given, the run fails with it, unless its kind is one of the spec's
clean_errors. --clear takes such a stop back until the grace is over.

` + cli.ExitCodesOfRequests,
		Example: `  clusterrun stop iris-x2k4
  clusterrun stop --together --reason 'the machine is needed' iris-x2k4
  clusterrun stop --together --error 'the data is wrong' iris-x2k4
  clusterrun stop --clear iris-x2k4`,
		Args: cli.SomeArgs(1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runStop(cmd.Context(), a, args, &together, wait)
		},
	}
	fs := cmd.Flags()
	together.given = fs.Changed
	fs.BoolVar(&wait, "wait", false, "wait until the runs have ended")
	fs.BoolVar(&together.together, "together", false, "ask all tasks to stop together, each by itself")
	fs.StringVar(&together.reason, "reason", "", "with --together: the reason, a `TEXT` for people")
	fs.StringVar(&together.message, "error", "", "with --together: `TEXT` of an error, with which the run then fails")
	fs.StringVar(&together.kind, "kind", "", "with --together: the `KIND` of the error, such as ValueError or StopIteration")
	fs.BoolVar(&together.clear, "clear", false, "take a stop together back, so that the run continues")
	return cmd
}

// runStop implements [Stop].
func runStop(ctx context.Context, a *cli.App, ids []string, together *togetherFlags, wait bool) error {
	if err := together.check(wait); err != nil {
		return err
	}
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := StopSignal
	switch {
	case together.together:
		stop = stopTogether(together.request())
	case together.clear:
		stop = clearStop
	}
	runs := make([]*starter.Run, len(ids))
	for i, id := range ids {
		runs[i] = starter.Get(c, id, "")
	}
	return stopRuns(ctx, a, runs, stop, wait)
}

// Stopped is the answer of a run to a request to stop.
type Stopped struct {
	RunID    string         `json:"run_id"`
	State    string         `json:"state,omitempty"`
	Stopping *spec.Stopping `json:"stopping,omitempty"`
	// Error is the reason if the run could not be stopped.
	Error string `json:"error,omitempty"`
	line  string
}

// stopRuns stops each of the runs, even if others fail. If wait is set, it asks all of them
// before it waits for any.
func stopRuns(ctx context.Context, a *cli.App, runs []*starter.Run, stop func(context.Context, *starter.Run) (Stopped, error), wait bool) error {
	var worst error
	failed := func(r *starter.Run, err error) {
		a.AddHint(err)
		if cli.CodeOf(err) > cli.CodeOf(worst) {
			worst = &cli.ExitError{Code: cli.CodeOf(err)}
		}
		a.Say("%s", a.Color.Bad(err.Error()))
		if a.Global.JSON {
			_ = a.PrintJSON(Stopped{RunID: r.ID, Error: err.Error()})
		}
	}
	var asked []*starter.Run
	var answers []Stopped
	for _, r := range runs {
		err := cli.CheckRun(r.ID)
		var answer Stopped
		if err == nil {
			answer, err = ask(ctx, r, stop)
		}
		if err == nil && !wait {
			err = printStopped(a, answer)
		}
		if err != nil {
			failed(r, err)
			continue
		}
		asked, answers = append(asked, r), append(answers, answer)
	}
	if !wait {
		return worst
	}
	for i, r := range asked {
		// A run that ends with a failure counts as stopped, too.
		var result *spec.RunResult
		var err error
		if answers[i].State != stateTerminated {
			if result, err = r.WaitNotify(ctx, a.SayUnreachable); result != nil || err == nil {
				answers[i].State, answers[i].line = "stopped", "stopped: "+r.ID
			}
		}
		if result != nil || err == nil {
			err = printStopped(a, answers[i])
		}
		if err != nil {
			failed(r, err)
		}
	}
	return worst
}

func ask(ctx context.Context, r *starter.Run, stop func(context.Context, *starter.Run) (Stopped, error)) (Stopped, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
	defer cancel()
	return stop(ctx, r)
}

// StopSignal stops the tasks of a run with their stop signal.
func StopSignal(ctx context.Context, r *starter.Run) (Stopped, error) {
	// The server accepts the cancellation of an ended run without an error.
	if _, open, err := r.Queue(ctx); err != nil {
		return Stopped{}, err
	} else if !open {
		return Stopped{}, &starter.EndedError{RunID: r.ID}
	}
	if err := r.Cancel(ctx); err != nil {
		return Stopped{}, err
	}
	nobody, err := r.Unexecuted(ctx)
	var stuck *starter.StuckError
	switch {
	case nobody:
		return endUnexecuted(ctx, r)
	case errors.As(err, &stuck) && stuck.Attempt > 1:
		return Stopped{}, fmt.Errorf("%w; `clusterrun terminate --force %s` ends it without a result", err, r.ID)
	}
	return Stopped{RunID: r.ID, State: "stopping", line: "stopping: " + r.ID}, nil // it has been asked
}

// endUnexecuted ends a run that no host worker executes, and that therefore cannot answer
// requests.
func endUnexecuted(ctx context.Context, r *starter.Run) (Stopped, error) {
	if err := r.EndUnexecuted(ctx, "nobody executed it when it was to stop"); err != nil {
		return Stopped{}, err
	}
	return Stopped{RunID: r.ID, State: stateTerminated, line: fmt.Sprintf("ended: %s, without a result: nobody executes it", r.ID)}, nil
}

// stateTerminated is the state of a run that was ended on the server.
const stateTerminated = "terminated"

// stopTogether asks the tasks of a run to stop, each by itself.
func stopTogether(q spec.TogetherRequest) func(context.Context, *starter.Run) (Stopped, error) {
	return func(ctx context.Context, r *starter.Run) (Stopped, error) {
		s, err := r.StopTogether(ctx, q)
		line := fmt.Sprintf("stopping together: %s: %s", r.ID, report.StoppingLine(s, time.Now()))
		return Stopped{RunID: r.ID, State: "stopping", Stopping: &s, line: line}, err
	}
}

// clearStop withdraws such a stop.
func clearStop(ctx context.Context, r *starter.Run) (Stopped, error) {
	s, err := r.ClearStop(ctx)
	return Stopped{RunID: r.ID, State: "running", Stopping: &s, line: "going on: " + r.ID}, err
}

func printStopped(a *cli.App, s Stopped) error {
	if a.Global.JSON {
		return a.PrintJSON(s)
	}
	_, err := fmt.Fprintln(a.Out, s.line)
	return err
}
