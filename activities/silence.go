package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// actAlone is how long a host waits for the run to react to silent tasks before it acts by itself,
// because no worker may be serving the run's workflow.
const actAlone = time.Minute

// silence tracks how long a lease's process has been silent.
type silence struct{ rule lifecycle.Silence }

// silentFor records the process's signs of life. If the process has been silent for at least its
// limit, silentFor sets u.SilentSeconds.
func (l *taskLease) silentFor(u *spec.LiveUsage, at time.Time, signs lifecycle.Liveness) {
	if l.plan.Spec == nil || !l.plan.Spec.Silence.IsWatched() {
		return
	}
	if p := l.progress(l.key); p != nil {
		signs.Progress = fmt.Sprint(*p)
	}
	signs.Idle = l.services.Brokers().IsIdle(l.key)
	if l.plan.Spec.SilenceIgnoresCPU {
		signs.CPU = 0
	}
	silent := l.silence.rule.Look(at, signs)
	limit := l.plan.Spec.Silence.Limit(l.silence.rule.Longest())
	l.leases.silences.Store(l.key, silent >= limit)
	if l.plan.Spec.Silence == spec.SilenceAuto {
		u.SilentAfter = int(limit.Seconds())
	}
	if silent < limit {
		l.leases.acted.Delete(groupOf(l.key))
		return
	}
	u.SilentSeconds = int(silent.Seconds())
}

// mustAct reports whether on_silence must be carried out now, because all of the run's tasks on
// this host are silent and this lease is the first to notice. A silent task that waits for a busy
// one on this host does not trigger it.
func (l *taskLease) mustAct() bool {
	if l.plan.Spec == nil || l.plan.Spec.OnSilence == "" || !l.plan.Spec.Silence.IsWatched() {
		return false
	}
	attached := l.leases.attachedTo(l.key)
	if silent := l.leases.stillSilent(l.key); len(silent) == 0 || len(silent) < len(attached) {
		return false
	}
	_, acted := l.leases.acted.LoadOrStore(groupOf(l.key), true)
	return !acted
}

// actOnSilence asks the run to carry out on_silence for all of its tasks on this host. The run
// captures the stacks of all its tasks, on all hosts, before any task is stopped. If the run does
// not react, this host carries out on_silence for its own tasks.
func (s *silenced) actOnSilence(ctx context.Context, p *plan, k runkey.Task) {
	tasks := s.leases.stillSilent(k)
	s.Log.Info("all tasks of a run are silent", zap.String("run", k.Run.WorkflowID), zap.Strings("tasks", tasks), zap.String("on_silence", string(p.Spec.OnSilence)))
	alone := time.NewTimer(actAlone)
	defer alone.Stop()
	asking, cancel := context.WithTimeout(ctx, actAlone)
	defer cancel()
	err := s.tellSilent(asking, k, tasks)
	if err == nil && p.Spec.OnSilence == spec.OnSilenceReport {
		return
	}
	select {
	case <-alone.C:
	case <-ctx.Done():
		return
	}
	if tasks = s.leases.stillSilent(k); len(tasks) == 0 {
		return // the tasks were stopped, or are working again
	}
	s.Log.Warn("the run has not acted on silent tasks; this host will", zap.String("run", k.Run.WorkflowID), zap.Strings("tasks", tasks), zap.Error(err))
	if err := s.silentAlone(ctx, p, tasks); err != nil {
		s.Log.Error("could not act on silent tasks", zap.String("run", k.Run.WorkflowID), zap.Error(err))
	}
}

// tellSilent reports silent tasks to the run until it answers or refuses.
func (s *silenced) tellSilent(ctx context.Context, k runkey.Task, tasks []string) error {
	if s.Runs == nil {
		return errors.New("this host does not send requests to runs")
	}
	update := taskservices.RunUpdate{
		ID:    fmt.Sprintf("%s/%d/%s/%s", spec.UpdateSilent.Name, k.Generation, s.Instance, rand.Text()),
		Name:  spec.UpdateSilent.Name,
		Input: spec.SilentRequest{Host: s.Name, Tasks: tasks, Generation: k.Generation},
	}
	var answer spec.RequestAnswer
	return taskservices.Tell(ctx, s.Runs, k.Run, update, &answer)
}

// silentAlone carries out on_silence for this host's silent tasks.
func (s *silenced) silentAlone(ctx context.Context, p *plan, tasks []string) error {
	err := s.gate.allow(ctx, p, request{"stacks", tasks, policy.AskStacks})
	if err == nil {
		_, err = s.captures.captureStacks(ctx, p, tasks, 0)
	}
	if err != nil {
		s.Log.Warn("could not save the stacks of silent tasks", zap.String("run", p.Run.WorkflowID), zap.Error(err))
	}
	if p.Spec.OnSilence != spec.OnSilenceStop {
		return nil
	}
	_, err = s.stops.stopTasks(ctx, p, spec.TaskRequest{Tasks: tasks}, supervisor.ReasonSilence)
	return err
}

// StopSilentTasks stops the processes of silent tasks, which count as failed.
func (h *Host) StopSilentTasks(ctx context.Context, in hostapi.TasksInput) (spec.RequestAnswer, error) {
	p, err := h.accept(ctx, in.Group, request{"silence", in.Tasks, ""})
	if p == nil {
		return spec.RequestAnswer{}, err
	}
	return h.stops.stopTasks(ctx, p, spec.TaskRequest{Tasks: in.Tasks}, supervisor.ReasonSilence)
}

// silenceText returns the reason for stopping silent tasks.
func silenceText(s *spec.RunSpec) string {
	if s == nil || !s.Silence.IsWatched() {
		return ""
	}
	limit := string(s.Silence)
	if s.Silence == spec.SilenceAuto {
		limit = "much longer than before"
	}
	return fmt.Sprintf("silent for %s: %s", limit, spec.SilenceText(s.SilenceIgnoresCPU))
}
