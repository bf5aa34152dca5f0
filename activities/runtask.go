package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// errSuperseded is returned if another attempt holds the lease on the task, or the run is
// closed. The answer of this attempt is no longer used.
var errSuperseded = errors.New("this attempt of the activity is over; the process continues")

// errAway ends an attempt without ending the process: the next attempt adopts it.
var errAway = errors.New("the host worker released the process; it continues, and the next attempt adopts it")

// RunTask holds a lease on the process of a task. It starts the process unless the journal
// knows one: it adopts a living process, and uses a recorded exit as it is. The kind of
// result says how the task ended:
//
//   - a result: it ended well, or at an operator's request
//   - a non-retryable error with the [spec.Exit] in its details: it failed
//   - a cancellation with the [spec.Exit] in its details: it was stopped
//   - a retryable error: it continues, for example with a restart
func (h *Host) RunTask(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
	info := activity.GetInfo(ctx)
	run := runOf(ctx, in.Run)
	run.WorkflowID = cmp.Or(in.Workflow, run.WorkflowID)
	key := runkey.Task{Run: run, Generation: in.Generation, Task: in.Task}
	h.leases.attach(key)
	defer h.leases.detach(key)

	p, err := h.planFor(ctx, run, in)
	if errors.Is(err, errNoPlan) {
		return spec.Exit{}, h.lost(in.Task, "its host worker has no record of the run")
	} else if err != nil {
		return spec.Exit{}, h.answer(in.Task, err)
	}
	p.bounds = (*lease.Bounds)(in.Bounds)
	h.collectors.collect(p)
	l := taskLease{
		Host: h, ctx: ctx, plan: p, key: key, token: info.TaskToken,
		// Each offer has attempts of its own, and a later one a higher number.
		fence: supervisor.Fence{Launch: in.Launch, Execution: in.Execution, Attempt: int(in.Offer<<attemptBits) + int(info.Attempt)},
		offer: in.Offer,
		// Heartbeats before this attempt mean that a process was started.
		resumed: in.Resumed || activity.HasHeartbeatDetails(ctx),
	}
	out, err := l.hold()
	return out, h.answer(in.Task, err)
}

// attemptBits is the size of the number of an attempt in its fence, below the number of the offer.
const attemptBits = 20

// awayFor is the delay of the attempt after one whose supervisor was closing: this host
// worker polls a little longer than it can run tasks.
const awayFor = 2 * time.Second

// leavingFor is the delay of the attempt after one whose host worker or supervisor was about
// to end. If the server gave it to the same host worker in its last moments, the attempt
// would be lost for a whole heartbeat timeout.
const leavingFor = 500 * time.Millisecond

// answer converts errors of the host into errors that the server acts on: temporary ones are
// retried, and permanent ones end the task.
func (h *Host) answer(task string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, supervisor.ErrDamaged):
		return h.lost(task, "the journal of its processes is damaged")
	case errors.Is(err, supervisor.ErrReleased):
		// A run releases its hosts after its tasks have ended, so usually no run receives this.
		// If one does, a retry would never succeed.
		return h.lost(task, "the run was released before")
	case errors.Is(err, supervisor.ErrFenced):
		return errSuperseded
	case errors.Is(err, supervisor.ErrClosing):
		return retryAt(err.Error(), "HostWorkerAway", awayFor, nil)
	case errors.Is(err, errAway), errors.Is(err, supervisor.ErrLost), errors.Is(err, supervisor.ErrCutOff):
		return retryAt(err.Error(), "HostWorkerAway", leavingFor, nil)
	case errors.Is(err, supervisor.ErrInvalid), errors.Is(err, supervisor.ErrPortTaken), errors.Is(err, errCommand):
		return failed(task, spec.Exit{
			ExitCode: exitcode.NotExecutable, Cause: spec.CauseOrigin, Ended: h.now(), BootNanos: supervisor.BootNanos(),
			Message: bounded(fmt.Sprintf("it could not be started on host %s: %v", h.Name, err)),
		})
	}
	return err
}

// planFor returns the plan with the task in it. If the task is an added one, this adds it.
func (h *Host) planFor(ctx context.Context, run runkey.Run, in hostapi.RunTaskInput) (*plan, error) {
	if in.Added != nil {
		if err := h.addTask(ctx, run, in); err != nil {
			return nil, err
		}
	}
	return h.withDeadline(run)
}

// errCommand is returned if the command line or environment of the task cannot be made.
var errCommand = errors.New("no command")

// taskLease is one RunTask call in progress.
type taskLease struct {
	*Host
	ctx     context.Context
	plan    *plan
	key     runkey.Task
	fence   supervisor.Fence
	token   []byte
	resumed bool
	offer   int64
	// holder has the lease if the run has two bounds, and away reports whether the server did not
	// answer itself the last time. A single beat at a time uses them.
	holder *lease.Holder
	away   bool

	asked    policy.Request  // the question to the policy
	allowed  policy.Decision // the answer
	restarts int             // of the task so far
	stopping bool            // the activity was cancelled
	endTurn  func()          // lets the next task of a batch start, and may be called twice; nil without one
	// used is the last sample of the resources that the process uses, or nil before the first.
	used atomic.Pointer[spec.LiveUsage]
	// wrote is the time at which the process last wrote output, or nil if it has not.
	wrote   atomic.Pointer[time.Time]
	silence silence
	// stopped receives the result of the request to stop the process.
	stopped chan error
}

// hold finds or starts the process, attends it until its end, and then decides what follows.
func (l *taskLease) hold() (spec.Exit, error) {
	reply, err := l.Supervisor.Attach(l.ctx, supervisor.AttachRequest{Key: l.key, Fence: l.fence})
	if err != nil {
		return spec.Exit{}, err
	}
	processes := reply.Processes
	if len(processes) == 0 && l.resumed {
		l.services.Lost(l.plan.forServices(), l.key)
		return spec.Exit{}, l.lost(l.key.Task, "the record of its process is missing")
	}
	next := 0
	l.restarts = l.restartsOf(processes)
	if n := len(processes); n > 0 {
		last := processes[n-1]
		next = last.Number + 1
		switch {
		case last.Exit == nil:
			if err := l.listenFor(l.plan, last); err != nil {
				return spec.Exit{}, err
			}
			return l.attend(processes)
		case !last.Granted && last.Launch == l.fence.Launch:
			return l.judge(processes)
		case last.Granted && last.Launch == l.fence.Launch && l.sealed():
			// The task was waiting to be started again when the run ended.
			return l.conclude(processes)
		}
	}
	if l.plan.Spec.Batch != nil {
		defer l.turns.release(l.key.Run)
		endTurn, exit, err := l.takeTurn()
		if endTurn == nil {
			return exit, err
		}
		defer endTurn()
		l.endTurn = endTurn
	}
	command, err := l.command(next)
	if err == nil {
		err = l.written(command)
	}
	if err != nil {
		return spec.Exit{}, fmt.Errorf("%w: %w", errCommand, err)
	}
	contact, err := l.contact()
	if err != nil {
		return spec.Exit{}, err
	}
	began := time.Now()
	p, err := l.Supervisor.Start(l.ctx, supervisor.StartRequest{
		Key: l.key, Fence: l.fence, Number: next, Command: command, Contact: contact,
	})
	if err != nil {
		return spec.Exit{}, err
	}
	l.Metrics.Starts.Observe(time.Since(began).Seconds())
	l.noteStart(command)
	processes = append(processes, p)
	l.restarts = l.restartsOf(processes)
	if p.Exit != nil {
		return l.judge(processes)
	}
	exit, err := l.attend(processes)
	if l.endTurn != nil {
		l.endTurn()
		report := l.turns.reported(l.key.Run)
		if err == nil { // a failure is reported at once
			select {
			case <-report:
			case <-l.ctx.Done():
			case <-l.group.Context().Done():
			}
		}
	}
	return exit, err
}

// restartsOf returns the number of restarts to report: the restarts of this launch and, in
// restart scope "group", the earlier generations.
func (l *taskLease) restartsOf(processes []supervisor.Process) int {
	return l.key.Generation + restartsOf(processes, l.fence.Launch)
}

// sealed reads the plan again: the run may have been sealed after the start of this call.
func (l *taskLease) sealed() bool {
	p, err := l.plans.get(l.key.Run)
	return err == nil && p.sealed()
}

// attend sends heartbeats until the last process has ended, and stops the process when the
// activity is cancelled.
func (l *taskLease) attend(processes []supervisor.Process) (spec.Exit, error) {
	l.Metrics.Processes.Inc()
	defer l.Metrics.Processes.Dec()
	p := processes[len(processes)-1]
	// The wait must outlive a cancellation of the activity, but not the host.
	waiting, done := context.WithCancel(context.WithoutCancel(l.ctx))
	defer done()
	closed := l.group.Context()
	defer context.AfterFunc(closed, done)()
	type end struct {
		process supervisor.Process
		err     error
	}
	ended := make(chan end, 1)
	l.group.Go(func(context.Context) {
		q, err := l.Supervisor.Wait(waiting, supervisor.ProcessRef{Key: l.key, Number: p.Number})
		ended <- end{q, err}
	})

	beats := l.newBeater(p)
	defer beats.stop()
	l.stopped = make(chan error, 1)
	cancelled := l.ctx.Done()
	for {
		select {
		case <-closed.Done():
			return spec.Exit{}, errAway
		case e := <-ended:
			if e.err != nil && closed.Err() != nil {
				return spec.Exit{}, errAway
			} else if e.err != nil {
				return spec.Exit{}, e.err
			}
			processes[len(processes)-1] = e.process
			if l.endTurn != nil && e.process.Exit.Code == 0 { // a failure must be counted first
				l.endTurn()
			}
			beats.end(e.process)
			return l.judge(processes)
		case err := <-l.stopped:
			if err != nil {
				return spec.Exit{}, err
			}
		case <-beats.due.C:
			beats.beat(waiting)
		case err := <-beats.answers:
			if server.IsGone(err) {
				return spec.Exit{}, errSuperseded
			}
			l.stop(waiting, p)
			// The SDK must learn of the cancellation itself before it lets an activity end as
			// cancelled.
			activity.RecordHeartbeat(l.ctx, l.details(p))
		case <-cancelled:
			cancelled = nil
			cause := context.Cause(l.ctx)
			switch {
			case temporal.IsCanceledError(cause):
				l.group.Go(func(context.Context) { l.confirm(waiting, p, cause, beats.answers) })
			case server.IsGone(cause):
				return spec.Exit{}, errSuperseded
			case l.stopping, errors.Is(cause, activity.ErrActivityPaused), errors.Is(cause, activity.ErrActivityReset):
				// A paused activity must not be started again, but its process continues.
			default:
				return spec.Exit{}, fmt.Errorf("%w: %v", errAway, cause)
			}
		}
	}
}

// confirm asks the server about a cancellation that it has pushed. The server pushes one even
// if only the execution is closed: the run may continue in another execution, whose attempt
// then has the process.
func (l *taskLease) confirm(waiting context.Context, p supervisor.Process, cancelled error, answers chan<- error) {
	ctx, cancel := context.WithTimeout(waiting, beatPatience)
	defer cancel()
	if err := l.Server.RecordActivityHeartbeat(ctx, l.token, l.details(p)); server.IsGone(err) {
		cancelled = err
	}
	select {
	case answers <- cancelled:
	default: // an answer is pending already
	}
}

// stop starts to stop the process because the activity was cancelled. waiting ends with the
// process.
func (l *taskLease) stop(waiting context.Context, p supervisor.Process) {
	if l.stopping {
		return
	}
	l.stopping = true
	l.audited("the run stops it")
	l.group.Go(func(context.Context) { l.stopped <- l.stopProcess(waiting, p) })
}

// stopProcess stops the process. One that has shown an error first gets a moment to end by
// itself, so that its last words and its exit code are its own.
func (l *taskLease) stopProcess(waiting context.Context, p supervisor.Process) error {
	stop, err := l.plan.stopOf(l.key.Task, "", nil)
	if err != nil {
		return err
	}
	request := supervisor.StopRequest{
		Run: l.key.Run, Tasks: []string{l.key.Task}, Generation: l.key.Generation, Fence: &l.fence,
		Signal: stop.Signal, Grace: stop.Grace, Reason: supervisor.ReasonCollateral,
		// Later it would be unknown whether the process showed this before our signal or
		// because of it.
		Failed: l.showsError(p),
	}
	switch {
	case l.plan.overdue():
		request.Signal, request.Grace, request.Reason = sigkill, 0, supervisor.ReasonMaxRunTime
	case request.Failed:
		task, _ := l.plan.task(l.key.Task)
		wait := min(l.plan.Spec.ErrorGraceOf(task), stop.Grace)
		if retry.Sleep(waiting, wait) != nil {
			return nil //nolint:nilerr // the process has ended: there is nothing to stop
		}
		request.Grace -= wait
	}
	// The caller may give up in the meantime; the process is stopped in any case.
	_, err = l.Supervisor.Stop(l.group.Context(), request)
	return err
}

// judge decides what the end of the last process means: the end of the task, or another
// process. In the second case the permission for that process is in the journal before it is
// reported.
func (l *taskLease) judge(processes []supervisor.Process) (spec.Exit, error) {
	last := processes[len(processes)-1]
	completed := last.Exit.Reason == supervisor.ReasonNone && causeOf(last.Exit, l.Owned, "") == spec.CauseCompleted
	calls, err := l.services.ProcessEnded(processes, completed)
	if err != nil {
		return spec.Exit{}, err
	}
	l.plan.Calls = calls
	if last.Exit.Reason == supervisor.ReasonCollateral || l.cancelled() {
		return l.conclude(processes)
	}
	history := l.plan.historyOf(processes, l.fence.Launch, l.Owned)
	delay, again := l.plan.next(history, l.sealed())
	if !again {
		return l.conclude(processes)
	}
	err = l.Supervisor.Grant(l.ctx, supervisor.GrantRequest{Key: l.key, Fence: l.fence, Number: last.Number, Failures: history.Failures()})
	if err != nil {
		return spec.Exit{}, err
	}
	exit := l.exit(last)
	l.count(last, exit)
	l.Metrics.Restarts.Inc()
	l.services.Restarts(l.key, howEnded(exit))
	l.tellRestart(exit)
	l.Log.Info("restart", zap.String("task", l.key.String()), zap.Int("process", last.Number+1), zap.Duration("delay", delay))
	return spec.Exit{}, retryAt(l.whyRestart(exit), spec.ErrRestart, delay, nil)
}

// whyRestart returns, in one line, the reason for another process of the task after that exit.
func (l *taskLease) whyRestart(exit spec.Exit) string {
	if exit.Cause == spec.CauseOperator {
		return "an operator asked"
	}
	who := l.key.Task + " on " + l.Name
	if m, err := l.plan.clusterFor(l.key.Task).Member(l.key.Task); err == nil {
		who += fmt.Sprintf(" (rank %d)", m.Rank)
	}
	text := who + " " + howEnded(exit)
	switch {
	case exit.Reported:
		line, _, _ := strings.Cut(exit.Message, "\n")
		text += ": " + shorten.Text(line, maxReported)
	case exit.Printed != nil:
		text += ": " + exit.Printed.String()
	}
	return text
}

// historyOf returns the history of a launch for the restart rules. The supervisor does not
// keep all of its processes, but it keeps the number of failures up to the last but one.
func (p *plan) historyOf(processes []supervisor.Process, launch int, owned bool) lifecycle.RestartHistory {
	history := lifecycle.HistoryOf(p.attemptsOf(processes, launch, owned))
	if n := len(processes); n > 1 && processes[n-2].Launch == launch {
		history.Counted = max(history.Counted, processes[n-2].Failures)
	}
	return history
}

// next asks the restart rules whether a task gets another process after its last one, and when.
func (p *plan) next(history lifecycle.RestartHistory, sealed bool) (delay time.Duration, again bool) {
	history.Sealed = sealed
	return lifecycle.RestartPolicy{AutoRestart: p.Spec.RestartsTasks(), MaxRestarts: p.Spec.MaxRestarts}.Next(history)
}

// conclude reports the end of the last process as the end of the task.
func (l *taskLease) conclude(processes []supervisor.Process) (spec.Exit, error) {
	last := processes[len(processes)-1]
	exit := l.exit(last)
	if !last.Granted { // otherwise it was counted with its successor
		l.count(last, exit)
	}
	l.services.Ended(l.key, l.plan.restartCount(l.key.Generation, l.plan.number(last)), howEnded(exit))
	stopped := exit.Cause != spec.CauseCompleted && !exit.Cause.ByItself()
	switch {
	case l.cancelled() && stopped && temporal.IsCanceledError(context.Cause(l.ctx)):
		return spec.Exit{}, temporal.NewCanceledError(exit)
	case exit.Cause.ByItself() || exit.Cause == spec.CauseHostLost:
		if b := l.plan.Spec.Batch; b != nil {
			l.turns.failed(l.key.Run, b.MaxFailures)
		}
		return spec.Exit{}, failed(l.key.Task, exit)
	}
	return exit, nil
}

// count adds a process that has ended to the metrics.
func (l *taskLease) count(p supervisor.Process, exit spec.Exit) {
	l.Metrics.Exits.WithLabelValues(string(exit.Cause)).Inc()
	l.Metrics.LogBytes.Add(float64(max(0, exit.Usage.OutputBytes)))
	l.Metrics.Orphans.Add(float64(p.Exit.Swept))
}

// exit returns how a process of the task ended.
func (l *taskLease) exit(p supervisor.Process) spec.Exit {
	exit, _ := l.describe(l.plan, p)
	exit.Restart, exit.Steps = l.plan.number(p), l.services.StepTime(l.key)
	if p := l.services.Progress(l.key); p != nil {
		exit.LastStep = &p.Current
	}
	return exit
}

// cancelled reports whether the activity was cancelled, according to the SDK or to the answer
// of a heartbeat that the SDK did not see.
func (l *taskLease) cancelled() bool {
	return l.stopping || temporal.IsCanceledError(context.Cause(l.ctx))
}

// failed returns the error for a task that failed.
func failed(task string, exit spec.Exit) error {
	kind, message := spec.ErrUnexpectedExit, outcome.Exit(task, exit)
	switch {
	case exit.Cause == spec.CauseHostLost:
		kind, message = spec.ErrHostLost, task+": "+exit.Message
	case exit.Reported:
		kind, message = spec.ErrSubprocess, task+": "+exit.Message
	}
	return temporal.NewNonRetryableApplicationError(bounded(message), kind, nil, exit)
}

// lost returns the error for a task whose process has left no record.
func (h *Host) lost(task, why string) error {
	return failed(task, spec.Exit{
		ExitCode: -1, Cause: spec.CauseHostLost, Ended: h.now(), BootNanos: supervisor.BootNanos(),
		Message: fmt.Sprintf("the process was lost: on host %s %s", h.Name, why),
	})
}

func retryAt(message, kind string, delay time.Duration, cause error) error {
	return temporal.NewApplicationErrorWithOptions(bounded(message), kind, temporal.ApplicationErrorOptions{
		NextRetryDelay: max(delay, time.Millisecond), Cause: cause,
	})
}
