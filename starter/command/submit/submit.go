package submit

import (
	"cmp"
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

func Submit(a *cli.App) *cobra.Command {
	f := &specs.SpecFlags{}
	var id, queue string
	var g specs.Signing
	var array specs.Array
	cmd := &cobra.Command{
		Use:   "submit [flags] SPEC | -- COMMAND [ARG...]",
		Short: "Start a run on the hosts of a queue, and return",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := specs.Read(a, cmd, args, f)
			if err != nil {
				return err
			}
			o := starter.Options{ID: id, Queue: queue}
			if many, err := array.Given(); err != nil {
				return err
			} else if many {
				if o.Sweep, err = array.Sweep(a, s, id, sweep.DefaultAtOnce); err != nil {
					return err
				}
			}
			return SubmitSpec(a, cmd, args, s, f, o, &g)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&id, "id", "", "run `ID`; default: the name and a random part")
	cmd.Flags().StringVar(&queue, "queue", spec.TaskQueue, "task `QUEUE` of the host workers")
	array.Register(cmd.Flags(), strconv.Itoa(sweep.DefaultAtOnce))
	f.Register(cmd.Flags())
	g.Register(cmd.Flags(), "")
	// The flag is defined so that it can be refused with a reason.
	cmd.Flags().String("foreground", "", "")
	_ = cmd.Flags().MarkHidden("foreground")
	return cmd
}

// SubmitSpec starts a run on the queue's host workers, and prints its ID. args name the spec's
// source, and may be empty.
func SubmitSpec(a *cli.App, cmd *cobra.Command, args []string, s *spec.RunSpec, f *specs.SpecFlags, o starter.Options, g *specs.Signing) error {
	if err := f.RefuseOthers("submit"); err != nil {
		return err
	}
	if cmd.Flags().Changed("foreground") {
		return cli.Usagef("--foreground works only with run: a submitted run has no terminal")
	}
	if err := cli.CheckID(cmd, o.ID); err != nil {
		return err
	}
	if o.Sweep != nil && g.Wanted() {
		return cli.Usagef("--sign signs a single run, but each trial of --array is a separate run; omit one of them")
	}
	return Start(cmd.Context(), a, s, o, g, func(r *starter.Run) error {
		out := map[string]any{"run_id": r.ID, "execution_id": r.ExecutionID}
		if s.Ship.Archive != nil {
			out["archive"] = s.Ship.Archive
		}
		return a.PrintLine(out, "%s", r.ID)
	})
}

// Start starts a run for host workers to execute, and warns if it finds none. It first hands the
// run's archive, if there is one, to one of the host workers. It calls started with the run.
func Start(ctx context.Context, a *cli.App, s *spec.RunSpec, o starter.Options, g *specs.Signing, started func(*starter.Run) error) error {
	o.Source = specs.WorkTree(ctx, s)
	archive, err := specs.Pack(ctx, a, s)
	if err != nil {
		return err
	}
	defer archive.Close()
	c, on, err := a.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if on.Embedded {
		// The run's host workers are on this machine.
		if err := specs.InThisDirectory(s); err != nil {
			return err
		}
	}
	if err := cli.FindEarlier(ctx, c, s); err != nil {
		return err
	}
	defer worker.WantWorker(ctx, a, c, on, o.Queue)()
	if archive != nil {
		o.ID = cmp.Or(o.ID, starter.NewID(s.Name))
		if err := specs.Ship(ctx, a, c, on, s, archive, o); err != nil {
			return err
		}
	}
	if err := g.SignRun(s, &o); err != nil {
		return err
	}
	earlier := func() {}
	if o.Resume == nil { // otherwise, the new run continues the same sweep
		earlier = cli.Earlier(ctx, a, c, o.ID)
	}
	r, err := starter.Start(ctx, c, s, o)
	if err != nil {
		return err
	}
	earlier()
	o.Queue = cmp.Or(o.Queue, spec.TaskQueue)
	if cli.Unserved(ctx, c, o.Queue) {
		a.Say("run %s waits: %s", r.ID, cli.NobodyServes(o.Queue))
	}
	return started(r)
}
