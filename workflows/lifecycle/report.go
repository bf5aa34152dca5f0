package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxWords, in bytes, and maxWordLines bound what is quoted of a program's own words.
	maxWords     = 2048
	maxWordLines = 12
	// maxLogs bounds the tasks whose logs are named after a timeout.
	maxLogs = 4
	// maxOthers bounds the failures beside the root cause that get a line each.
	maxOthers = 4
)

// message returns the report of the run: what happened, in the words of TensorFlow and
// torch; the root cause with all that torch's report says of it, including the program's
// last words; and what became of the other tasks. Nobody should have to read three logs
// to understand a failed run. It is empty if the run succeeded.
func (m *Machine) message(j judgement, e Released, invalid []string) string {
	var w writer
	switch {
	case m.decided == byPlacement:
		w.line("%s", m.reason)
		m.placedBefore(&w, e)
	case j.verdict == spec.VerdictTimedOut && m.stragglersFail():
		m.stragglers(&w)
		m.stopReason(&w)
		m.files(&w, m.together.stragglers)
	case j.verdict == spec.VerdictTimedOut:
		w.line("%s", spec.TimeoutText(m.spec.Timeout.Std()))
		m.outOfTime(&w, j)
	case j.verdict == spec.VerdictFailed && m.decided == byMaxRunTime && j.report == nil:
		w.line("%s", spec.MaxRunTimeText(m.spec.MaxRunTime.Std()))
		m.outOfTime(&w, j)
	case j.verdict == spec.VerdictFailed:
		if j.asked != nil {
			m.operatorsError(&w, j)
		} else {
			m.rootCause(&w, j)
		}
		m.others(&w, j)
		if m.stragglersFail() {
			m.stragglers(&w)
			m.files(&w, m.together.stragglers)
		}
	case j.verdict == spec.VerdictCancelled:
		m.cancelled(&w, j)
	}
	m.traces(&w, j)
	m.unkillable(&w, j)
	if j.verdict != spec.VerdictSucceeded {
		m.groupRestarts(&w)
	}
	for _, problem := range e.Problems {
		w.line("Not released: %s", problem)
	}
	if len(invalid) > 0 {
		w.line("What they returned is not JSON and was left out: %s.", list(invalid))
	}
	return w.String()
}

func (m *Machine) rootCause(w *writer, j judgement) {
	f := *j.root
	name := f.task.Name()
	if f.request != nil {
		m.requestedCause(w, j)
		return
	}
	if f.held || m.foundSilence(&f) {
		m.silenceCause(w, j)
		return
	}
	switch {
	case f.exit.Cause == spec.CauseHostLost:
		w.line("%s", f.lostText())
	case f.reported():
		// The words come first: they are what TensorFlow raises.
		w.line("%s reported an error: %s", name, firstLine(f.exit.Message))
	case f.stopped():
		w.line("%s printed an error and was stopped: %s", name, f.exit.Printed)
	case f.exit.BadResult():
		w.line("%s", firstLine(spec.UnexpectedExitText(name, f.exit)))
	default:
		w.line("%s", spec.UnexpectedExitText(name, f.exit))
	}
	w.line("Root cause: %s %s%s%s.", j.who(f), howEnded(f), m.afterRestarts(f), f.at())
	m.firstError(w, j)
	w.quote(f.exit.Message, f.reported() || f.exit.BadResult())
	w.path("Error file", f.exit.ErrorFile)
	w.path("Logs", f.exit.LogDir)
	if j.report == nil || j.report.request == nil {
		m.stopReason(w)
	}
	if r := j.report; r != nil && r.task != f.task {
		asked := ""
		if r.request != nil {
			asked = ", which asked all tasks to stop"
		}
		w.line("The first program to report an error was %s%s: %s", j.place(r.task), asked, firstLine(r.exit.Message))
		w.quote(r.exit.Message, true)
		w.path("Error file", r.exit.ErrorFile)
		others := j.others()
		if slices.ContainsFunc(others[min(len(others), maxOthers):], func(f failure) bool { return f.task == r.task }) {
			w.path("Logs", r.exit.LogDir) // the list below does not name it
		}
	}
}

// afterRestarts returns how many restarts came before the process that failed, as part
// of a sentence.
func (m *Machine) afterRestarts(f failure) string {
	switch n := f.exit.Restart - f.task.first; {
	case n > 0:
		return ", after " + plural.Of(n, "restart", "restarts") + allAllowed(m.usedUp(f))
	case m.group.generation > 0 && f.exit.Restart >= m.group.first:
		most := m.spec.MaxRestarts
		return ", after " + plural.Of(m.group.generation, "restart", "restarts") + " of the group" + allAllowed(most != nil && m.group.counted >= *most)
	}
	return ""
}

func allAllowed(usedUp bool) string {
	if usedUp {
		return ", all that max_restarts allows"
	}
	return ""
}

// placedBefore writes why the group had to be placed again.
func (m *Machine) placedBefore(w *writer, e Released) {
	if m.group.generation == 0 {
		return
	}
	before := m.group.before
	if before == nil {
		w.line("This was to be restart %d of the group.", m.group.generation)
		return
	}
	f := *before
	f.host = e.Hosts[f.task.Name()]
	w.line("This was to be restart %d of the group: before, %s %s%s.", m.group.generation, judgement{hosts: e.Hosts}.who(f), howEnded(f), f.at())
	w.quote(f.exit.Message, false)
	w.path("Logs", f.exit.LogDir)
}

// othersFailed lists the failures beside the root cause, the first of them in detail.
func (m *Machine) othersFailed(w *writer, j judgement) {
	others := j.others()
	if j.root != nil && (j.root.held || m.foundSilence(j.root)) {
		others = slices.DeleteFunc(others, func(f failure) bool { return f.exit.Cause == spec.CauseSilence })
	}
	if len(others) == 0 {
		return
	}
	told, rest := others[:min(len(others), maxOthers)], others[min(len(others), maxOthers):]
	if j.asked != nil {
		w.line("%s after that:", plural.Of(len(others), "task failed", "tasks failed"))
	} else if slices.ContainsFunc(others, func(f failure) bool { return !m.final(f) }) {
		w.line("%s:", plural.Of(len(others), "other failed", "others failed"))
	} else {
		w.line("%s after it:", plural.Of(len(others), "other failed", "others failed"))
	}
	for _, f := range told {
		how := short(f.exit)
		if f.stopped() {
			how = "reported an error and was stopped (" + how + ")"
		}
		line := fmt.Sprintf("    %s: %s", j.who(f), how)
		if a, b := j.root.instant(), f.instant(); f.host != "" && f.host == j.root.host && a > 0 && b > a && j.asked == nil {
			line += ", " + span(b-a) + " later"
		}
		if !m.final(f) {
			line += ", and was to be restarted"
		}
		if f.exit.LogDir != "" {
			line += ", logs: " + f.exit.LogDir
		}
		w.line("%s", line)
	}
	if len(rest) > 0 {
		names := make([]string, len(rest))
		for i, f := range rest {
			names[i] = fmt.Sprintf("%s (%s)", f.task.Name(), short(f.exit))
		}
		w.line("    and %d more: %s", len(rest), list(names))
	}
}

// others returns the failures beside the root cause.
func (j judgement) others() []failure {
	if j.asked != nil {
		return j.failures
	}
	return slices.DeleteFunc(slices.Clone(j.failures), func(f failure) bool { return f.task == j.root.task })
}

// others writes what happened besides the root cause, with counts and names.
func (m *Machine) others(w *writer, j judgement) {
	m.othersFailed(w, j)
	why := "because of it"
	switch m.decided {
	case byChief:
		why = "after the chief's end"
	case byTimeout:
		why = "when the timeout passed"
	case byMaxRunTime:
		why = "when max_run_time passed"
	case byCancel:
		why = "when the run was cancelled" + m.because()
	case byTogether:
		why = "while the tasks were stopping together"
		if len(m.together.stragglers) > 0 {
			why = "when their time to stop was over"
		}
	}
	if m.stragglersFail() {
		// The tasks that were stopped are named as stragglers.
	} else if stopped := m.stoppedTasks(j); len(stopped) > 0 {
		w.line("%s stopped %s: %s.", plural.Of(len(stopped), "was", "were"), why, list(stopped))
	} else if m.decided == byCancel {
		w.line("Then the run was cancelled%s.", m.because())
	}
	m.lost(w, j)
}

// outOfTime writes which tasks were not done when a limit passed.
func (m *Machine) outOfTime(w *writer, j judgement) {
	var names, late []string
	for _, t := range m.tasks {
		if t.absent || t.ok() || j.failed(t) || t.endedBy(spec.CauseOperator) {
			continue
		}
		names, late = append(names, j.place(t)), append(late, t.Name())
	}
	switch {
	case m.nothingLaunched() && m.group.generation > 0:
		w.line("It passed while the group was being started again.")
	case m.nothingLaunched():
		w.line("The limit is 0, so nothing was started.")
	case len(names) > 0:
		w.line("%s not done by then: %s.", plural.Of(len(names), "was", "were"), list(names))
		m.files(w, late)
	}
	if j.root == nil {
		return
	}
	w.line("Before that, %s %s.", j.place(j.root.task), howEnded(*j.root))
	w.quote(j.root.exit.Message, false)
	w.path("Logs", j.root.exit.LogDir)
	if n := len(j.failures) - 1; n > 0 {
		w.line("%s after it.", plural.Of(n, "other failed", "others failed"))
	}
}

// files writes what tasks were doing that were not done, and names the files with their stacks
// and logs. If it is known which tasks held the others up, or differ, only theirs are named.
func (m *Machine) files(w *writer, late []string) {
	if m.findings != nil {
		for line := range strings.SplitSeq(m.findings.String(), "\n") {
			w.line("%s", line)
		}
		late = m.telling()
	}
	var files [][2]string // what it is, and its path
	for _, name := range late {
		switch t, stacks := m.named[name], m.stacks[name]; {
		case stacks != "": // beside the logs
			files = append(files, [2]string{"Stacks of " + name, stacks})
		case t.exit != nil:
			files = append(files, [2]string{"Logs of " + name, t.exit.LogDir})
		}
	}
	for _, f := range files[:min(len(files), maxLogs)] {
		w.path(f[0], f[1])
	}
}

func (m *Machine) cancelled(w *writer, j judgement) {
	reason := m.reason
	if m.decided != byCancel {
		reason = m.unfinished()
	}
	if reason = shorten.Text(reason, maxWords); reason == "" {
		w.line("The run was cancelled.")
	} else {
		w.line("The run was cancelled: %s.", strings.TrimSuffix(reason, "."))
	}
	if stopped := m.stoppedTasks(j); len(stopped) > 0 {
		w.line("%s stopped: %s.", plural.Of(len(stopped), "was", "were"), list(stopped))
	}
	m.lost(w, j)
}

// because returns the reason of a cancellation, in brackets.
func (m *Machine) because() string {
	if m.reason == "" {
		return ""
	}
	return " (" + firstLine(m.reason) + ")"
}

// lost names the tasks that were lost with their hosts while they were being stopped. By
// the rules this is not the root cause, but a reader may know better: a host is given up
// only after minutes, when its peers have long failed because of its silence.
func (m *Machine) lost(w *writer, j judgement) {
	var names []string
	for _, t := range m.tasks {
		if t.endedBy(spec.CauseHostLost) && !j.failed(t) {
			names = append(names, j.place(t))
		}
	}
	if len(names) > 0 {
		w.line("%s lost with the host meanwhile: %s.", plural.Of(len(names), "was", "were"), list(names))
	}
}

// unkillable names processes that outlived SIGKILL. They still hold their resources, and
// only the owner of the machine can help.
func (m *Machine) unkillable(w *writer, j judgement) {
	var names []string
	for _, t := range m.tasks {
		if t.exit != nil && t.exit.Unkillable {
			names = append(names, fmt.Sprintf("%s (pid %d)", j.place(t), t.exit.PID))
		}
	}
	if len(names) > 0 {
		w.line("Still there a while after SIGKILL, and given up: %s.", list(names))
	}
}

// stoppedTasks returns the tasks that were stopped and had not failed before.
func (m *Machine) stoppedTasks(j judgement) []string {
	var names []string
	for _, t := range m.tasks {
		if !m.failed(t) && !j.shows(t) && t.stopped != "" && (t.exit == nil || t.endedBy(t.stopped) || t.endedBy(spec.CauseOperator)) {
			names = append(names, t.Name())
		}
	}
	return names
}

// shows reports whether the error that the task printed, or its stack, makes it the root cause.
func (j judgement) shows(t *task) bool {
	return j.root != nil && (j.root.shown || j.root.held) && j.root.task == t
}

func (m *Machine) nothingLaunched() bool {
	for _, t := range m.tasks {
		if t.launch >= 0 {
			return false
		}
	}
	return true
}

func (j judgement) failed(t *task) bool {
	for i := range j.failures {
		if j.failures[i].task == t {
			return true
		}
	}
	return false
}
