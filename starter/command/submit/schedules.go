package submit

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// scheduleManagement are the flags of schedule-run that manage existing schedules instead of
// creating one.
type scheduleManagement struct {
	list   bool
	remove string // the ID of a schedule, or empty
}

func (m scheduleManagement) wanted() bool { return m.list || m.remove != "" }

// manageSchedules lists the schedules of runs, or deletes one.
func manageSchedules(a *cli.App, cmd *cobra.Command, args []string, m scheduleManagement) error {
	switch {
	case m.list && m.remove != "":
		return cli.Usagef("--list and --delete exclude each other; give one of them")
	case len(args) > 0:
		return cli.Usagef("unexpected argument %q: with --list or --delete no schedule is created", args[0])
	}
	ctx := cmd.Context()
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if m.remove != "" {
		if err := starter.DeleteSchedule(ctx, c, m.remove); err != nil {
			return err
		}
		if a.Global.JSON {
			return a.PrintJSON(map[string]string{"schedule_id": m.remove, "state": "deleted"})
		}
		_, err := fmt.Fprintf(a.Out, "deleted: %s\n", m.remove)
		return err
	}
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
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCHEDULE\tNEXT RUN")
	for _, s := range schedules {
		next := "never"
		switch {
		case s.Paused:
			next = "paused"
		case len(s.Next) > 0:
			next = s.Next[0].Local().Format(cli.LocalTime)
		}
		fmt.Fprintf(w, "%s\t%s\n", s.ID, next)
	}
	return w.Flush()
}
