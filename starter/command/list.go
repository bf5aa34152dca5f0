package command

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter"
)

func (a *app) listCommand() *cobra.Command {
	var o starter.ListOptions
	cmd := &cobra.Command{
		Use:     "list [flags]",
		Aliases: []string{"ls"},
		Short:   "List runs, the latest first",
		Long: `Lists runs, those that started last first, with their verdicts. Where there are
more than the limit, it says so on stderr.

` + exitCodesOfRequests,
		Example: "  clusterrun list\n  clusterrun list --open",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Limit < 1 {
				return usagef("--limit %d: give 1 or more", o.Limit)
			}
			c, _, err := a.dialExisting(cmd.Context())
			if err == errNoServer && a.global.json {
				return a.printJSON([]starter.Summary{})
			}
			if err != nil {
				return err
			}
			defer c.Close()
			runs, err := starter.List(cmd.Context(), c, o)
			if err != nil {
				return err
			}
			if len(runs) == o.Limit {
				all, err := starter.Count(cmd.Context(), c, o)
				if err != nil {
					return err
				}
				defer a.sayCut(len(runs), all)
			}
			if a.global.json {
				if runs == nil {
					runs = []starter.Summary{}
				}
				return a.printJSON(runs)
			}
			a.printList(runs)
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Open, "open", false, "only runs that have not ended")
	cmd.Flags().IntVar(&o.Limit, "limit", 20, "most runs to list (`NUMBER`)")
	return cmd
}

// sayCut says how much of a list was left out.
func (a *app) sayCut(shown, all int) {
	if all > shown {
		a.say("these are the latest %d of %d runs; --limit %d shows all", shown, all, all)
	}
}

func (a *app) printList(runs []starter.Summary) {
	if len(runs) == 0 {
		a.say("there are no runs")
		return
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tVERDICT\tEXIT\tTASKS\tOWNER\tSTARTED\tTOOK")
	for _, r := range runs {
		verdict, exit, end := "(open)", "-", time.Now()
		if !r.Open {
			end = r.Ended
			verdict = dash(cmp.Or(r.Ending, string(r.Verdict)))
			exit = fmt.Sprint(r.ExitCode)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.RunID, verdict, exit, dash(r.Tasks), dash(r.Owner),
			r.Started.Local().Format("2006-01-02 15:04:05"), roughly(end.Sub(r.Started)))
	}
	w.Flush()
}
