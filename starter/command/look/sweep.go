package look

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// showSweep prints a sweep's status as the flags select.
func showSweep(ctx context.Context, a *cli.App, r *starter.Run, s *starter.Status, o *statusOptions) error {
	if o.why && s.Open && len(s.Waiting) > 0 {
		return showWhy(ctx, a, r, s)
	}
	for _, flag := range []string{"why", "usage", "history", "barriers", "on-host", "task"} {
		if o.tasks.given(flag) {
			return cli.Usagef("--%s is about one run; name a trial of the sweep, such as %s", flag, spec.TrialID(r.ID, 0))
		}
	}
	best, err := parseBest(o.best)
	if err != nil {
		return err
	}
	if s.Sweep == nil && s.Result != nil && s.Result.Sweep == nil && !o.csv && !a.Global.JSON {
		printStatus(a.Out, s, false) // it was refused
		return nil
	}
	names, trials, err := r.Trials(ctx, s, best != nil || o.csv || a.Global.JSON)
	if err != nil {
		return err
	}
	if o.tasks.failed {
		trials = slices.DeleteFunc(trials, func(t starter.Trial) bool { return t.State != sweep.Failed.String() })
	}
	if best != nil {
		if trials, err = best.sort(trials); err != nil {
			return err
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
	if len(shown) > 0 {
		fmt.Fprintln(a.Out)
		printTrials(a.Out, names, shown, best)
	}
	if more := len(trials) - len(shown); more > 0 && (best != nil || len(shown) == maxRows) {
		a.Say("%d more are not shown; --all shows them", more)
	}
	return nil
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
func printTrials(out io.Writer, names []string, trials []starter.Trial, best *best) {
	heading := []any{"TRIAL", "STATE", "EXIT", "TOOK"}
	if best != nil {
		heading = append(heading, strings.ToUpper(spec.OneLine(best.key)))
	}
	w := cli.NewTable(out, append(heading, strings.ToUpper(strings.Join(names, "\t")))...)
	for _, t := range trials {
		took := "-"
		if !t.Started.IsZero() {
			took = cli.Roughly(time.Duration(t.Seconds * float64(time.Second)))
		}
		row := []any{t.Trial, t.State, exitOf(t, "-"), took}
		if best != nil {
			n, _ := best.of(t)
			row = append(row, strconv.FormatFloat(n, 'g', 8, 64))
		}
		for _, name := range names {
			row = append(row, cli.OrDash(spec.OneLine(shorten.Text(t.Parameters[name], 40))))
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
	var keys []string
	values := make([]map[string]json.RawMessage, len(trials))
	for i, t := range trials {
		if len(t.Value) == 0 {
			continue
		}
		if json.Unmarshal(t.Value, &values[i]) != nil || values[i] == nil {
			values[i] = map[string]json.RawMessage{"": t.Value}
		}
		for key := range values[i] {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	heading := append([]string{"trial", "state", "exit_code", "seconds"}, names...)
	for _, key := range keys {
		heading = append(heading, strings.TrimSuffix("value."+key, "."))
	}
	w := csv.NewWriter(out)
	_ = w.Write(heading) // w remembers errors
	for i, t := range trials {
		row := []string{strconv.Itoa(t.Trial), t.State, exitOf(t, ""), ""}
		if !t.Started.IsZero() {
			row[3] = strconv.FormatFloat(t.Seconds, 'f', -1, 64)
		}
		for _, name := range names {
			row = append(row, t.Parameters[name])
		}
		for _, key := range keys {
			row = append(row, plain(values[i][key]))
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}

// plain returns a JSON value, without quotes if it is a string.
func plain(value json.RawMessage) string {
	var text string
	if len(value) == 0 || json.Unmarshal(value, &text) == nil {
		return text
	}
	return spec.FormatValue(value)
}

// best is the order of --best.
type best struct {
	key string
	max bool
}

func parseBest(text string) (*best, error) {
	if text == "" {
		return nil, nil
	}
	key, order, _ := strings.Cut(text, ":")
	if key == "" || order != "min" && order != "max" {
		return nil, cli.Usagef("--best %s: give the key of a returned value and its order, such as loss:min or accuracy:max; value:min is for values that are numbers", text)
	}
	return &best{key: key, max: order == "max"}, nil
}

// of returns a trial's sort key.
func (b *best) of(t starter.Trial) (float64, bool) {
	value := t.Value
	if len(value) == 0 {
		return 0, false
	}
	if !bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) && b.key == "value" {
		return number64(value)
	}
	for part := range strings.SplitSeq(b.key, ".") {
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) != nil {
			return 0, false
		}
		value = object[part]
	}
	return number64(value)
}

func number64(value json.RawMessage) (float64, bool) {
	var n float64
	if len(value) == 0 || json.Unmarshal(value, &n) != nil || math.IsNaN(n) {
		return 0, false
	}
	return n, true
}

// sort returns the trials with that number, best first.
func (b *best) sort(trials []starter.Trial) ([]starter.Trial, error) {
	sorted := slices.DeleteFunc(trials, func(t starter.Trial) bool {
		_, ok := b.of(t)
		return !ok
	})
	if len(sorted) == 0 {
		return nil, fmt.Errorf("--best: no trial has returned an object with the number %s; a task returns what it writes to the file CLUSTERRUN_RESULT_FILE", b.key)
	}
	slices.SortStableFunc(sorted, func(x, y starter.Trial) int {
		n, _ := b.of(x)
		m, _ := b.of(y)
		if b.max {
			n, m = m, n
		}
		return cmp.Compare(n, m)
	})
	return sorted, nil
}
