package inspect

import (
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// showUsage prints the current and past usage of a run's tasks.
func showUsage(a *cli.App, s *starter.Status) error {
	u := usageOfRun(s)
	return a.Print(u, func() { printUsage(a, u) })
}

// runUsage is a run's current and past usage, in total and by task.
type runUsage struct {
	RunID string         `json:"run_id"`
	Open  bool           `json:"open"`
	Usage spec.LiveUsage `json:"usage"`
	Tasks []taskUsage    `json:"tasks"`
}

// taskUsage is a task's usage. Usage is nil if unknown.
type taskUsage struct {
	Name  string          `json:"name"`
	Host  string          `json:"host,omitempty"`
	State spec.TaskState  `json:"state"`
	Usage *spec.LiveUsage `json:"usage,omitempty"`
}

func usageOfRun(s *starter.Status) runUsage {
	u := runUsage{RunID: s.RunID, Open: s.Open, Tasks: []taskUsage{}}
	for i, t := range s.Tasks {
		task := taskUsage{Name: t.Name, Host: t.Host, State: t.State, Usage: t.Usage}
		switch {
		case t.Usage != nil:
		case s.Result != nil && i < len(s.Result.Tasks) && len(s.Result.Tasks[i].Exits) > 0:
			task.Usage = &spec.LiveUsage{}
			for _, e := range s.Result.Tasks[i].Exits {
				task.Usage.Usage = task.Usage.With(e.Usage)
			}
		case t.Exit != nil:
			task.Usage = &spec.LiveUsage{Usage: t.Exit.Usage}
		}
		if v := task.Usage; v != nil {
			sum := &u.Usage
			sum.Usage = sum.With(v.Usage)
			sum.CPUs += v.CPUs
			sum.GPUs += v.GPUs
			sum.RSSBytes += v.RSSBytes
			sum.GPUMemoryBytes += v.GPUMemoryBytes
			sum.Processes += v.Processes
		}
		u.Tasks = append(u.Tasks, task)
	}
	if s.Result != nil && s.Result.Usage != (spec.Usage{}) {
		u.Usage.Usage = s.Result.Usage // the total in the result includes processes that are not listed
	}
	return u
}

func printUsage(a *cli.App, u runUsage) {
	gpus := slices.ContainsFunc(u.Tasks, func(t taskUsage) bool {
		return t.Usage != nil && (t.Usage.GPUSeconds > 0 || t.Usage.MaxGPUMemoryBytes > 0)
	})
	heading := []any{"TASK", "STATE", "HOST", "CPU TIME"}
	if u.Open {
		heading = append(heading, "CPUS", "MEMORY")
	}
	heading = append(heading, "MAX MEMORY")
	if gpus {
		heading = append(heading, "GPU TIME")
		if u.Open {
			heading = append(heading, "GPUS", "GPU MEMORY")
		}
		heading = append(heading, "MAX GPU MEMORY")
	}
	w := cli.NewTable(a.Out, append(heading, "OUTPUT")...)
	row := func(name, state, host string, v *spec.LiveUsage) {
		cells := []any{name, state, host}
		known := v != nil
		if !known {
			v = &spec.LiveUsage{}
		}
		cell := func(text string, there bool) {
			if !there {
				text = "-"
			}
			cells = append(cells, text)
		}
		cell(cpuTime(v.CPUSeconds()), known)
		if u.Open {
			cell(fmt.Sprintf("%.2f", v.CPUs), v.Processes > 0)
			cell(units.Bytes(v.RSSBytes), v.Processes > 0)
		}
		cell(units.Bytes(v.MaxRSSBytes), v.MaxRSSBytes > 0)
		if gpus {
			cell(cpuTime(v.GPUSeconds), known)
			if u.Open {
				cell(fmt.Sprintf("%.2f", v.GPUs), v.Processes > 0)
				cell(units.Bytes(v.GPUMemoryBytes), v.Processes > 0)
			}
			cell(units.Bytes(v.MaxGPUMemoryBytes), v.MaxGPUMemoryBytes > 0)
		}
		cell(units.Bytes(v.OutputBytes), known)
		w.Row(cells...)
	}
	for _, t := range u.Tasks {
		row(t.Name, cli.OrDash(string(t.State)), cli.OrDash(t.Host), t.Usage)
	}
	if len(u.Tasks) > 1 {
		row("all", "", "", &u.Usage)
	}
	w.Flush()
}

// cpuTime formats a number of seconds.
func cpuTime(seconds float64) string {
	return cli.Roughly(time.Duration(seconds * float64(time.Second)))
}
