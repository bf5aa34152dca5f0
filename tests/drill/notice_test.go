package drill

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// onHosts is a run on two hosts.
func onHosts() *spec.RunSpec {
	return &spec.RunSpec{
		RestartScope: spec.RestartScopeGroup, MaxRestarts: new(50), Hosts: spec.Hosts{Count: "2"},
		Tasks: []spec.TaskGroup{tasks("worker", "step 150", 4)},
	}
}

// lose kills a host for long.
func (s *stage) lose(t *testing.T, h *host) (heal func()) {
	killed := h.worker
	l := span{host: h.name, from: bootNanos()}
	killed.Kill(syscall.SIGKILL)
	return func() {
		l.until = bootNanos()
		s.lost = append(s.lost, l)
		s.revive(t, h, killed)
	}
}

// gpus is a host's number of GPUs. Only the run that gets notice uses them.
const gpus = 2

// trained is the run that gets notice.
func trained() *spec.RunSpec {
	return &spec.RunSpec{
		AutoRestart: true, GPUsPerTask: new(gpus),
		Tasks: []spec.TaskGroup{tasks("worker", "train 120", 3, 0, 1, 2)},
	}
}

// giveNotice gives the trained run notice once the server answers.
func (s *stage) giveNotice(t *testing.T, runs []*run) {
	i := slices.IndexFunc(runs, func(r *run) bool { return r.spec.GPUsPerTask != nil })
	s.notices++
	r := runs[i]
	ctx, cancel := context.WithTimeout(t.Context(), endBound)
	go func() {
		defer cancel()
		// It is refused if the run has finished or is pending.
		_, _ = starter.Ask(ctx, r.Run, spec.UpdateNotice, spec.NoticeRequest{Within: spec.Duration(time.Second), Requeue: true})
	}()
}

func TestPreemptionsAreChecked(t *testing.T) {
	restarts := func(of ...spec.RequeueOn) (list []spec.GroupRestart) {
		for _, r := range of {
			list = append(list, spec.GroupRestart{Requeued: r})
		}
		return list
	}
	for want, r := range map[string]report{
		"": {notices: 1, result: spec.RunResult{Preemptions: 1, GroupRestarts: restarts(spec.RequeueOnPreemption)}},
		"it was preempted 2 times, after 1 notices": {notices: 1, result: spec.RunResult{
			Preemptions: 2, GroupRestarts: restarts(spec.RequeueOnPreemption, spec.RequeueOnPreemption)}},
		"it was preempted 1 times, and 0 of its restarts say so": {notices: 1, result: spec.RunResult{Preemptions: 1}},
		"it was restarted 1 times, and no fault was in its way":  {notices: 1, result: spec.RunResult{GroupRestarts: restarts("")}},
	} {
		assert.Equal(t, want, strings.Join(checkPreempted(r), "; "))
	}
}
