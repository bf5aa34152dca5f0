package submit

import (
	"context"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

func Schedule(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedule COMMAND",
		Short: "Let the server start runs by itself, such as every night",
	}
	cmd.AddCommand(scheduleCreateCommand(a), scheduleListCommand(a), schedulePauseCommand(a), scheduleResumeCommand(a), scheduleDeleteCommand(a))
	return cli.AsGroup(cmd)
}

func scheduleListCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List schedules, and when each starts a run next",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return listSchedules(cmd.Context(), a) },
	}
}

// listSchedules implements [scheduleListCommand].
func listSchedules(ctx context.Context, a *cli.App) error {
	c, _, err := a.DialExisting(ctx)
	if err == cli.ErrNoServer && a.Global.JSON {
		return a.PrintJSON([]starter.ScheduleSummary{})
	}
	if err != nil {
		return err
	}
	defer c.Close()
	schedules, err := starter.Schedules(ctx, c)
	switch {
	case err != nil:
		return err
	case a.Global.JSON:
		return a.PrintJSON(schedules)
	case len(schedules) == 0:
		a.Say("there are no schedules")
		return nil
	}
	w := cli.NewTable(a.Out, "SCHEDULE", "NEXT RUN", "NOTE")
	for _, s := range schedules {
		next := "never"
		switch {
		case s.Paused:
			next = "paused"
		case len(s.Next) > 0:
			next = s.Next[0].Local().Format(cli.LocalTime)
		}
		w.Row(s.ID, next, cli.OrDash(s.Note))
	}
	return w.Flush()
}

func schedulePauseCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "pause [flags] SCHEDULE",
		Short: "Let a schedule start no runs",
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`WHY`, which schedule list shows")
	return onSchedule(a, cmd, "paused", func(ctx context.Context, c client.Client, id string) error {
		return starter.PauseSchedule(ctx, c, id, reason)
	})
}

func scheduleResumeCommand(a *cli.App) *cobra.Command {
	return onSchedule(a, &cobra.Command{
		Use:   "resume SCHEDULE",
		Short: "Let a paused schedule start runs again",
	}, "resumed", starter.ResumeSchedule)
}

func scheduleDeleteCommand(a *cli.App) *cobra.Command {
	return onSchedule(a, &cobra.Command{
		Use:     "delete SCHEDULE",
		Aliases: []string{"rm"},
		Short:   "Delete a schedule",
	}, "deleted", starter.DeleteSchedule)
}

// onSchedule makes cmd change the schedule that is its argument, and print the state that
// results.
func onSchedule(a *cli.App, cmd *cobra.Command, state string, change func(context.Context, client.Client, string) error) *cobra.Command {
	cmd.Args = cli.OneArg("SCHEDULE")
	cmd.ValidArgsFunction = cli.Complete(a, completeSchedules)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, _, err := a.DialExisting(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		if err := change(cmd.Context(), c, args[0]); err != nil {
			return err
		}
		return a.PrintLine(map[string]string{"schedule_id": args[0], "state": state}, "%s: %s", state, args[0])
	}
	return cmd
}

// completeSchedules offers the schedules of a server.
func completeSchedules(ctx context.Context, c client.Client, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	schedules, _ := starter.Schedules(ctx, c)
	return list.Of(schedules, func(s starter.ScheduleSummary) string { return s.ID })
}
