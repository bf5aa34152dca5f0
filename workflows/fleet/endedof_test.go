package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestEndedOf(t *testing.T) {
	at := time.Unix(1000, 0)
	segv := spec.Exit{Cause: spec.CauseOrigin, ExitCode: -11, Ended: at}
	failed := spec.Exit{Cause: spec.CauseOrigin, ExitCode: 1, Ended: at}
	fallen := spec.Exit{Cause: spec.CauseOrigin, ExitCode: -6, Xid: 79, Ended: at}
	fault := spec.Exit{Cause: spec.CauseOrigin, ExitCode: 1, Xid: 31, Ended: at}
	lost := spec.Exit{Cause: spec.CauseHostLost, Ended: at}
	restart := func(host string, e spec.Exit) spec.GroupRestart {
		return spec.GroupRestart{Failure: &spec.Failure{Host: host, Exit: e}}
	}
	for name, c := range map[string]struct {
		result spec.RunResult
		want   Ended
	}{
		"success":                    {spec.RunResult{Verdict: spec.VerdictSucceeded}, Ended{Kind: EndCompleted}},
		"signal":                     {spec.RunResult{Verdict: spec.VerdictFailed, FirstFailure: &spec.Failure{Host: "a", Exit: segv}}, Ended{Kind: EndStopped, Failures: []HostFailure{{"a", "SIGSEGV", at}}}},
		"a GPU":                      {spec.RunResult{Verdict: spec.VerdictFailed, FirstFailure: &spec.Failure{Host: "a", Exit: fallen}}, Ended{Kind: EndStopped, Failures: []HostFailure{{"a", "Xid 79", at}}}},
		"a program's error on a GPU": {spec.RunResult{Verdict: spec.VerdictFailed, FirstFailure: &spec.Failure{Host: "a", Exit: fault}}, Ended{Kind: EndStopped, Failures: []HostFailure{{"a", "failed", at}}}},
		"restarts of the group": {
			spec.RunResult{Verdict: spec.VerdictSucceeded, Generation: 4, GroupRestarts: []spec.GroupRestart{restart("b", lost), restart("b", segv), restart("b", segv), {}, restart("", segv)}},
			Ended{Kind: EndCompleted, Failures: []HostFailure{{"b", "SIGSEGV", at}, {"b", "host-lost", at}}},
		},
		"restarts of a task": {
			spec.RunResult{Verdict: spec.VerdictSucceeded, Tasks: []spec.TaskResult{{Host: "a", Exits: []spec.Exit{failed, {Cause: spec.CauseOOM, Ended: at}, {Cause: spec.CauseCompleted}}}}},
			Ended{Kind: EndCompleted, Failures: []HostFailure{{"a", "failed", at}, {"a", "oom", at}}},
		},
		"stopped because of another": {
			spec.RunResult{Verdict: spec.VerdictFailed, Generation: 1, Tasks: []spec.TaskResult{{Host: "a", Exits: []spec.Exit{segv, {Cause: spec.CauseCollateral}}}}}, Ended{Kind: EndStopped},
		},
	} {
		assert.Equal(t, &c.want, EndedOf(&c.result), name)
	}
	assert.Nil(t, RestartedBy([]spec.GroupRestart{restart("a", failed)}))
	assert.Equal(t, &Ended{Failures: []HostFailure{{"a", "SIGSEGV", at}}}, RestartedBy([]spec.GroupRestart{restart("a", segv), restart("b", failed)}))
}

// The days of all hosts are bounded together, and the latest of each host stays.
func TestDaysAreBounded(t *testing.T) {
	p, now := &past{}, time.Unix(1_800_000_000, 0)
	for day := range 40 {
		for i := range 150 {
			p.noteEnds(Run{WorkflowID: "r"}, Ended{Kind: EndCompleted}, []string{hostName(i)}, now.AddDate(0, 0, day))
		}
	}
	total := 0
	for _, h := range p.hosts {
		total += len(h.Days)
		assert.Equal(t, now.AddDate(0, 0, 39).UTC().Format(time.DateOnly), h.Days[len(h.Days)-1].Date)
	}
	assert.Equal(t, maxDays, total)
	for i := range 2 * maxDays {
		p.noteEnds(Run{WorkflowID: "r"}, Ended{Kind: EndCompleted}, []string{hostName(1000 + i)}, now.AddDate(0, 0, 40))
	}
	assert.Len(t, p.hosts, maxDays)
}
