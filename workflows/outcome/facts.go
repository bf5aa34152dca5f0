package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// maxAlike limits facts of one kind: hosts that do not answer, slow tasks.
const maxAlike = 8

// Facts returns what is true about a run, most urgent first.
func Facts(s *Status, now time.Time) []Fact {
	f := &facts{s: s, now: now}
	if !s.Open {
		f.ended()
		return f.list
	}
	f.failed()
	f.silence()
	f.missing()
	f.unsupervised()
	f.state()
	for _, w := range s.Waiting {
		still := w
		still.Until, still.Fetching = time.Time{}, nil
		f.list = append(f.list, Fact{FactWaiting, Waits, "waiting for " + w.Text(now), nil, still.Text(now)})
	}
	f.preemptions(Waits)
	if n := s.Notice; n != nil && s.Result == nil {
		f.add(FactNotice, Warning, "notice: "+StopNotice(*n, now), n.String())
	}
	if st := s.Stopping; st != nil && s.Result == nil {
		f.add(FactStopping, Warning, "stopping together: "+StoppingLine(*st, now), st.String())
	}
	f.restarts()
	f.slow()
	f.remains()
	f.progress()
	if e := s.Elastic; e != nil {
		f.add(FactElastic, Active, "elastic: "+e.String(), "")
	}
	f.rules()
	slices.SortStableFunc(f.list, func(a, b Fact) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	return f.list
}

// facts collects a status's facts.
type facts struct {
	s    *Status
	now  time.Time
	list []Fact
}

func (f *facts) add(kind Kind, severity Severity, text, key string, items ...string) {
	f.list = append(f.list, Fact{kind, severity, text, items, key})
}

// ended adds the facts about a run that has ended.
func (f *facts) ended() {
	s, r := f.s, f.s.Result
	severity := Bad
	switch s.Verdict {
	case spec.VerdictSucceeded:
		severity = Good
	case spec.VerdictCancelled, spec.VerdictSkipped, spec.VerdictPreempted:
		severity = Note
	}
	text := cmp.Or(s.Message, "the run has ended without a result")
	if r != nil {
		text = Headline(s.RunID, r, func(verdict string) string { return verdict })
	}
	f.add(FactDone, severity, text, string(s.Verdict)+s.Ending)
	if s.IsTerminated() {
		f.add(FactRule, Note, fmt.Sprintf("its host workers stop the processes it left, but how they end is not recorded here; `clusterrun rm %s` removes what is left of the run", shellword.Of(s.RunID)), "")
	}
	if s.Verdict == spec.VerdictSucceeded { // otherwise the lines of the report contain them
		f.restarts()
		f.preemptions(Note)
	}
	f.slow()
	f.remains()
}

// preemptions adds how often the run was preempted. Times are shown in the time zone of now, which
// is the reader's.
func (f *facts) preemptions(severity Severity) {
	if line := Preempted(f.s.Preemptions, f.s.PendingSince, f.now.Location()); line != "" {
		f.add(FactPreempted, severity, line, "")
	}
}

// state adds the run's state, with the number of tasks in each state.
func (f *facts) state() {
	s, severity := f.s, Active
	if s.Unanswered {
		f.add(FactUnanswered, Warning, "the run is open, but "+s.Absence()+s.remedy(), "")
		return
	}
	switch s.State {
	case spec.RunPlacing:
		severity = Waits
	case spec.RunRestarting, spec.RunStopping:
		severity = Warning
	}
	text := s.Word()
	switch counts := TallyOf(s.Doing()).String(); {
	case s.Sweep != nil && len(s.Waiting) == 0:
		text += ": " + s.Sweep.Counts()
	case counts != "":
		text += ": " + counts
	}
	f.add(FactState, severity, text, "")
}

// failed adds the failed tasks.
func (f *facts) failed() {
	var items []string
	for i, word := range f.s.Doing() {
		if e := f.s.Tasks[i].Exit; word == DoingFailed {
			how := Short(*e)
			if e.Cause != spec.CauseOrigin && e.Cause != spec.CauseHostLost {
				how += ", " + e.Cause.Words()
			}
			items = append(items, fmt.Sprintf("%s (%s)", f.s.Tasks[i].Name, how))
		}
	}
	if len(items) > 0 {
		f.add(FactFailed, Bad, units.Count(len(items), "task has failed", "tasks have failed"), "", items...)
	}
}

// silence adds the tasks that do not show signs of work, and what their stacks reveal.
func (f *facts) silence() {
	var names []string
	var least time.Duration
	work := 0
	for _, t := range f.s.Tasks {
		switch d := t.Silence(); {
		case d > 0:
			if names = append(names, t.Name); len(names) == 1 || d < least {
				least = d
			}
		case t.Usage != nil:
			work++
		}
	}
	switch found := f.s.Stacks; {
	case found == nil:
	case len(names) > 0:
		f.add(FactHung, Warning, "the run hangs: "+found.Sentence, found.Sentence)
	case found.Sentence != "":
		f.add(FactStacks, Note, "when last checked, "+found.Sentence, "")
	}
	if len(names) > 0 {
		text := silence(len(names)) + " for " + span(least) + " (" + spec.SilenceText(f.s.SilenceIgnoresCPU) + ")"
		if work > 0 {
			text += fmt.Sprintf("; %s still working", units.Count(work, "other is", "others are"))
		}
		f.list = append(f.list, Fact{FactSilent, Warning, text, names, ""})
	}
}

// silence returns a sentence saying how many tasks are silent.
func silence(tasks int) string { return units.Count(tasks, "task is silent", "tasks are silent") }

// missing adds the hosts that do not answer, and how the run will react to them.
func (f *facts) missing() {
	for i, h := range f.s.Silent {
		if i == maxAlike {
			f.add(FactMissing, Warning, "no heartbeat from "+units.Count(len(f.s.Silent)-i, "host more", "hosts more"), "more")
			break
		}
		f.add(FactMissing, Warning, h.Text(f.now)+f.fate(h), h.Host)
	}
}

// unsupervised adds the hosts that run tasks although their supervisor does not answer.
func (f *facts) unsupervised() {
	var hosts []string
	for _, t := range f.s.Tasks {
		if t.Unsupervised && t.Exit == nil && !slices.Contains(hosts, t.Host) {
			hosts = append(hosts, t.Host)
		}
	}
	if len(hosts) > 0 {
		f.add(FactMissing, Warning, "the supervisor does not answer, so ended processes go unnoticed (is it stopped by a signal?), on host "+shorten.List(hosts, maxAlike), "supervisor")
	}
}

// Text describes how long the host has been silent.
func (h SilentHost) Text(now time.Time) string {
	return fmt.Sprintf("no heartbeat from host %s for %s", h.Host, now.Sub(h.Heard).Round(time.Second))
}

// fate describes how the run will react to a silent host, if known.
func (f *facts) fate(h SilentHost) string {
	switch left := h.GivenUp.Sub(f.now).Round(time.Second); {
	case h.GivenUp.IsZero() && f.s.OnDisconnect == "":
		return ""
	case h.GivenUp.IsZero():
		return "; the run waits for it (on_disconnect: keep)"
	case left <= 0:
		return "; it is being declared lost"
	default:
		return "; it will be declared lost in " + left.String()
	}
}

// restarts adds the tasks that are waiting for a restart, and those that have been restarted.
func (f *facts) restarts() {
	var waiting, again []string
	for i, word := range f.s.Doing() {
		t := f.s.Tasks[i]
		if word == DoingRestart {
			waiting = append(waiting, t.Name)
		}
		if t.Restarts > f.s.Generation {
			again = append(again, fmt.Sprintf("%s (%s)", t.Name, units.Count(t.Restarts-f.s.Generation, "time", "times")))
		}
	}
	if len(waiting) > 0 {
		f.add(FactRestarting, Warning, units.Count(len(waiting), "task waits", "tasks wait")+" to be started again", "", waiting...)
	}
	if len(again) > 0 {
		f.add(FactRestarted, Active, units.Count(len(again), "task was", "tasks were")+" started again", "", again...)
	}
	for _, r := range f.s.GroupRestarts {
		f.add(FactRestarted, Active, Restart(r), fmt.Sprint("group ", r.Generation))
	}
}

// slow adds the slow tasks and hosts.
func (f *facts) slow() {
	for i, s := range f.s.Slow {
		if i == maxAlike {
			f.add(FactSlow, Warning, fmt.Sprintf("slow: %d more", len(f.s.Slow)-i), "more")
			break
		}
		f.add(FactSlow, Warning, "slow: "+s.String(), cmp.Or(s.Task, s.Host))
	}
	if f.s.TooFewSteps {
		f.add(FactRule, Note, "too few steps were reported to compare the tasks", "")
	}
}

// remains adds what processes left behind or lost.
func (f *facts) remains() {
	ends := make([]end, len(f.s.Tasks))
	for i, t := range f.s.Tasks {
		ends[i] = end{t.Name, t.Exit}
	}
	if line := dropped(ends); line != "" {
		f.add(FactDropped, Warning, line, "dropped")
	}
	for _, e := range ends {
		if e.exit != nil && e.exit.OOMKills > 0 && f.s.Result == nil {
			f.add(FactMemory, Warning, e.task+": "+e.exit.OOMText(), e.task)
		}
		if e.exit != nil && e.exit.LeftBehind > 0 {
			f.add(FactLeft, Note, fmt.Sprintf("%s exited and left %s running, killed after the grace period (stop.grace)", e.task, units.Count(e.exit.LeftBehind, "process", "processes")), e.task)
		}
	}
}

// end describes how a task's process exited. exit is nil if the process is running.
type end struct {
	task string
	exit *spec.Exit
}

// dropped describes the output that is missing from the files. It returns "" if none is.
func dropped(ends []end) string {
	var bytes int64
	var of []string
	for _, e := range ends {
		if e.exit != nil && e.exit.DroppedBytes > 0 {
			bytes += e.exit.DroppedBytes
			of = append(of, e.task)
		}
	}
	if len(of) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the output of %s were dropped (logs.on_full), or could not be written to its file", units.Bytes(bytes), shorten.List(of, maxAlike))
}

// Dropped describes the output of a finished run that is missing from the files. It returns "" if
// none is.
func Dropped(r *spec.RunResult) string {
	ends := make([]end, len(r.Tasks))
	for i, t := range r.Tasks {
		ends[i] = end{t.Name, t.Exit}
	}
	return dropped(ends)
}

// rules adds rules that explain the run's behavior.
func (f *facts) rules() {
	s := f.s
	if a := s.Archive; a != nil {
		f.add(FactRule, Note, fmt.Sprintf("it ships %s in %s, SHA-256 %s", units.Bytes(int64(a.Size)), units.Count(a.Files, "file", "files"), a.Digest), "")
	}
	if s.OnDisconnect != "" && s.OnDisconnect != spec.OnDisconnectKeep {
		alone, outage, two := strings.Cut(string(s.OnDisconnect), ",")
		text := fmt.Sprintf("a host that cannot reach the server for %s stops its processes (on_disconnect)", alone)
		if two {
			text += fmt.Sprintf("; after %s if it reaches its witnesses among the other hosts, but none of them reaches the server", outage)
		}
		f.add(FactRule, Note, text, "")
	}
	var learnt time.Duration
	var cpus float64
	var memory int64
	for _, t := range s.Tasks {
		if u := t.Usage; u != nil {
			learnt = max(learnt, time.Duration(u.SilentAfter)*time.Second)
			cpus, memory = cpus+u.CPUs, memory+u.RSSBytes
		}
	}
	if learnt > 0 {
		f.add(FactRule, Note, "silence: auto, now "+span(learnt), "silence")
	}
	if at := s.LastOutput(); at != nil {
		f.add(FactUse, Note, "last output "+f.now.Sub(*at).Round(time.Second).String()+" ago", "output")
	}
	if memory > 0 {
		f.add(FactUse, Note, fmt.Sprintf("in use: %.1f processors, %s", cpus, units.Bytes(memory)), "usage")
	}
}
