package drill

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// report contains clusterrun's report about an ended run, and what the programs wrote.
type report struct {
	run    string
	result spec.RunResult
	pages  []page
	// stopped reports whether the drill stopped the run, by a request or by killing its launcher.
	stopped bool
	// faulty lists the hosts that may have lost processes during the run.
	faulty map[string]bool
	// killed are the processes killed by the drill.
	killed map[int]bool
	// full reports whether a host's disk was full during the run.
	full bool
	// givesUp reports whether the run gave up hosts before they were back, so that it misses the
	// exits that only they know.
	givesUp bool
	// notices counts the notices that a run got, and sick are the hosts with a failed check.
	notices int
	sick    []span
}

// check returns a run's faults.
func check(r report) []string {
	var found []string
	wrong := func(format string, args ...any) {
		found = append(found, r.run+": "+fmt.Sprintf(format, args...))
	}
	exits := map[int]spec.Exit{} // by pid
	owner := map[int]string{}
	lost := map[string]bool{} // tasks lost with an unknown exit
	for _, t := range r.result.Tasks {
		all := t.Exits
		if len(all) == 0 && t.Exit != nil {
			all = []spec.Exit{*t.Exit}
		}
		for _, e := range all {
			if e.PID == 0 {
				lost[t.Name] = lost[t.Name] || e.Cause == spec.CauseHostLost
				continue
			}
			if _, twice := exits[e.PID]; twice {
				wrong("two exits of process %d", e.PID)
			}
			exits[e.PID], owner[e.PID] = e, t.Name
		}
	}
	for _, p := range r.pages {
		for _, d := range p.doubles {
			wrong("process %d of %s, generation %d, lived at the same time as %s", p.pid, p.task, p.generation, d)
		}
		for _, w := range p.wrong {
			wrong("process %d of %s: %s", p.pid, p.task, w)
		}
		e, ok := exits[p.pid]
		if !ok && r.givesUp && r.faulty[p.host] && lost[p.task] {
			continue
		}
		if !ok {
			wrong("process %d of %s (number %d) has no exit in the result", p.pid, p.task, p.number)
			continue
		}
		if owner[p.pid] != p.task {
			wrong("process %d of %s has an exit of %s", p.pid, p.task, owner[p.pid])
		}
		for _, w := range checkExit(p, e, r) {
			wrong("process %d of %s: %s", p.pid, p.task, w)
		}
	}
	for _, w := range checkVerdict(r) {
		wrong("%s", w)
	}
	for _, w := range slices.Concat(checkBarriers(r.pages), checkPreempted(r), checkSick(r.pages, r.sick)) {
		wrong("%s", w)
	}
	return found
}

// checkExit compares a process's exit with its page.
func checkExit(p page, e spec.Exit, r report) []string {
	var found []string
	wrong := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	lost := e.Cause == spec.CauseHostLost
	switch {
	case p.ended != 0 && !lost && e.ExitCode != p.code:
		wrong("it ended with %d, and the result says %d (%s)", p.code, e.ExitCode, e.Cause)
	case p.ended != 0 && !p.asked && p.code == 0 && e.Cause == spec.CauseOperator && r.result.Verdict == spec.VerdictCancelled:
		// The run was stopped between the process's last note and its exit.
	case p.ended != 0 && !p.asked && p.code == 0 && !lost && e.Cause != spec.CauseCompleted:
		wrong("it ended well by itself, and the result says %s", e.Cause)
	case p.ended != 0 && !p.asked && e.Cause == spec.CauseCollateral && (r.hadFailed(p) || p.generation < r.result.Generation):
		// It was stopped between its last note and its exit.
	case p.ended != 0 && !p.asked && p.code != 0 && e.Cause == spec.CausePreempted && r.result.Preemptions > 0:
		// It had notice.
	case p.ended != 0 && !p.asked && p.code != 0 && !lost && e.Cause != spec.CauseOrigin:
		wrong("it ended with %d by itself, and the result says %s", p.code, e.Cause)
	case p.ended == 0 && (e.Cause == spec.CauseCompleted || e.ExitCode >= 0 && !lost):
		wrong("it was killed, and the result says exit code %d (%s)", e.ExitCode, e.Cause)
	case p.ended == 0 && e.Cause == spec.CauseOrigin && !r.killed[p.pid]:
		wrong("we killed it, and the result says that it ended by itself")
	}
	// A process that was killed before its first note has no host.
	if lost && !r.faulty[p.host] && !r.stopped && (p.host != "" || len(r.faulty) == 0) {
		wrong("it was lost with %s, which had no fault", p.host)
	}
	// If a process was asked to stop, clusterrun asked it, and the result must say so.
	if p.asked && (e.Cause == spec.CauseCompleted || e.Cause == spec.CauseOrigin) {
		wrong("we asked it to end, and the result says %s", e.Cause)
	}
	if e.Cause == spec.CauseCollateral && !r.stopped && r.result.Verdict == spec.VerdictSucceeded &&
		p.generation == r.result.Generation && !hasChief(r.result) {
		wrong("it was stopped because of another, and nothing failed in its generation")
	}
	return found
}

// hadFailed reports whether another process in the generation had already failed when p exited, so
// that the run was about to stop p.
func (r report) hadFailed(p page) bool {
	return slices.ContainsFunc(r.pages, func(q page) bool {
		early := q.ended == 0 && q.started < p.ended || q.ended != 0 && q.code != 0 && q.ended < p.ended
		return q.pid != p.pid && q.generation == p.generation && early
	})
}

func hasChief(r spec.RunResult) bool {
	return slices.ContainsFunc(r.Tasks, func(t spec.TaskResult) bool { return t.Type == "chief" })
}

// refused reports whether a host with a full disk refused the run.
func refused(r report) bool {
	return r.full && r.result.Verdict == spec.VerdictFailed && strings.Contains(r.result.Message, syscall.ENOSPC.Error())
}

// checkVerdict compares the verdict with each task's last exit.
func checkVerdict(r report) []string {
	last := map[string]page{}
	for _, p := range r.pages {
		if q, ok := last[p.task]; !ok || p.started > q.started {
			last[p.task] = p
		}
	}
	if refused(r) {
		return nil
	}
	// A run with a chief finishes when the chief exits.
	counts := func(t spec.TaskResult) bool { return !hasChief(r.result) || t.Type == "chief" }
	good := true
	for _, t := range r.result.Tasks {
		// A missing task cannot have exited.
		p := last[t.Name]
		// A process's last steps before its host was lost are unknown.
		lost := t.Exit != nil && t.Exit.Cause == spec.CauseHostLost && r.faulty[p.host]
		if counts(t) && (p.ended == 0 || p.code != 0 || lost) {
			good = false
		}
	}
	switch r.result.Verdict {
	case spec.VerdictSucceeded:
		if !good {
			return []string{"it succeeded, and not all of its tasks ended well"}
		}
	case spec.VerdictCancelled:
		if !r.stopped {
			return []string{"it was cancelled, and nobody asked for that: " + r.result.Message}
		}
	case spec.VerdictFailed:
		f := r.result.FirstFailure
		// A task that was lost or killed during the chief's grace, and did not restart, has also
		// failed.
		late := f != nil && hasChief(r.result) && (f.Cause == spec.CauseHostLost || r.killed[f.PID])
		if good && !r.stopped && !late {
			return []string{"it failed, and all of its tasks ended well: " + r.result.Message}
		}
		if !r.mayFail() && !r.stopped {
			return []string{"it failed, and no fault was in its way: " + r.result.Message}
		}
		if f == nil {
			if len(r.faulty) == 0 {
				return []string{"it failed, and nothing did: " + r.result.Message}
			}
			return nil
		}
		if f.Cause != spec.CauseOrigin && f.Cause != spec.CauseHostLost {
			return []string{fmt.Sprintf("its root cause is %s, whose cause is %s", f.Task, f.Cause)}
		}
	default:
		return []string{fmt.Sprintf("its verdict is %s: %s", r.result.Verdict, r.result.Message)}
	}
	return nil
}

// mayFail reports whether the drill's faults explain a failed run, because it lost a host, a disk
// was full, or the drill killed one of its processes.
func (r report) mayFail() bool {
	return len(r.faulty) > 0 || r.full || slices.ContainsFunc(r.pages, func(p page) bool { return r.killed[p.pid] })
}

// account describes a run with faults: each process's notes, and the result.
func account(r report) string {
	var all strings.Builder
	fmt.Fprintf(&all, "%s: its result: %s: %s", r.run, r.result.Verdict, r.result.Message)
	exits := exitsOf(r.result)
	var first int64
	for _, p := range r.pages {
		if first == 0 || p.started < first {
			first = p.started
		}
	}
	for _, p := range r.pages {
		since := func(at int64) string {
			if at == 0 {
				return "never"
			}
			return time.Duration(at - first).Round(time.Millisecond).String()
		}
		e := exits[p.pid]
		fmt.Fprintf(&all, "\n    %s, process %d of generation %d, on %s: began %s, ended %s with %d, asked: %t, killed: %t, broken: %q, passes: %d; exit: %s %d %s %q",
			p.task, p.pid, p.generation, p.host, since(p.started), since(p.ended), p.code, p.asked, r.killed[p.pid], p.broken, len(p.passes), e.Cause, e.ExitCode, e.Ended.Format("15:04:05.000"), e.Message)
	}
	return all.String()
}

// exitsOf returns a run's exits by process.
func exitsOf(r spec.RunResult) map[int]spec.Exit {
	exits := map[int]spec.Exit{}
	for _, t := range r.Tasks {
		for _, e := range append(slices.Clone(t.Exits), *cmp.Or(t.Exit, &spec.Exit{})) {
			exits[e.PID] = e
		}
	}
	return exits
}

// checkBarriers checks that no task passed a round before all arrived: in each generation, the
// latest final arrival precedes the earliest passing.
func checkBarriers(pages []page) []string {
	type round struct{ generation, number int }
	first := map[round]int64{}              // earliest passing
	arrived := map[round]map[string]int64{} // each task's arrival
	tasks := map[int]map[string]bool{}
	for _, p := range pages {
		if len(p.arrivals) == 0 {
			continue
		}
		if tasks[p.generation] == nil {
			tasks[p.generation] = map[string]bool{}
		}
		tasks[p.generation][p.task] = true
		for number, at := range p.passes {
			k := round{p.generation, number}
			if old, ok := first[k]; !ok || at < old {
				first[k] = at
			}
			if arrived[k] == nil {
				arrived[k] = map[string]int64{}
			}
			// The task passed the barrier with the last arrival before this time.
			for _, a := range p.arrivals {
				if a < at {
					arrived[k][p.task] = max(arrived[k][p.task], a)
				}
			}
		}
	}
	var found []string
	for k, at := range first {
		for _, task := range slices.Sorted(maps.Keys(arrived[k])) {
			if a := arrived[k][task]; a > at {
				found = append(found, fmt.Sprintf("round %d of generation %d was passed %d ns before %s had arrived", k.number, k.generation, a-at, task))
			}
		}
	}
	return found
}
