package inspect

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/series"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// showUsageHistory prints tasks' usage over time.
func showUsageHistory(ctx context.Context, a *cli.App, r *starter.Run, s *starter.Status, meant *taskChoice) (err error) {
	if s.Tasks, err = meant.of(s); err != nil {
		return err
	}
	files := r.Files(s)
	defer files.Close()
	tasks, err := runrecord.Usage(ctx, files, s.Tasks)
	if err != nil {
		a.Say("cannot read the usage of some tasks: %s", err)
	}
	if a.Global.JSON {
		return a.PrintJSON(map[string]any{"run_id": s.RunID, "open": s.Open, "tasks": tasks})
	}
	tasks = slices.DeleteFunc(tasks, func(t runrecord.UsageHistory) bool { return len(t.Points) == 0 })
	if len(tasks) == 0 {
		a.Say("no usage of these tasks was recorded, or it is on other hosts that do not serve it")
		return nil
	}
	return printUsageHistory(a.Out, tasks, meant.each())
}

// column is one measure of a history.
type column struct {
	name string
	// of returns a point's value for the bars, and peak its maximum.
	of, peak func(series.Point) float64
	// text formats a task's total.
	text func(total series.Point) string
}

var columns = []column{
	{
		"CPUS (MEAN, MAX)", func(p series.Point) float64 { return p.CPUs }, func(p series.Point) float64 { return p.MaxCPUs },
		func(t series.Point) string { return fmt.Sprintf("%.2f, %.2f", t.CPUs, t.MaxCPUs) },
	},
	{
		"MEMORY (MAX)", func(p series.Point) float64 { return p.RSSBytes }, func(p series.Point) float64 { return p.RSSBytes },
		func(t series.Point) string { return units.Bytes(int64(t.RSSBytes)) },
	},
	{
		"GPUS (MEAN, MAX)", func(p series.Point) float64 { return p.GPUs }, func(p series.Point) float64 { return p.MaxGPUs },
		func(t series.Point) string { return fmt.Sprintf("%.2f, %.2f", t.GPUs, t.MaxGPUs) },
	},
	{
		"GPU MEMORY (MAX)", func(p series.Point) float64 { return p.GPUMemoryBytes }, func(p series.Point) float64 { return p.GPUMemoryBytes },
		func(t series.Point) string { return units.Bytes(int64(t.GPUMemoryBytes)) },
	},
	{
		"STEP (MEAN, MAX)", func(p series.Point) float64 { return p.StepSeconds }, func(p series.Point) float64 { return p.MaxStepSeconds },
		func(t series.Point) string {
			if t.Steps == 0 {
				return "-"
			}
			return units.SpanOfSeconds(t.StepSeconds) + ", " + units.SpanOfSeconds(t.MaxStepSeconds)
		},
	},
}

// barsWide is the number of bars per measure.
const barsWide = 20

// printUsageHistory writes a line for each task, with bars over the run's duration. A column's
// tallest bar is the largest value of all tasks.
func printUsageHistory(out io.Writer, tasks []runrecord.UsageHistory, each bool) error {
	from, to := tasks[0].Points[0].From, time.Time{}
	totals := make([]series.Point, len(tasks))
	for i, t := range tasks {
		totals[i] = series.Total(t.Points)
		if totals[i].From.Before(from) {
			from = totals[i].From
		}
		if totals[i].To().After(to) {
			to = totals[i].To()
		}
	}
	all := series.Total(totals)
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.peak(all) == 0 })
	fmt.Fprintf(out, "from %s to %s; a bar is %s, and the tallest bar is the highest value of any task\n",
		from.Local().Format(cli.LocalTime), to.Local().Format(cli.LocalTime), cli.Roughly(to.Sub(from)/barsWide))
	heading := []any{"TASK", "HOST"}
	for _, c := range shown {
		heading = append(heading, c.name, "")
	}
	w := cli.NewTable(out, heading[:len(heading)-1]...)
	most := len(tasks)
	if !each {
		most = min(most, maxRows)
	}
	grids := make([][]series.Point, most)
	tallest := make([]float64, len(shown))
	for i, t := range tasks[:most] {
		grids[i] = series.Resample(t.Points, from, to, barsWide)
		for at, c := range shown {
			for _, p := range grids[i] {
				tallest[at] = max(tallest[at], c.of(p))
			}
		}
	}
	for i, t := range tasks[:most] {
		row := []any{t.Name, cli.OrDash(t.Host)}
		for at, c := range shown {
			row = append(row, bars(grids[i], c.of, tallest[at]), c.text(totals[i]))
		}
		w.Row(row...)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more := len(tasks) - most; more > 0 {
		fmt.Fprintf(out, "and %d more; --failed, --on-host, --task and --all list them\n", more)
	}
	return nil
}

// bars returns a bar for each point, and a space for an unknown one.
func bars(points []series.Point, of func(series.Point) float64, tallest float64) string {
	heights := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, p := range points {
		switch value := of(p); {
		case p.Seconds == 0:
			b.WriteByte(' ')
		case tallest == 0:
			b.WriteRune(heights[0])
		default:
			at := math.Round(value / tallest * float64(len(heights)-1))
			b.WriteRune(heights[min(int(at), len(heights)-1)])
		}
	}
	return b.String()
}
