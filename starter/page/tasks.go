package page

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
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
	*starter.TaskStatus
	// State is what the task is doing, in a word.
	State string
	Tone  Tone
	// How adds detail to the state, such as "exit code 3" or "because of worker-2".
	How string
	// Slow is the step time divided by the other tasks' median, if the task is slow.
	Slow     float64
	LastLine string
}

// NewTasks returns a run's tasks, in rank order.
func NewTasks(s *starter.Status) []Task {
	slow := map[string]float64{}
	for _, t := range s.Slow {
		if t.Task != "" {
			slow[t.Task] = t.Ratio
		}
	}
	culprit := ""
	if s.Result != nil && s.Result.FirstFailure != nil {
		culprit = s.Result.FirstFailure.Task
	}
	words := s.Doing()
	tasks := make([]Task, len(s.Tasks))
	for i := range tasks {
		t := &s.Tasks[i]
		tasks[i] = Task{TaskStatus: t, State: words[i], Slow: slow[t.Name]}
		tasks[i].Tone, tasks[i].How = lookOf(t, words[i], t.Name == culprit)
	}
	return tasks
}

// lookOf returns a task's tone and how it ended.
func lookOf(t *starter.TaskStatus, word string, culprit bool) (Tone, string) {
	if e := t.Exit; e != nil && t.State == spec.TaskEnded {
		how := outcome.Short(*e)
		switch {
		case culprit:
			return Culprit, how
		case e.Cause.ByItself(), e.Cause == spec.CauseHostLost:
			return Bad, how
		case e.OK():
			return Good, ""
		}
		return Muted, how
	}
	switch word {
	case outcome.DoingMissing, outcome.DoingRestart, outcome.DoingUnknown:
		return Warning, t.LastFailure
	case string(spec.TaskPending):
		return Waits, ""
	case string(spec.TaskStopping):
		return Warning, ""
	}
	if t.Usage != nil && t.Usage.SilentSeconds > 0 {
		return Warning, "silent"
	}
	return Active, ""
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
	switch p := t.Progress; {
	case p == nil || p.Current == 0 && p.Total == 0:
		return ""
	case p.Total == 0:
		return number(p.Current)
	default:
		return number(p.Current) + "/" + number(p.Total)
	}
}

// StepSeconds returns the duration of a step of the task's last process, or 0 if unknown.
func (t *Task) StepSeconds() float64 {
	switch {
	case t.Exit != nil && t.Exit.Steps != nil:
		return t.Exit.Steps.Seconds
	case t.Steps != nil:
		return t.Steps.Seconds
	}
	return 0
}

// RateText returns the steps per second, or the step time if that is longer.
func (t *Task) RateText() string {
	switch seconds := t.StepSeconds(); {
	case seconds == 0:
		return ""
	case seconds > 1:
		return number(seconds) + " s/step"
	default:
		return number(1/seconds) + "/s"
	}
}

// InUse returns what the task uses. For a process that has exited, these are the mean and the
// maximum.
func (t *Task) InUse() spec.LiveUsage {
	switch e := t.Exit; {
	case t.Usage != nil:
		return *t.Usage
	case e != nil:
		u := spec.LiveUsage{RSSBytes: e.Usage.MaxRSSBytes, GPUMemoryBytes: e.Usage.MaxGPUMemoryBytes}
		if lived := e.Ended.Sub(e.Started).Seconds(); lived > 0 && !e.Started.IsZero() {
			u.CPUs, u.GPUs = e.Usage.CPUSeconds()/lived, e.Usage.GPUSeconds/lived
		}
		return u
	}
	return spec.LiveUsage{}
}

// CPUText returns the number of busy processors.
func (t *Task) CPUText() string { return unlessZero(number, t.InUse().CPUs) }

// MemoryText returns the memory.
func (t *Task) MemoryText() string { return unlessZero(bytesText, t.InUse().RSSBytes) }

// GPUText returns the usage of GPUs and their memory.
func (t *Task) GPUText() string {
	u := t.InUse()
	switch {
	case u.GPUs == 0 && u.GPUMemoryBytes == 0:
		return ""
	case u.GPUMemoryBytes == 0:
		return number(u.GPUs)
	}
	return number(u.GPUs) + " · " + bytesText(u.GPUMemoryBytes)
}

func unlessZero[N int64 | float64](format func(N) string, n N) string {
	if n == 0 {
		return ""
	}
	return format(n)
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
		u := t.InUse()
		c.Step, c.Rate = c.Step || t.Progress != nil, c.Rate || t.StepSeconds() != 0
		c.CPU, c.Memory, c.GPU = c.CPU || u.CPUs != 0, c.Memory || u.RSSBytes != 0, c.GPU || u.GPUs != 0 || u.GPUMemoryBytes != 0
		c.Age, c.Line, c.Host, c.PID = c.Age || !t.LastOutput.IsZero(), c.Line || t.LastLine != "", c.Host || t.Host != "", c.PID || t.PID != 0
	}
	return c
}
