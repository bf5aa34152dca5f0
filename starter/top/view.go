package top

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// Screen is the content of the terminal.
type Screen struct {
	Lines []string
	// Cursor is the line of the chosen row, or -1.
	Cursor int
}

// View returns the screen: a title, a table or output, a line for notes and one for keys.
func (m *Model) View() Screen {
	s := Screen{Cursor: -1}
	add := func(line string) { s.Lines = append(s.Lines, ansi.Truncate(clean(line), m.width, "…")) }
	if m.help {
		for _, line := range strings.Split(helpText, "\n") {
			add(line)
		}
		s.Lines = s.Lines[:min(len(s.Lines), m.height)]
		return s
	}
	add(m.title())
	if m.subject.Kind == Output {
		add("")
	}
	end := min(len(m.shown), m.top+m.rows())
	if m.subject.Kind == Output {
		for _, i := range m.shown[m.top:end] {
			add(m.lines[i])
		}
	} else {
		table := [][]string{m.heading()}
		for _, i := range m.shown[m.top:end] {
			table = append(table, m.cells(i))
		}
		for _, line := range columns(table) {
			add(line)
		}
		if len(m.shown) > 0 {
			s.Cursor = 2 + m.cursor - m.top
		}
	}
	for len(s.Lines) < m.height-2 {
		add("")
	}
	add(m.last())
	add(m.keys())
	// On a terminal with few lines the last ones matter most, because they may be a question.
	if over := len(s.Lines) - m.height; over > 0 {
		s.Lines, s.Cursor = s.Lines[over:], s.Cursor-over
	}
	return s
}

// clean removes from a line all controls for cursor and colours, and makes it a single line.
func clean(line string) string {
	return spec.Visible(strings.NewReplacer("\t", "    ", "\n", " ").Replace(strings.TrimRight(ansi.Strip(line), "\r\n")))
}

// columns aligns the cells of rows.
func columns(rows [][]string) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	lines := make([]string, len(rows))
	for r, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
			}
		}
		lines[r] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

func (m *Model) title() string {
	var text string
	switch m.subject.Kind {
	case Tasks:
		text = "run " + m.subject.Run
		if s := m.found.Status; s != nil {
			text += ": " + cmp.Or(s.Ending, string(s.Verdict), string(s.State))
			if absence := s.Absence(); absence != "" {
				text += ", but " + absence
			}
			if m.counts != "" {
				text += " · " + m.counts
			}
			for _, w := range s.Waiting[:min(1, len(s.Waiting))] {
				text += " · waiting: " + cmp.Or(w.Refusal, w.Queue)
			}
		}
	case Output:
		text = "output of " + m.subject.Run
		if m.subject.Task != "" {
			text = "output of " + m.subject.Task + " of " + m.subject.Run
		}
		text += fmt.Sprintf(" · %d lines", len(m.lines))
		if m.held {
			text += " · held, end follows"
		}
	case Runs, Queue, Hosts:
		text = string(m.subject.Kind)
		if m.loaded {
			text += fmt.Sprintf(": %d", m.size())
		}
	}
	if m.filter != "" {
		text += fmt.Sprintf(" · /%s: %d", m.filter, len(m.shown))
	}
	return text
}

func (m *Model) last() string {
	switch {
	case m.asked != nil:
		return m.asked.question() + " y/n"
	case m.typing:
		return "/" + m.filter + "▏"
	case m.note != "":
		return m.note
	case !m.loaded:
		return "looking…"
	case len(m.shown) == 0 && m.subject.Kind != Output:
		return "nothing to show"
	case m.subject.Kind == Tasks && m.found.Status != nil && len(m.found.Status.Slow) > 0:
		return "slow: " + m.found.Status.Slow[0].String()
	}
	return ""
}

func (m *Model) keys() string {
	keys := "1 runs  2 queue  3 hosts  / filter  ? help  q quit"
	switch m.subject.Kind {
	case Runs, Queue:
		keys = "enter tasks  l output  s stop  K kill  x stacks  " + keys
	case Tasks:
		keys = "esc back  enter output  l all output  s stop run  K kill  r restart  x stacks  / filter  ? help  q quit"
	case Output:
		keys = "esc back  end follow  s stop run  K kill  r restart  x stacks  / filter  ? help  q quit"
	}
	return keys
}

func (m *Model) heading() []string {
	switch m.subject.Kind {
	case Runs:
		return []string{"RUN", "STATUS", "EXIT", "TASKS", "OWNER", "AGE", "TOOK", "OUTPUT", "COMMAND"}
	case Tasks:
		return []string{"TASK", "STATE", "HOST", "PID", "RESTARTS", "OUTPUT", "CPU", "MEMORY", "GPU", "EXIT", "PROGRESS", "LAST LINE"}
	case Queue:
		return []string{"POSITION", "RUN", "PRIORITY", "TASKS", "WAITS", "FOR"}
	}
	return []string{"HOST", "STATE", "SLOTS", "GPUS", "VERSION", "RUNS"}
}

// cells returns a row of a table, or a line of output.
func (m *Model) cells(i int) []string {
	switch m.subject.Kind {
	case Runs:
		r := m.found.Runs[i]
		state, exit, took := dash(r.State), "-", m.found.At.Sub(r.Started)
		if !r.Open {
			state, exit, took = dash(cmp.Or(r.Ending, string(r.Verdict))), strconv.Itoa(r.ExitCode), r.Ended.Sub(r.Started)
		}
		return []string{r.RunID, state, exit, dash(r.Tasks), dash(r.Owner), span(m.found.At.Sub(r.Started)), span(took), m.ago(r.LastOutput), strings.Join(strings.Fields(r.Command), " ")}
	case Tasks:
		t := m.found.Status.Tasks[i]
		cpu, memory, gpu := usage(t.Usage)
		return []string{
			t.Name, m.words[i], dash(t.Host), number(t.PID), strconv.Itoa(t.Restarts), m.ago(t.LastOutput), cpu, memory, gpu,
			exit(t.Exit), progress(t.Progress), m.found.Last[t.Name],
		}
	case Queue:
		w := m.found.Queue[i]
		return []string{strconv.Itoa(w.Position), w.Run.WorkflowID, strconv.Itoa(w.Priority), strconv.Itoa(w.Tasks), span(m.found.At.Sub(w.Since)), w.Why}
	case Hosts:
		h := m.found.Hosts[i]
		runs := list.Of(h.Holds, func(held fleet.Holding) string { return held.Run.WorkflowID })
		return []string{h.Name, string(h.State), slots(h.Used, h.Slots), gpus(h), dash(h.Version), strings.Join(runs, " ")}
	}
	return []string{m.lines[i]}
}

// ago returns the time from at to the last look.
func (m *Model) ago(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return span(m.found.At.Sub(at)) + " ago"
}

func usage(u *spec.LiveUsage) (cpu, memory, gpu string) {
	if u == nil {
		return "-", "-", "-"
	}
	gpu = "-"
	if u.GPUs > 0 || u.GPUMemoryBytes > 0 {
		gpu = fmt.Sprintf("%.1f %s", u.GPUs, size(u.GPUMemoryBytes))
	}
	return fmt.Sprintf("%.1f", u.CPUs), size(u.RSSBytes), gpu
}

// size formats a number of bytes with at most three digits.
func size(n int64) string {
	f, unit := float64(n)/(1<<20), "MiB"
	if f >= 1000 {
		f, unit = f/(1<<10), "GiB"
	}
	if f < 10 {
		return fmt.Sprintf("%.1f %s", f, unit)
	}
	return fmt.Sprintf("%.0f %s", f, unit)
}

func exit(e *spec.Exit) string {
	switch {
	case e == nil:
		return "-"
	case e.Signal != "":
		return e.Signal + " " + string(e.Cause)
	}
	return strconv.Itoa(e.ExitCode) + " " + string(e.Cause)
}

func progress(p *spec.Progress) string {
	if p == nil {
		return "-"
	}
	text := strconv.FormatFloat(p.Current, 'g', 4, 64)
	if p.Total > 0 {
		text = fmt.Sprintf("%d%%", int(100*min(1, p.Current/p.Total)))
	}
	return ansi.Truncate(clean(strings.TrimSpace(text+" "+p.Message)), 30, "…")
}

func slots(used, all int) string {
	if all == 0 {
		return fmt.Sprintf("%d of any", used)
	}
	return fmt.Sprintf("%d of %d", used, all)
}

func gpus(h fleet.HostStatus) string {
	if len(h.GPUs) == 0 {
		return "-"
	}
	return slots(h.UsedGPUs, len(h.GPUs))
}

// span formats a time span in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(max(0, d).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func dash(s string) string { return cmp.Or(s, "-") }

func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

const helpText = `clusterrun top

  1 2 3         runs, the queue, hosts
  up down j k   a row        pgup pgdn space  a page        g G  the first, the last
  enter         the tasks of a run; the output of a task
  l             the output of all tasks of a run, as it comes
  esc           back; without the filter, if there is one
  /             a filter: rows that contain the text, such as failed, node-7 or worker-1
  s             stop the run, with its stop signal and grace
  K             kill the task, or all tasks of the run
  r             restart the task
  x             save the stacks of the processes
  ctrl+z        to the shell and back by fg
  q             quit; runs continue

s, K, r and x ask before they do it. In output, up holds it and end follows it again.
The same as JSON: list, status RUN, list --pending and host list, with --json.

Any key goes back.`
