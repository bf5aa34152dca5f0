package drill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/fleet"
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

// gpus is a host's number of GPUs. Only runs that preempt, or are preempted, use them.
const gpus = 2

// trained is the run that gets preempted.
func trained() *spec.RunSpec {
	return &spec.RunSpec{
		AutoRestart: true, Priority: new(spec.LastPriority), GPUsPerTask: new(gpus), Preemption: spec.Preemption{Notice: spec.DurationOf(time.Second)},
		Tasks: []spec.TaskGroup{tasks("worker", "train 120", 3, 0, 1, 2)},
	}
}

// letPreempt enables preemption from now on.
func (s *stage) letPreempt(t *testing.T) {
	require.NoError(t, starter.GetFleet(s.client, "").Set(t.Context(), fleet.Settings{Preempt: fleet.PreemptLower}))
}

// preempt starts a run with the highest priority that needs a host's GPUs.
func (s *stage) preempt(t *testing.T, host int) {
	r := s.prepare(t, fmt.Sprintf("vip%d", len(s.vips)), &spec.RunSpec{
		AutoRestart: true, Priority: new(spec.FirstPriority), GPUsPerTask: new(gpus),
		Tasks: []spec.TaskGroup{tasks("worker", "sleep 1500", 1, host)},
	})
	r.Run = starter.Get(s.client, r.name, "")
	r.begun = make(chan error, 1)
	s.vips = append(s.vips, r)
	ctx, cancel := context.WithTimeout(t.Context(), endBound)
	go func() {
		defer cancel()
		r.begun <- r.begin(ctx, s)
	}()
}

// begin starts the run as soon as there is a server.
func (r *run) begin(ctx context.Context, s *stage) error {
	for {
		_, err := starter.Start(ctx, s.client, r.spec, starter.Options{ID: r.name})
		var running *starter.RunningError // an earlier attempt succeeded
		if err == nil || errors.As(err, &running) {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestPreemptionsAreChecked(t *testing.T) {
	restarts := func(of ...spec.RequeueOn) (list []spec.GroupRestart) {
		for _, r := range of {
			list = append(list, spec.GroupRestart{Requeued: r})
		}
		return list
	}
	for want, r := range map[string]report{
		"": {vips: 1, result: spec.RunResult{Preemptions: 1, GroupRestarts: restarts(spec.RequeueOnPreemption)}},
		"it was preempted 2 times, for 1 runs": {vips: 1, result: spec.RunResult{
			Preemptions: 2, GroupRestarts: restarts(spec.RequeueOnPreemption, spec.RequeueOnPreemption)}},
		"it was preempted 1 times, and 0 of its restarts say so": {vips: 1, result: spec.RunResult{Preemptions: 1}},
		"it was restarted 1 times, and no fault was in its way":  {vips: 1, result: spec.RunResult{GroupRestarts: restarts("")}},
	} {
		assert.Equal(t, want, strings.Join(checkPreempted(r), "; "))
	}
}
