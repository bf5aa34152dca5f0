package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Submit(a *app) *cobra.Command {
	f := &specFlags{}
	var id, queue string
	var g signing
	cmd := &cobra.Command{
		Use:   "submit [flags] SPEC | -- COMMAND [ARG...]",
		Short: "Start a run on the host workers that serve the queue, and return",
		Long: `Starts a run on the host workers that serve the queue (see worker and dev), prints its
run ID, and returns. The run continues without this command. SPEC and flags are those of
run.

If nobody serves the default queue of the embedded server, this starts a host worker in
the background. It has the environment of this shell, and ends after 10 minutes without
runs; ` + "`clusterrun worker stop`" + ` ends it at once. A run with more tasks than this machine has
processors starts there once nothing else runs, as with dev. The next submit starts another one. Within
a task of a run it starts none.

The processes have the environment of their host worker, not that of this shell; --env, -x
and --env-from-shell put variables into the spec, and so into the run's history. With
--ship they run in a copy of a directory of this machine. This command uploads it to one of
the hosts, which has to serve files (see worker --listen) and keeps it for the others until
the run has ended.

With --sign or --sign-key FILE, an SSH key signs the run for hosts whose owners have a
policy (see policy). The signature covers the spec, the run ID and an expiry.

Exit codes:
  0    the run is started; wait tells whether it succeeds
  2    mistake in the command line, or an invalid run spec
  125  the server could not be reached`,
		Example: `  clusterrun submit iris.yaml
  clusterrun wait $(clusterrun submit -n 4 --dir /srv/job -- python3 train.py)
  clusterrun submit --sign iris.yaml
  clusterrun submit -x PYTHONPATH -x LEVEL=debug -- python3 -m train
  clusterrun submit --ship . --exclude '*.ckpt' -n 8 -- python3 train.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := specOf(a, cmd, args, f)
			if err != nil {
				return err
			}
			return submitSpec(a, cmd, args, s, f, starter.Options{ID: id, Queue: queue}, &g)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&id, "id", "", "run `ID`; default: the name and a random part")
	cmd.Flags().StringVar(&queue, "queue", spec.TaskQueue, "task `QUEUE` of the host workers")
	f.register(cmd.Flags())
	g.register(cmd.Flags(), "")
	// Known here so that it can be refused with a reason.
	cmd.Flags().String("foreground", "", "")
	_ = cmd.Flags().MarkHidden("foreground")
	return cmd
}

// submitSpec starts a run on the host workers of the queue, and prints its ID. args are where the
// spec is from, where they name that.
func submitSpec(a *app, cmd *cobra.Command, args []string, s *spec.RunSpec, f *specFlags, o starter.Options, g *signing) error {
	if err := f.refuseOthers("submit"); err != nil {
		return err
	}
	if cmd.Flags().Changed("foreground") {
		return usagef("--foreground is for run: a submitted run has no terminal to give")
	}
	if err := checkID(cmd, o.ID); err != nil {
		return err
	}
	sayUnsent(a, cmd, args, s)
	archive, err := pack(cmd.Context(), a, s)
	if err != nil {
		return err
	}
	defer archive.Close()
	c, server, err := a.dial(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := submit(cmd.Context(), a, c, server, s, archive, o, g)
	if err != nil {
		return err
	}
	if a.global.json {
		out := map[string]any{"run_id": r.ID, "execution_id": r.ExecutionID}
		if s.Ship.Archive != nil {
			out["archive"] = s.Ship.Archive
		}
		return a.printJSON(out)
	}
	_, err = fmt.Fprintln(a.out, r.ID)
	return err
}

// specOf reads the spec that a command line names.
func specOf(a *app, cmd *cobra.Command, args []string, f *specFlags) (*spec.RunSpec, error) {
	src, err := parseSource(cmd, args)
	if err != nil {
		return nil, err
	}
	return readSpec(a, src, f)
}

// readSpec reads the spec of a source, with the flags over it.
func readSpec(a *app, src source, f *specFlags) (*spec.RunSpec, error) {
	s, err := src.read(a.in, f)
	if err != nil {
		return nil, err
	}
	sayNotes(a, src, f)
	saySecrets(a, s)
	sayPET(a, src)
	return s, withMPI(a, s, f)
}

// sayNotes says what is no mistake in a command line.
func sayNotes(a *app, src source, f *specFlags) {
	for _, text := range slices.Concat(a.notes, src.notes, f.warnings) {
		a.say("%s", text)
	}
}

// submit starts a run for others to execute, and warns when there are none. What it ships is
// with one of them then.
func submit(ctx context.Context, a *app, c client.Client, on server, s *spec.RunSpec, archive *shipped.Archive, o starter.Options, g *signing) (*starter.Run, error) {
	if on.Embedded {
		// Its host workers are on this machine.
		if err := inThisDirectory(s); err != nil {
			return nil, err
		}
	}
	wantWorker(ctx, a, c, on, o.Queue)
	if archive != nil {
		if o.ID == "" {
			o.ID = starter.NewID(s.Name)
		}
		if err := ship(ctx, a, c, s, archive, o); err != nil {
			return nil, err
		}
	}
	if err := g.signRun(s, &o); err != nil {
		return nil, err
	}
	earlier := earlier(ctx, a, c, o.ID)
	r, err := starter.Start(ctx, c, s, o)
	if err != nil {
		return nil, err
	}
	earlier()
	if o.Queue == "" {
		o.Queue = spec.TaskQueue
	}
	if unserved(ctx, c, o.Queue) {
		a.say("run %s waits: %s", r.ID, nobodyServes(o.Queue))
	}
	return r, nil
}

// earlier returns what says that a run is not the first of its ID, once it has been started: it is
// another execution, and what names the ID alone means the latest.
func earlier(ctx context.Context, a *app, c client.Client, id string) (say func()) {
	if id == "" {
		return func() {}
	}
	s, err := starter.Get(c, id, "").Summary(ctx)
	if err != nil || s.Open {
		return func() {} // there is none, or the start says what is wrong
	}
	return func() {
		a.say("there was a run %s already, which ended %s (%s); this is another one, and --execution %s stands for the earlier one",
			id, s.Ended.Local().Format(localTime), cmp.Or(s.Ending, string(s.Verdict), "failed"), s.ExecutionID)
	}
}

// nobodyServes says that a queue is unserved, and what to do about it.
func nobodyServes(queue string) string {
	return fmt.Sprintf("nobody serves the workflows of the queue %s; start `clusterrun worker` (not with --role host) or `clusterrun dev`", queue)
}

// unserved reports whether nobody polls a queue. The server notes the polls of a host
// worker that has just started a moment later, so it is asked more than once.
func unserved(ctx context.Context, c client.Client, queue string) bool {
	for range 5 {
		d, err := c.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil || len(d.GetPollers()) > 0 || retry.Sleep(ctx, 200*time.Millisecond) != nil {
			return false
		}
	}
	return true
}
