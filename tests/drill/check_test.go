package drill

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// good is a successful run of two tasks.
func good() report {
	exit := func(pid int) *spec.Exit { return &spec.Exit{PID: pid, Cause: spec.CauseCompleted} }
	ledger := func(task string, pid int) page {
		return page{task: task, pid: pid, started: 1, ended: 9, arrivals: []int64{2}, passes: map[int]int64{1: 4}}
	}
	return report{
		run: "r",
		result: spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{
			{Name: "a-0", Exit: exit(1)}, {Name: "b-0", Exit: exit(2)},
		}},
		pages:  []page{ledger("a-0", 1), ledger("b-0", 2)},
		killed: map[int]bool{},
	}
}

// An unknown end is not a finding if clusterrun reports it as unknown.
func TestChecksPass(t *testing.T) {
	lost := good()
	lost.result.Verdict, lost.result.Tasks[0].Exit.Cause = spec.VerdictFailed, spec.CauseHostLost
	lost.pages[0].host, lost.faulty = "host-a", map[string]bool{"host-a": true}
	assert.Empty(t, check(lost), "it ended well when its host was lost")
	lost.result.Tasks[0].Exit.PID = 0
	assert.NotEmpty(t, check(lost), "the host is back in time, and knows the exit")
	lost.givesUp = true
	assert.Empty(t, check(lost))
	refused := report{run: "r", full: true, result: spec.RunResult{Verdict: spec.VerdictFailed, Message: "logs.dir: no space left on device on host a"}}
	assert.Empty(t, check(refused), "the disk was full, and nothing was started")
	refused.full = false
	assert.NotEmpty(t, check(refused))

	raced := good()
	raced.result.Verdict = spec.VerdictFailed
	raced.result.FirstFailure = &spec.Failure{Task: "a-0", Exit: spec.Exit{Cause: spec.CauseOrigin}}
	*raced.result.Tasks[0].Exit = spec.Exit{PID: 1, ExitCode: 3, Cause: spec.CauseOrigin}
	*raced.result.Tasks[1].Exit = spec.Exit{PID: 2, ExitCode: 3, Cause: spec.CauseCollateral}
	raced.pages[0].code, raced.pages[0].ended, raced.pages[1].code = 3, 8, 3
	raced.killed[1] = true
	assert.Empty(t, check(raced), "it was stopped between its last note and its end")
	raced.pages[0].ended, raced.pages[1].ended = 9, 8
	assert.NotEmpty(t, check(raced), "nothing had failed before it ended")
}

// A task that is gone when the chief succeeds has failed.
func TestATaskGoneWhenTheChiefEnds(t *testing.T) {
	r := good()
	r.result.Verdict = spec.VerdictFailed
	r.result.FirstFailure = &spec.Failure{Task: "b-0", Exit: spec.Exit{PID: 2, Cause: spec.CauseOrigin}}
	*r.result.Tasks[1].Exit = spec.Exit{PID: 2, ExitCode: -9, Cause: spec.CauseOrigin}
	r.result.Tasks[0].Type = "chief"
	r.pages[1].ended = 0
	assert.NotEmpty(t, check(r), "nobody killed it")
	r.killed[2] = true
	assert.Empty(t, check(r))
}

// A full disk may truncate only the last line of a process.
func TestTornLines(t *testing.T) {
	read := func(full bool, lines ...string) (wrong string) {
		r := lineReader{full: full, got: map[string]int{}, torn: map[string]bool{}}
		for _, l := range lines {
			if wrong == "" {
				wrong = r.line("w-0", l)
			}
		}
		return wrong
	}
	assert.Empty(t, read(false, "w-0 0 1", "w-0 0 2", "w-0 1 1"))
	assert.Empty(t, read(true, "w-0 0 1", "w-0 0 ", "w-0 1 1"))
	assert.Empty(t, read(true, "w-0 0 1", "w-", "w-0 1 1"))
	assert.Contains(t, read(false, "w-0 0 1", "w-0 0 "), "after line 1")
	assert.Contains(t, read(false, "w-"), `logs prints "w-"`)
	assert.Contains(t, read(true, "w-0 0", "w-0 0 1"), "after a torn line")
	assert.Contains(t, read(true, "w-0 0 1", "w-0 0 3"), "after line 1")
}

// The drill finds everything that it can find.
func TestChecksFail(t *testing.T) {
	assert.Empty(t, check(good()))
	assert.Contains(t, account(good()), "a-0, process 1 of generation 0, on : began 0s, ended 0s with 0", "account")
	for name, c := range map[string]struct {
		spoil func(*report)
		want  string
	}{
		"two processes of a task":   {func(r *report) { r.pages[0].doubles = []string{"task.a-0"} }, "lived at the same time"},
		"a process without an exit": {func(r *report) { r.result.Tasks[0].Exit = nil }, "has no exit"},
		"an exit of another task":   {func(r *report) { r.pages[0].task = "b-0" }, "has an exit of a-0"},
		"two exits of a process":    {func(r *report) { r.result.Tasks[1].Exit.PID = 1 }, "two exits of process 1"},
		"another exit code":         {func(r *report) { r.pages[0].code = 3 }, "ended with 3, and the result says 0"},
		"another cause":             {func(r *report) { r.result.Tasks[0].Exit.Cause = spec.CauseOrigin }, "ended well by itself"},
		"a kill that nobody knows":  {func(r *report) { r.pages[0].ended = 0 }, "it was killed"},
		"a kill of ours as its own": {func(r *report) {
			r.pages[0].ended = 0
			*r.result.Tasks[0].Exit = spec.Exit{PID: 1, ExitCode: -9, Cause: spec.CauseOrigin}
		}, "we killed it"},
		"lost without a fault of its host": {func(r *report) {
			r.result.Tasks[0].Exit.Cause = spec.CauseHostLost
			r.pages[0].host, r.faulty = "host-a", map[string]bool{"host-b": true}
		}, "lost with host-a, which had no fault"},
		"stopped without a reason": {func(r *report) {
			r.pages[0].asked, r.pages[0].code = true, exitAsked
			*r.result.Tasks[0].Exit = spec.Exit{PID: 1, ExitCode: exitAsked, Cause: spec.CauseCollateral}
		}, "nothing failed in its generation"},
		"succeeded in spite of a death": {func(r *report) { r.pages[0].ended = 0 }, "not all of its tasks ended well"},
		"failed in spite of success":    {func(r *report) { r.result.Verdict = spec.VerdictFailed }, "all of its tasks ended well"},
		"cancelled by nobody":           {func(r *report) { r.result.Verdict = spec.VerdictCancelled }, "nobody asked"},
		"passed too early":              {func(r *report) { r.pages[1].arrivals[0], r.pages[1].passes[1] = 5, 6 }, "before b-0 had arrived"},
		"what a program could not do":   {func(r *report) { r.pages[0].wrong = []string{"no host"} }, "no host"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.spoil(&r)
			assert.Contains(t, strings.Join(check(r), "\n"), c.want)
		})
	}
}
