package inspect

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// showSweep prints a sweep's status as the flags select.
func showSweep(ctx context.Context, a *cli.App, r *starter.Run, s *starter.Status, o *statusOptions) error {
	if o.why && s.Open && len(s.Waiting) > 0 {
		return showWhy(ctx, a, r, s)
	}
	for _, flag := range []string{"why", "usage", "history", "barriers", "on-host", "task"} {
		if o.tasks.given(flag) {
			return cli.Usagef("--%s applies to one run; name a trial of the sweep, such as %s", flag, spec.TrialID(r.ID, 0))
		}
	}
	if s.Sweep.Trials == 0 && !o.csv && !a.Global.JSON {
		printStatus(a.Out, s, false) // it was refused
		return nil
	}
	var best *sweep.Order
	if o.best != "" {
		order, err := sweep.ParseOrder(o.best)
		if err != nil {
			return cli.Usagef("--best: %s", err)
		}
		best = &order
	}
	names, trials, err := r.Trials(ctx, s)
	if err != nil {
		return err
	}
	if best != nil || o.csv || a.Global.JSON {
		addResults(ctx, r, trials)
	}
	if o.tasks.failed {
		trials = slices.DeleteFunc(trials, func(t starter.Trial) bool { return t.State != sweep.Failed.String() })
	}
	if best != nil {
		if trials = sortTrials(trials, *best); len(trials) == 0 {
			return fmt.Errorf("--best: no trial has returned or reported the number %s; see `clusterrun help sweeps`", best.Key)
		}
	}
	switch {
	case o.csv:
		return writeCSV(a.Out, names, trials)
	case a.Global.JSON:
		s.Tasks = []starter.TaskStatus{}
		return a.PrintJSON(struct {
			*starter.Status
			Trials []starter.Trial `json:"trials"`
		}{s, trials})
	}
	printStatus(a.Out, s, false)
	shown := trials
	switch {
	case best != nil && !o.tasks.all:
		shown = trials[:min(len(trials), bestRows)]
	case !o.tasks.each():
		shown = standOut(trials)
	}
	if best == nil {
		addResults(ctx, r, shown)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(shown) > 0 {
		fmt.Fprintln(a.Out)
		printTrials(a.Out, names, shown, best)
	}
	if more := len(trials) - len(shown); more > 0 && (best != nil || len(shown) == maxRows) {
		a.Say("%d more are not shown; --all shows them", more)
	}
	return nil
}

// addResults adds what trials reported and returned.
func addResults(ctx context.Context, r *starter.Run, trials []starter.Trial) {
	r.DescribeTrials(ctx, trials)
	r.ReadTrials(ctx, trials, nil) // what is missing is unknown
}

const bestRows = 10

// standOut returns the failed and the running trials, up to a limit. After a fully successful
// sweep, it returns all trials if there are few.
func standOut(trials []starter.Trial) []starter.Trial {
	if len(trials) <= maxRows {
		return trials
	}
	var out []starter.Trial
	for _, state := range []sweep.State{sweep.Failed, sweep.Running} {
		for _, t := range trials {
			if t.State == state.String() && len(out) < maxRows {
				out = append(out, t)
			}
		}
	}
	return out
}

// printTrials writes a line for each trial.
func printTrials(out io.Writer, names []string, trials []starter.Trial, best *sweep.Order) {
	heading := []any{"TRIAL", "STATE", "EXIT", "TOOK"}
	if best != nil {
		heading = append(heading, strings.ToUpper(spec.OneLine(best.Key)))
	}
	for _, name := range names {
		heading = append(heading, strings.ToUpper(name))
	}
	hasErrors := slices.ContainsFunc(trials, func(t starter.Trial) bool { return t.Error != "" })
	if hasErrors {
		heading = append(heading, "ERROR")
	}
	w := cli.NewTable(out, heading...)
	for _, t := range trials {
		took := "-"
		if !t.Started.IsZero() {
			took = cli.Roughly(time.Duration(t.Seconds * float64(time.Second)))
		}
		row := []any{t.Trial, t.State, exitOf(t, "-"), took}
		if best != nil {
			n, _ := t.Number(*best)
			row = append(row, strconv.FormatFloat(n, 'g', 8, 64))
		}
		for _, name := range names {
			row = append(row, cli.OrDash(spec.OneLine(shorten.Text(t.Parameters[name], 40))))
		}
		if hasErrors {
			row = append(row, cli.OrDash(spec.OneLine(shorten.Text(t.Error, 80))))
		}
		w.Row(row...)
	}
	w.Flush()
	for _, t := range trials {
		for _, h := range t.Silent {
			fmt.Fprintf(out, "trial %d: %s\n", t.Trial, h.Text(time.Now()))
		}
	}
}

func exitOf(t starter.Trial, none string) string {
	if t.ExitCode == nil {
		return none
	}
	return strconv.Itoa(*t.ExitCode)
}

// writeCSV writes the table of trials. JSON objects become one column per key.
func writeCSV(out io.Writer, names []string, trials []starter.Trial) error {
	columns := make([]map[string]string, len(trials))
	all := map[string]bool{}
	for i, t := range trials {
		columns[i] = map[string]string{}
		var object map[string]json.RawMessage
		if len(t.Value) > 0 && (json.Unmarshal(t.Value, &object) != nil || object == nil) {
			columns[i]["value"] = plain(t.Value)
		}
		for key, value := range object {
			columns[i]["value."+key] = plain(value)
		}
		if t.Progress != nil {
			for name, n := range t.Progress.Metrics {
				columns[i]["metric."+name] = strconv.FormatFloat(n, 'g', -1, 64)
			}
		}
		if t.Error != "" {
			columns[i]["error"] = t.Error
		}
		for column := range columns[i] {
			all[column] = true
		}
	}
	more := slices.Sorted(maps.Keys(all))
	w := csv.NewWriter(out)
	_ = w.Write(slices.Concat([]string{"trial", "state", "exit_code", "seconds"}, names, more)) // w remembers errors
	for i, t := range trials {
		row := []string{strconv.Itoa(t.Trial), t.State, exitOf(t, ""), ""}
		if !t.Started.IsZero() {
			row[3] = strconv.FormatFloat(t.Seconds, 'f', -1, 64)
		}
		for _, name := range names {
			row = append(row, t.Parameters[name])
		}
		for _, column := range more {
			row = append(row, columns[i][column])
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// plain returns a JSON value, without quotes if it is a string.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return spec.FormatValue(value)
}

// sortTrials returns the trials with a number, best first, without failed ones.
func sortTrials(trials []starter.Trial, by sweep.Order) []starter.Trial {
	return list.Of(starter.BestTrials(trials, by), func(i int) starter.Trial { return trials[i] })
}
