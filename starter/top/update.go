package top

import (
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/starter"
)

// Update returns the model after a message, and an action: nil, or one of [Quit], [Suspend],
// [Fetch] and [Action].
func (m Model) Update(message any) (Model, any) {
	switch message := message.(type) {
	case Size:
		m.width, m.height = max(1, message.Width), max(1, message.Height)
		m.scroll()
	case Note:
		m.note = string(message)
	case Found:
		m.take(message)
	case Key:
		return m.key(string(message))
	}
	return m, nil
}

// take stores fetched data, unless the view has changed.
func (m *Model) take(f Found) {
	if f.Subject != m.subject {
		return
	}
	m.loaded = true
	if f.Err != nil {
		m.note = f.Err.Error()
		return
	}
	if f.Subject.Kind == Output {
		m.lines = append(m.lines, f.Lines...)
		if over := len(m.lines) - mostLines; over > 0 {
			m.lines = slices.Clone(m.lines[over:])
			m.cursor, m.top = max(0, m.cursor-over), max(0, m.top-over)
		}
		m.choose("")
		return
	}
	at := m.current()
	if f.Status != nil {
		m.words = f.Status.Doing()
		m.counts = starter.TallyOf(m.words).String()
	}
	m.found = f
	m.choose(at)
}

// current returns the subject of the row at the cursor, or "" if there is no row.
func (m *Model) current() string {
	if m.cursor >= len(m.shown) {
		return ""
	}
	return m.name(m.shown[m.cursor])
}

// run returns the run of the row at the cursor, or "" if the row has none.
func (m *Model) run() (id, execution string) {
	if m.subject.Kind == Tasks || m.subject.Kind == Output {
		return m.subject.Run, m.subject.Execution
	}
	if m.cursor >= len(m.shown) {
		return "", ""
	}
	switch i := m.shown[m.cursor]; m.subject.Kind {
	case Runs:
		return m.found.Runs[i].RunID, m.found.Runs[i].ExecutionID
	case Queue:
		return m.found.Queue[i].Run.WorkflowID, m.found.Queue[i].Run.RunID
	}
	return "", ""
}

// task returns the chosen task, or "" if none is chosen.
func (m *Model) task() string {
	if m.subject.Kind == Tasks {
		return m.current()
	}
	return m.subject.Task
}

// choose applies the filter, and keeps the cursor on the row with the name at.
func (m *Model) choose(at string) {
	m.shown = nil
	filter := strings.ToLower(m.filter)
	for i := range m.size() {
		if filter != "" && !strings.Contains(strings.ToLower(strings.Join(m.cells(i), " ")), filter) {
			continue
		}
		if at != "" && m.name(i) == at {
			m.cursor = len(m.shown)
		}
		m.shown = append(m.shown, i)
	}
	if m.subject.Kind == Output && !m.held {
		m.cursor = len(m.shown)
	}
	m.scroll()
}

// scroll keeps the cursor on a row, and the row on the screen. In output, the cursor is on the
// last line of the screen.
func (m *Model) scroll() {
	rows := m.rows()
	m.cursor = max(0, min(m.cursor, len(m.shown)-1))
	if m.subject.Kind == Output {
		m.cursor = max(m.cursor, min(rows, len(m.shown))-1)
		m.top = 0
	}
	m.top = min(m.top, m.cursor)
	m.top = max(m.top, m.cursor-rows+1, 0)
}

func (m Model) key(key string) (Model, any) {
	if key == "ctrl+c" {
		return m, Quit{}
	}
	switch {
	case m.asked != nil:
		a := *m.asked
		m.asked, m.note = nil, "not done"
		if key == "y" {
			m.note = a.String() + "…"
			return m, a
		}
		return m, nil
	case m.typing:
		return m.typed(key), nil
	case m.help:
		m.help = false
		return m, nil
	}
	m.note = ""
	switch key {
	case "q":
		return m, Quit{}
	case "ctrl+z":
		return m, Suspend{}
	case "?":
		m.help = true
	case "/":
		m.typing = true
	case "esc", "backspace", "left":
		return m.back()
	case "1":
		return m.root(Runs)
	case "2":
		return m.root(Queue)
	case "3":
		return m.root(Hosts)
	case "enter", "right":
		return m.open()
	case "l":
		if run, execution := m.run(); run != "" && m.subject.Kind != Output {
			m.push(Subject{Kind: Output, Run: run, Execution: execution})
			return m, Fetch{}
		}
	case "s", "K", "r", "x":
		m.ask(key)
	default:
		m.move(key)
	}
	return m, nil
}

// move moves the cursor.
func (m *Model) move(key string) {
	switch key {
	case "up", "k":
		m.cursor--
	case "down", "j":
		m.cursor++
	case "pgup":
		m.cursor -= m.rows()
	case "pgdown", "space":
		m.cursor += m.rows()
	case "home", "g":
		m.cursor = 0
	case "end", "G":
		m.cursor = len(m.shown)
	default:
		return
	}
	m.held = m.cursor < len(m.shown)-1
	m.scroll()
}

// typed handles a key for the filter.
func (m Model) typed(key string) Model {
	at := m.current()
	switch key {
	case "enter":
		m.typing = false
		return m
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	case "space":
		m.filter += " "
	default:
		if len([]rune(key)) != 1 {
			return m
		}
		m.filter += key
	}
	m.choose(at)
	return m
}

// back removes the filter, or returns to the view before.
func (m Model) back() (Model, any) {
	if m.filter != "" {
		at := m.current()
		m.filter = ""
		m.choose(at)
		return m, nil
	}
	if len(m.stack) == 0 {
		return m, nil
	}
	m.screen, m.stack = m.stack[len(m.stack)-1], m.stack[:len(m.stack)-1]
	m.scroll()
	return m, Fetch{}
}

// root shows one of the views that do not belong to a run.
func (m Model) root(kind Kind) (Model, any) {
	m.stack = nil
	m.screen = screen{subject: Subject{Kind: kind}}
	return m, Fetch{}
}

// open shows the view of the row at the cursor.
func (m Model) open() (Model, any) {
	s := Subject{Kind: Tasks}
	switch s.Run, s.Execution = m.run(); {
	case s.Run == "" || m.subject.Kind == Output:
		return m, nil
	case m.subject.Kind == Tasks:
		if s.Kind, s.Task = Output, m.task(); s.Task == "" {
			return m, nil
		}
	}
	m.push(s)
	return m, Fetch{}
}

// ask asks the user to confirm an operation.
func (m *Model) ask(key string) {
	a := &Action{Task: m.task()}
	a.Run, a.Execution = m.run()
	switch key {
	case "s":
		a.Verb, a.Task = Stop, ""
	case "K":
		a.Verb = Kill
	case "x":
		a.Verb = Stacks
	case "r":
		a.Verb = Restart
	}
	switch {
	case a.Run == "":
		m.note = "no run is chosen"
	case m.ended():
		m.note = "run " + a.Run + " has ended"
	case a.Task == "" && (a.Verb == Restart || m.subject.Kind == Tasks && a.Verb != Stop):
		m.note = "no task is chosen"
	default:
		m.asked = a
	}
}

// ended reports whether the chosen run has ended. Another run may have its ID by now.
func (m *Model) ended() bool {
	switch {
	case m.subject.Kind == Runs:
		return !m.found.Runs[m.shown[m.cursor]].Open
	case m.found.Status != nil:
		return !m.found.Status.Open
	}
	return false
}

// String describes the action, for example "stop iris".
func (a Action) String() string {
	return strings.TrimSpace(string(a.Verb) + " " + a.Run + " " + a.Task)
}

// question returns the question that the user must confirm.
func (a Action) question() string {
	what := "run " + a.Run
	if a.Task != "" {
		what = a.Task + " of run " + a.Run
	}
	switch a.Verb {
	case Stop:
		return "stop " + what + ", with its stop signal and grace?"
	case Kill:
		return "kill " + what + "?"
	case Restart:
		return "restart " + what + "?"
	}
	return "save the stacks of the processes of " + what + "?"
}

// size returns the number of rows.
func (m *Model) size() int {
	switch m.subject.Kind {
	case Runs:
		return len(m.found.Runs)
	case Tasks:
		if m.found.Status == nil {
			return 0
		}
		return len(m.found.Status.Tasks)
	case Queue:
		return len(m.found.Queue)
	case Hosts:
		return len(m.found.Hosts)
	}
	return len(m.lines)
}

// name returns a name that identifies the run, task or host of a row.
func (m *Model) name(i int) string {
	switch m.subject.Kind {
	case Runs:
		return m.found.Runs[i].RunID + " " + m.found.Runs[i].ExecutionID
	case Tasks:
		return m.found.Status.Tasks[i].Name
	case Queue:
		return m.found.Queue[i].Run.WorkflowID
	case Hosts:
		return m.found.Hosts[i].Name
	}
	return ""
}
