package page

import (
	"cmp"
	"html/template"
	"slices"
	"strings"
	"time"
)

// MostRows is the largest number of tasks that all have a row. Larger runs have a square for
// each, and rows for the tasks that matter.
const MostRows = 200

// Tasks are the tasks of a run.
type Tasks struct {
	// All are all tasks, in the order of ranks.
	All []Task
	// Filter selects the rows, as the query parameters state, host and page do.
	Filter TaskFilter
}

// TaskFilter selects rows of tasks.
type TaskFilter struct {
	// State is a state of tasks, or "all" for pages with all of them. If it and Host are empty,
	// the rows are the tasks that matter.
	State, Host string
	// Page counts from 1; 0 means 1.
	Page int
}

// Task is a row of the grid.
type Task struct {
	Rank  int
	Name  string
	Host  string
	PID   int
	State string
	Tone  Tone
	// How says more about the state, such as "exit code 3" or "because of worker-2".
	How      string
	Restarts int
	// Step and Steps are the progress, by the account of the task. Seconds is the time of a
	// step.
	Step, Steps float64
	Seconds     float64
	Message     string
	// Slow is the time of a step divided by the median of others, if the task is slow.
	Slow       float64
	LastLine   string
	LastOutput time.Time
	// CPUs, Memory, GPUs and GPUMemory are in use. Of a process that has ended, they are the
	// mean and the most.
	CPUs      float64
	Memory    int64
	GPUs      float64
	GPUMemory int64
}

// Count is the number of tasks in a state.
type Count struct {
	State string
	Tone  Tone
	N     int
	URL   string
}

// Counts returns the number of tasks in each state, the most urgent first.
func (t *Tasks) Counts() (counts []Count) {
	at := map[string]int{}
	for _, task := range t.All {
		i, ok := at[task.State]
		if !ok {
			i = len(counts)
			at[task.State] = i
			counts = append(counts, Count{State: task.State, Tone: task.Tone})
		}
		counts[i].N++
		counts[i].Tone = min(counts[i].Tone, task.Tone)
	}
	slices.SortStableFunc(counts, func(a, b Count) int { return cmp.Compare(a.Tone, b.Tone) })
	return counts
}

// IsLarge reports whether the run has squares.
func (t *Tasks) IsLarge() bool { return len(t.All) > MostRows }

// Rows returns the tasks with a row, the worst first.
func (t *Tasks) Rows() []Task {
	rows := slices.Clone(t.All)
	slices.SortStableFunc(rows, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Tone, b.Tone), cmp.Compare(b.Slow, a.Slow), cmp.Compare(a.Rank, b.Rank))
	})
	return rows[:min(len(rows), MostRows)]
}

// Squares returns a square for each task.
func (t *Tasks) Squares() template.HTML {
	var b strings.Builder
	for _, task := range t.All {
		b.WriteString(`<i class="`)
		b.WriteString(task.Tone.class())
		b.WriteString(`"></i>`)
	}
	return template.HTML(b.String())
}

// StepText returns the progress, such as "120/1000" or "40%".
func (t *Task) StepText() string {
	switch {
	case t.Step == 0 && t.Steps == 0:
		return ""
	case t.Steps == 0:
		return number(t.Step)
	}
	return number(t.Step) + "/" + number(t.Steps)
}

// RateText returns the steps in a second, or the time of a step if that is longer.
func (t *Task) RateText() string {
	switch {
	case t.Seconds == 0:
		return ""
	case t.Seconds > 1:
		return number(t.Seconds) + " s/step"
	}
	return number(1/t.Seconds) + "/s"
}

// GPUText returns the use of GPUs and of their memory.
func (t *Task) GPUText() string {
	switch {
	case t.GPUs == 0 && t.GPUMemory == 0:
		return "–"
	case t.GPUMemory == 0:
		return number(t.GPUs)
	}
	return number(t.GPUs) + " · " + bytesText(t.GPUMemory)
}

// Age returns the time since the last output.
func (t *Task) Age(p *RunPage) string {
	if t.LastOutput.IsZero() {
		return ""
	}
	return span(p.At.Sub(t.LastOutput))
}
