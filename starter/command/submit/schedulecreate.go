package submit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// overlaps maps the names of the policies, as in the temporal CLI but in lower case.
var overlaps = map[string]enumspb.ScheduleOverlapPolicy{
	"skip":            enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	"buffer-one":      enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
	"buffer-all":      enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	"cancel-other":    enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER,
	"terminate-other": enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER,
	"allow-all":       enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
}

func scheduleCreateCommand(a *cli.App) *cobra.Command {
	var o scheduleCreateOptions

	cmd := &cobra.Command{
		Use:   "create [flags] SPEC | -- COMMAND [ARG...]",
		Short: "Create a schedule of runs",
		RunE:  func(cmd *cobra.Command, args []string) error { return runScheduleCreate(a, cmd, args, &o) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringArrayVar(&o.when.Cron, "cron", nil, "start runs at these `TIMES`, as cron has them: minute, hour, day of the month, month, day of the week; may be repeated")
	cmd.Flags().Var((*cli.LengthFlag)(&o.when.Every), "every", "start a run every `TIME`, such as 6h or 7d")
	cmd.Flags().StringVar(&o.when.TimeZone, "timezone", "", "time `ZONE` of --cron, such as Europe/Berlin (default: UTC)")
	cmd.Flags().StringVar(&o.overlap, "overlap-policy", "skip", "`WHAT` happens if the previous run is still open: "+strings.Join(slices.Sorted(maps.Keys(overlaps)), ", "))
	o.when.CatchUp = time.Hour
	cmd.Flags().Var((*cli.LengthFlag)(&o.when.CatchUp), "catchup-window", "start a run that was due while the server was down up to `TIME` late")
	cmd.Flags().BoolVar(&o.when.PauseOnFailure, "pause-on-failure", false, "start no more runs after one has failed")
	cmd.Flags().StringVar(&o.id, "id", "", "`ID` of the schedule, with which the IDs of its runs begin; default: the name and a random part")
	cli.QueueFlag(cmd, &o.queue)
	o.f.Register(cmd.Flags())
	return cmd
}

// scheduleCreateOptions are the flags of [scheduleCreateCommand].
type scheduleCreateOptions struct {
	f                  specs.SpecFlags
	id, queue, overlap string
	when               starter.Schedule
}

// runScheduleCreate implements [scheduleCreateCommand].
func runScheduleCreate(a *cli.App, cmd *cobra.Command, args []string, o *scheduleCreateOptions) error {
	if cmd.Flags().Changed("every") && o.when.Every == 0 {
		return cli.Usagef("--every 0s: give 1s or more")
	}
	if err := o.when.Check(); err != nil {
		return cli.Usagef("%s", err)
	}
	var known bool
	if o.when.Overlap, known = overlaps[o.overlap]; !known {
		return cli.Usagef("--overlap-policy %q: give one of %s", o.overlap, strings.Join(slices.Sorted(maps.Keys(overlaps)), ", "))
	}
	s, err := specs.Read(a, cmd, args, &o.f)
	if err != nil {
		return err
	}
	return scheduleSpec(a, cmd, args, s, &o.f, starter.Options{ID: o.id, Queue: o.queue}, o.when)
}

// scheduleSpec creates a schedule and prints when it starts runs.
func scheduleSpec(a *cli.App, cmd *cobra.Command, args []string, s *spec.RunSpec, f *specs.SpecFlags, o starter.Options, when starter.Schedule) error {
	if err := f.RefuseOthers("schedule create"); err != nil {
		return err
	}
	if err := cli.CheckID(cmd, o.ID); err != nil {
		return err
	}
	if s.Ships() {
		return cli.Usagef("a schedule cannot ship a directory, which hosts keep only until the run has ended; put it where all hosts have it, and name it with --dir")
	}
	specs.SayUnsent(a, cmd, args, s, specs.HostEnv(cmd.Context(), a))
	ctx := cmd.Context()
	c, on, err := a.Dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if on.Embedded {
		if err := specs.InThisDirectory(s); err != nil {
			return err
		}
	}
	id, next, err := starter.CreateSchedule(ctx, c, s, o, when)
	var invalid *serviceerror.InvalidArgument
	switch {
	case starter.IsError[*starter.ScheduleExistsError](err):
		return cli.Usagef("%s", err)
	case errors.As(err, &invalid):
		return cli.Usagef("the server refuses these times: %s; see --cron, --every and --timezone",
			strings.TrimPrefix(invalid.Message, "Invalid schedule spec: "))
	case err != nil:
		return err
	}
	sayScheduled(ctx, a, c, on, o.Queue, id, next)
	if next == nil {
		next = []time.Time{} // in JSON an empty list, not null
	}
	return a.PrintLine(map[string]any{"schedule_id": id, "next": next}, "%s", id)
}

// sayScheduled prints when runs start, and any reason that keeps them from starting.
func sayScheduled(ctx context.Context, a *cli.App, c client.Client, on cli.Server, queue, id string, next []time.Time) {
	if len(next) == 0 {
		a.Say("it starts no run: all its times have passed")
	} else {
		a.Say("the next run starts at %s; `clusterrun schedule delete %s` ends that", next[0].Local().Format(cli.LocalTime), id)
	}
	if !cli.Unserved(ctx, c, queue) {
		return
	}
	if on.Embedded {
		a.Say("the embedded server ends when no command uses it, and then starts no runs; `clusterrun dev --detach` keeps it, with a host worker")
		return
	}
	a.Say("runs will wait: %s", cli.NobodyServes(queue))
}
