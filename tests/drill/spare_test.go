package drill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// sparing is a run with a spare host.
func sparing() *spec.RunSpec {
	return &spec.RunSpec{
		RestartScope: spec.RestartScopeGroup, MaxRestarts: new(50), Hosts: spec.Hosts{Count: "2", Spares: new(1)},
		Tasks: []spec.TaskGroup{tasks("worker", "step 150", 4)},
	}
}

// lose kills a host for long. If the run with a spare has its tasks and the spare by then, the
// spare must replace the host.
func (s *stage) lose(t *testing.T, h *host) (heal func()) {
	spare := ""
	for deadline := time.Now().Add(noticedWithin); spare == "" && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		spare = s.spare(t)
	}
	killed := h.worker
	l := lost{span{host: h.name, from: bootNanos()}, spare}
	killed.Kill(syscall.SIGKILL)
	return func() {
		l.until = bootNanos()
		s.lost = append(s.lost, l)
		s.revive(t, h, killed)
	}
}

// spare returns the host that a run holds as a spare, if any.
func (s *stage) spare(t *testing.T) string {
	hosts, _ := starter.GetFleet(s.client, "").Hosts(t.Context())
	for _, h := range hosts {
		if slices.ContainsFunc(h.Holds, func(o fleet.Holding) bool { return o.Spare }) {
			return h.Name
		}
	}
	return ""
}

// checkSpares checks the places of a run with a spare. Hosts that known calls faulty are excused.
func (r *run) checkSpares(s *stage, known report) []string {
	var found []string
	excused := maps.Clone(known.faulty)
	for _, h := range s.sick {
		excused[h.host] = true
	}
	if len(excused) <= 1 && !s.full {
		found = checkRanks(known.pages, strings.Join(slices.Collect(maps.Keys(excused)), ""))
	}
	if known.givesUp {
		for _, l := range s.lost {
			if l.spare != "" && l.spare != l.host {
				found = append(found, checkReplaced(known.pages, l)...)
			}
		}
	}
	for i := range found {
		found[i] = r.name + ": " + found[i]
	}
	return found
}

func TestRanksThatMoveAreFound(t *testing.T) {
	started := func(generation int, at int64, hosts ...string) (list []page) {
		for i, host := range hosts {
			list = append(list, page{task: string(rune('a' + i)), generation: generation, host: host, started: at})
		}
		return list
	}
	first := started(0, 1, "x", "y")
	assert.Empty(t, checkRanks(append(first, started(1, 5, "x", "z")...), "y"))
	assert.Empty(t, checkRanks(append(first, started(1, 5, "z")...), ""), "not all have begun")
	assert.Equal(t, []string{"a moved from x to y in generation 1", "b moved from y to x in generation 1"},
		checkRanks(append(first, started(1, 5, "y", "x")...), ""))

	l := lost{span{host: "y", from: 2, until: 9}, "z"}
	assert.Empty(t, checkReplaced(append(first, started(1, 5, "x", "z")...), l))
	assert.Empty(t, checkReplaced(append(first, started(1, 10, "x", "y")...), l), "it was back before")
	assert.Empty(t, checkReplaced(append(first, started(1, 10, "x", "z")...), l), "it came back as the spare began")
	for _, other := range [][]page{nil, started(1, 5, "x", "x"), started(1, 5, "x", "y")} {
		assert.Contains(t, strings.Join(checkReplaced(append(first, other...), l), ""), "b was lost with y")
	}
}

// gpus is the number of GPUs of a host. Only runs that preempt, or are preempted, use them.
const gpus = 2

// trained is the run that others preempt.
func trained() *spec.RunSpec {
	return &spec.RunSpec{
		AutoRestart: true, Priority: new(spec.LastPriority), GPUsPerTask: new(gpus), Preemption: spec.Preemption{Notice: spec.DurationOf(time.Second)},
		Tasks: []spec.TaskGroup{tasks("worker", "train 120", 3, 0, 1, 2)},
	}
}

// letPreempt lets runs preempt others from now on.
func (s *stage) letPreempt(t *testing.T) {
	require.NoError(t, starter.GetFleet(s.client, "").Set(t.Context(), fleet.Settings{Preempt: fleet.PreemptLower}))
}

// preempt starts a run of the first priority that needs the GPUs of a host.
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

// begin starts the run, as soon as there is a server.
func (r *run) begin(ctx context.Context, s *stage) error {
	for {
		_, err := starter.Start(ctx, s.client, r.spec, starter.Options{ID: r.name})
		var running *starter.RunningError // an earlier try was heard
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
