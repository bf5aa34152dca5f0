package page

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/units"
)

const (
	// MaxRows is the maximum number of tasks in a run that shows a row for each. Larger runs
	// show a square for each task, and rows for the tasks that matter.
	MaxRows = 200
	// mattering is the maximum number of rows for a large run's tasks that matter.
	mattering = 50
	// MaxFileRows is the maximum number of rows in a file.
	MaxFileRows = 2000
)

// Tasks holds a run's tasks.
type Tasks struct {
	// All holds all tasks, in rank order.
	All []Task
	// Filter selects the rows, like the query parameters state, host and page.
	Filter TaskFilter
}

// TaskFilter selects rows of tasks.
type TaskFilter struct {
	// State and Host select tasks, and Page numbers the pages of selected tasks from 1. If all
	// three are empty, a large run shows rows for the tasks that matter.
	State, Host string
	Page        int
}

// Task is one grid row.
type Task struct {
	Rank  int
	Name  string
	Host  string
	PID   int
	State string
	Tone  Tone
	// How adds detail to the state, such as "exit code 3" or "because of worker-2".
	How      string
	Restarts int
	// Step and Steps are the progress that the task reports. Seconds is a step's duration.
	Step, Steps float64
	Seconds     float64
	Message     string
	// Slow is the step time divided by the other tasks' median, if the task is slow.
	Slow       float64
	LastLine   string
	LastOutput time.Time
	// CPUs, Memory, GPUs and GPUMemory are in use. For a process that has exited, they are the
	// mean and the maximum.
	CPUs      float64
	Memory    int64
	GPUs      float64
	GPUMemory int64
}

// Count is the number of tasks in one state.
type Count struct {
	State string
	Tone  Tone
	N     int
	// URL selects the tasks.
	URL     string
	Current bool
}

// Counts returns the number of tasks or trials in each state, most urgent first.
func (p *RunPage) Counts() (counts []Count) {
	at := map[string]int{}
	add := func(state string, tone Tone) {
		i, ok := at[state]
		if !ok {
			i = len(counts)
			at[state] = i
			counts = append(counts, Count{State: state, Tone: tone, Current: p.Tasks.Filter.State == state})
			if (p.IsLarge() || p.Sweep != nil) && !p.IsFile() {
				counts[i].URL = p.tasksURL(TaskFilter{State: state, Host: p.Tasks.Filter.Host})
			}
		}
		counts[i].N++
		counts[i].Tone = min(counts[i].Tone, tone)
	}
	for _, task := range p.Tasks.All {
		add(task.State, task.Tone)
	}
	if p.Sweep != nil {
		for _, trial := range p.Sweep.rows() {
			add(trial.State, trial.Tone)
		}
	}
	slices.SortStableFunc(counts, func(a, b Count) int { return cmp.Compare(a.Tone, b.Tone) })
	return counts
}

// IsLarge reports whether the run has squares.
func (p *RunPage) IsLarge() bool {
	return len(p.Tasks.All) > MaxRows || p.Sweep != nil && len(p.Sweep.Trials) > MaxRows
}

// tasksURL returns the page's address with other grid rows.
func (p *RunPage) tasksURL(f TaskFilter) string { return p.query(f) + "#tasks" }

// query returns the page's query for other grid rows.
func (p *RunPage) query(f TaskFilter) string {
	values := url.Values{}
	set := func(name, value string) {
		if value != "" {
			values.Set(name, value)
		}
	}
	set("state", f.State)
	set("host", f.Host)
	set("ranks", p.Output.Filter.Ranks)
	set("search", p.Output.Filter.Search)
	if p.Output.Filter.Stderr {
		set("stderr", "1")
	}
	if f.Page > 0 {
		set("page", itoa(f.Page))
	}
	set("chart", p.ChartedText())
	if p.Sweep != nil && p.Sweep.Order.Key != "" {
		set("sort", p.Sweep.Order.String())
	}
	return "?" + values.Encode()
}

// Rows holds rows of the grid.
type Rows[T any] struct {
	Rows []T
	// Text describes which tasks or trials these are.
	Text string
	// Pages are links to more rows.
	Pages []Link
}

// TaskRows returns the selected rows, worst first except on pages of all tasks.
func (p *RunPage) TaskRows() Rows[Task] {
	q := p.Tasks.Filter
	rows := slices.Clone(p.Tasks.All)
	if q.State != "" || q.Host != "" {
		rows = slices.DeleteFunc(rows, func(t Task) bool { return q.State != "" && t.State != q.State || q.Host != "" && t.Host != q.Host })
	}
	if !p.IsLarge() || p.IsFile() || q == (TaskFilter{}) {
		worstFirst(rows)
	}
	matters := func(t Task) bool { return t.Tone <= Warning || t.Slow != 0 }
	return paged(p, rows, len(p.Tasks.All), "tasks", "tasks that matter most", matters)
}

// paged returns a page's rows. They are sorted, and its filter has selected them from all. Without
// a filter, a large run's page shows the first rows, at least ten, while they matter.
func paged[T any](p *RunPage, rows []T, all int, noun, first string, matters func(T) bool) Rows[T] {
	q := p.Tasks.Filter
	if !p.IsLarge() {
		return Rows[T]{Rows: rows}
	}
	if p.IsFile() {
		if len(rows) > MaxFileRows {
			return Rows[T]{Rows: rows[:MaxFileRows], Text: "The worst " + itoa(MaxFileRows) + " of " + itoa(len(rows)) + " " + noun + "; this file omits the rest."}
		}
		return Rows[T]{Rows: rows}
	}
	every := Link{Text: "all " + itoa(all), URL: p.tasksURL(TaskFilter{Page: 1})}
	if q == (TaskFilter{}) {
		n := min(mattering, len(rows))
		for n > 10 && !matters(rows[n-1]) {
			n--
		}
		return Rows[T]{Rows: rows[:n], Text: "The " + itoa(n) + " " + first + ".", Pages: []Link{every}}
	}
	matter := Link{Text: "those that matter", URL: p.tasksURL(TaskFilter{})}
	page, last := max(1, q.Page), (len(rows)+MaxRows-1)/MaxRows
	page = min(page, max(1, last))
	from := (page - 1) * MaxRows
	to := min(len(rows), from+MaxRows)
	found := Rows[T]{Rows: rows[from:to], Pages: []Link{matter}}
	switch {
	case len(rows) == 0:
		found.Text = "No such " + noun + "."
	default:
		found.Text = itoa(from+1) + " to " + itoa(to) + " of " + itoa(len(rows)) + " " + noun
		if q.State != "" {
			found.Text += ", " + q.State
		}
		if q.Host != "" {
			found.Text += ", on " + q.Host
		}
	}
	if q.State != "" || q.Host != "" {
		found.Pages = append(found.Pages, every)
	}
	if page > 1 {
		found.Pages = append(found.Pages, Link{Text: "previous", URL: p.tasksURL(TaskFilter{q.State, q.Host, page - 1})})
	}
	if page < last {
		found.Pages = append(found.Pages, Link{Text: "next", URL: p.tasksURL(TaskFilter{q.State, q.Host, page + 1})})
	}
	return found
}

// Rows returns the first tasks, worst first.
func (t *Tasks) Rows() []Task {
	rows := slices.Clone(t.All)
	worstFirst(rows)
	return rows[:min(len(rows), MaxRows)]
}

func worstFirst(rows []Task) {
	slices.SortStableFunc(rows, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Tone, b.Tone), cmp.Compare(b.Slow, a.Slow), cmp.Compare(a.Rank, b.Rank))
	})
}

// Squares returns a square for each task, with a gap between hosts. The counts give the same
// information in words.
func (p *RunPage) Squares() template.HTML {
	var b strings.Builder
	for i, task := range p.Tasks.All {
		gap := ""
		if i > 0 && task.Host != p.Tasks.All[i-1].Host {
			gap = " h"
		}
		b.WriteString(`<i class="` + task.Tone.class() + gap + `"></i>`)
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

// RateText returns the steps per second, or the step time if that is longer.
func (t *Task) RateText() string {
	switch {
	case t.Seconds == 0:
		return ""
	case t.Seconds > 1:
		return number(t.Seconds) + " s/step"
	}
	return number(1/t.Seconds) + "/s"
}

// CPUText returns the number of busy processors.
func (t *Task) CPUText() string {
	if t.CPUs == 0 {
		return ""
	}
	return number(t.CPUs)
}

// MemoryText returns the memory.
func (t *Task) MemoryText() string {
	if t.Memory == 0 {
		return ""
	}
	return bytesText(t.Memory)
}

// GPUText returns the usage of GPUs and their memory.
func (t *Task) GPUText() string {
	switch {
	case t.GPUs == 0 && t.GPUMemory == 0:
		return ""
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
	return units.Span(p.At.Sub(t.LastOutput))
}

// columns reports which grid columns contain values.
type columns struct{ Step, Rate, CPU, Memory, GPU, Age, Line, Host, PID bool }

// columnsOf returns the columns with a value in some row.
func columnsOf(rows []Task) (c columns) {
	for i := range rows {
		t := &rows[i]
		c.Step, c.Rate = c.Step || t.Step != 0 || t.Steps != 0, c.Rate || t.Seconds != 0
		c.CPU, c.Memory, c.GPU = c.CPU || t.CPUs != 0, c.Memory || t.Memory != 0, c.GPU || t.GPUs != 0 || t.GPUMemory != 0
		c.Age, c.Line, c.Host, c.PID = c.Age || !t.LastOutput.IsZero(), c.Line || t.LastLine != "", c.Host || t.Host != "", c.PID || t.PID != 0
	}
	return c
}
