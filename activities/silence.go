package activities

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// silence tracks how long the process of a lease has been silent.
type silence struct {
	rule lifecycle.Silence
	// acted reports whether on_silence was carried out since the last sign of life.
	acted bool
}

// silentFor records the signs of the process, and returns for how many seconds it has been
// silent if that exceeds the limit of its run; otherwise 0.
func (l *taskLease) silentFor(at time.Time, signs lifecycle.Signs) int {
	if l.plan.Spec == nil || l.plan.Spec.Silence == nil {
		return 0
	}
	if p := l.progress(l.key); p != nil {
		signs.Progress = fmt.Sprint(*p)
	}
	silent := l.silence.rule.Look(at, signs)
	l.silences.Store(l.key, silent)
	if silent < l.plan.Spec.Silence.Std() {
		l.silence.acted = false
		return 0
	}
	return int(silent.Seconds())
}

// mustAct reports whether on_silence must be carried out now: all tasks of the run on this
// host are silent. A task that waits for another one here does not trigger it alone.
func (l *taskLease) mustAct() bool {
	if l.plan.Spec == nil || l.plan.Spec.OnSilence == "" || l.plan.Spec.Silence == nil || l.silence.acted {
		return false
	}
	limit := l.plan.Spec.Silence.Std()
	for _, k := range l.attachedTo(l.key) {
		if silent, ok := l.silences.Load(k); !ok || silent.(time.Duration) < limit {
			return false
		}
	}
	l.silence.acted = true
	return true
}

// actOnSilence carries out on_silence for the task.
func (l *taskLease) actOnSilence(ctx context.Context, p supervisor.Process) {
	detail := fmt.Sprintf("silent for %s: no output, no progress and no processor time", l.plan.Spec.Silence)
	l.Log.Info("a task is silent", zap.String("task", l.key.String()), zap.String("on_silence", string(l.plan.Spec.OnSilence)))
	switch out, err := l.silentStacks(ctx); {
	case err != nil:
		detail += fmt.Sprintf("; its stacks were not captured: %v", err)
	case out.Files[l.key.Task] != "":
		detail += "; its stacks are in " + out.Files[l.key.Task]
	}
	if l.plan.Spec.OnSilence != spec.OnSilenceStop {
		return
	}
	stop, err := l.plan.stopOf(l.key.Task, "", nil)
	if err == nil {
		_, err = l.Supervisor.Stop(ctx, supervisor.StopRequest{
			Run: l.key.Run, Processes: []supervisor.ProcessRef{p.Ref()},
			Signal: stop.Signal, Grace: stop.Grace, Reason: supervisor.ReasonSilence, Detail: detail,
		})
	}
	if err != nil {
		l.Log.Error("a silent task is not stopped", zap.String("task", l.key.String()), zap.Error(err))
	}
}

// silentStacks captures the stacks of the task as if an operator had asked for them.
func (l *taskLease) silentStacks(ctx context.Context) (ControlOutput, error) {
	tasks := []string{l.key.Task}
	if err := l.checkRequest(ctx, l.plan, ControlInput{Op: lifecycle.ControlStacks, Tasks: tasks}); err != nil {
		return ControlOutput{}, err
	}
	return l.captureStacks(ctx, l.key.Run, l.plan, tasks)
}

// attachedTo returns the tasks of the run and generation of a task that have a lease here.
func (h *Host) attachedTo(of runkey.Task) (keys []runkey.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.attached {
		if k.Run == of.Run && k.Generation == of.Generation {
			keys = append(keys, k)
		}
	}
	return keys
}
