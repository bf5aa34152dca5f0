package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// errSuperseded is returned if another attempt holds the lease on the task, or the run is closed.
// The answer of this attempt is then ignored.
var errSuperseded = errors.New("this attempt of the activity is over; the process continues")

// errAway ends an attempt without stopping the process. The next attempt adopts it.
var errAway = errors.New("the host worker released the process; it continues, and the next attempt adopts it")

// RunTask holds a lease on a task's process. If the journal contains a living process, RunTask
// adopts it; if it contains an exit, RunTask returns that exit unchanged; otherwise RunTask starts
// the process. It returns how the task ended, whether successfully or not. An error means that the
// task continues, for example with a restart, or that none of its processes exited.
func (h *Host) RunTask(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
	l := h.newLease(ctx, &in)
	l.ordered = h.leases.attach(l.key)
	defer func() { h.leases.detach(l.key, l.ended) }()
	exit, err := l.hold(&in)
	if err != nil {
		return h.answer(err)
	}
	return exit, nil
}

func (h *Host) newLease(ctx context.Context, in *hostapi.RunTaskInput) *taskLease {
	info := activity.GetInfo(ctx)
	run := runOf(ctx, in.Run)
	run.WorkflowID = cmp.Or(in.Workflow, run.WorkflowID)
	return &taskLease{
		Host: h, ctx: ctx, token: info.TaskToken,
		key: runkey.Task{Run: run, Generation: in.Generation, Task: in.Task},
		// Each offer counts its own attempts, and later offers have higher numbers.
		fence: supervisor.Fence{Launch: in.Launch, Execution: in.Execution, Attempt: int(in.Offer<<attemptBits) + int(info.Attempt)},
		offer: in.Offer, unwanted: in.Stop,
		// If an earlier attempt sent heartbeats, a process was started.
		resumed: in.Resumed || activity.HasHeartbeatDetails(ctx),
	}
}

// attemptBits is the number of low bits of a fence that hold the attempt; the higher bits hold the
// offer.
const attemptBits = 20

// awayFor delays the next attempt if the supervisor was shutting down, because this host worker
// polls for slightly longer than it can run tasks.
const awayFor = 2 * time.Second

// hereFor is how long RunTask waits for a process within a workflow task. It is shorter than
// firstBeat.
const hereFor = 100 * time.Millisecond

// remainsFor is the time between two checks of a process that survived SIGKILL.
const remainsFor = 2 * time.Second

// leavingFor delays the next attempt if the host worker or supervisor was about to exit. If the
// server gave the attempt to the same host worker just before that exits, the attempt would be lost
// for a whole heartbeat timeout.
const leavingFor = 500 * time.Millisecond

// answer converts a permanent error of the host to the task's end, and a temporary one to an error
// that the server retries.
func (h *Host) answer(err error) (spec.Exit, error) {
	if why, ok := errors.AsType[lostError](err); ok {
		return h.lost(why), nil
	}
	switch {
	case errors.Is(err, supervisor.ErrDamaged):
		return h.lost("its process journal is damaged"), nil
	case errors.Is(err, supervisor.ErrReleased):
		// A run releases its hosts after its tasks have ended, so usually no run receives this. If
		// one does, a retry would never succeed.
		return h.lost("the run was released before"), nil
	case errors.Is(err, supervisor.ErrFenced):
		err = errSuperseded
	case errors.Is(err, supervisor.ErrRemains):
		err = retryAt(err.Error(), spec.ErrRemains, remainsFor)
	case errors.Is(err, supervisor.ErrClosing):
		err = retryAt(err.Error(), "SupervisorClosing", awayFor)
	case errors.Is(err, errAway):
		err = retryAt(err.Error(), spec.ErrAway, leavingFor)
	case errors.Is(err, supervisor.ErrLost), errors.Is(err, supervisor.ErrCutOff):
		err = retryAt(err.Error(), "SupervisorLost", leavingFor)
	case errors.Is(err, supervisor.ErrInvalid), errors.Is(err, supervisor.ErrPortTaken), errors.Is(err, errCommand):
		return spec.Exit{
			ExitCode: fault.CodeOf(err), Cause: spec.CauseOrigin, Ended: h.now(), BootNanos: supervisor.BootNanos(),
			Message: bounded(fmt.Sprintf("it could not be started on host %s: %v%s", h.Name, err, fault.LimitOf(err))),
		}, nil
	}
	return spec.Exit{}, err
}

// lostError is the reason why a task's process left no record.
type lostError string

func (e lostError) Error() string { return "the process was lost: " + string(e) }

// lost returns the exit of a task whose process left no record.
func (h *Host) lost(why lostError) spec.Exit {
	return spec.Exit{
		ExitCode: -1, Cause: spec.CauseHostLost, Ended: h.now(), BootNanos: supervisor.BootNanos(),
		Message: fmt.Sprintf("the process was lost: on host %s %s", h.Name, string(why)),
	}
}

// planFor returns the plan that contains the task, after adding the task if necessary.
func (h *Host) planFor(ctx context.Context, run runkey.Run, in *hostapi.RunTaskInput) (*plan, error) {
	if in.Added != nil {
		if err := h.addTask(ctx, run, *in); err != nil {
			return nil, err
		}
	}
	return h.withDeadline(run)
}

// errUnwanted is returned if a task that the run stops has no process.
var errUnwanted = temporal.NewNonRetryableApplicationError("the task was stopped before it had a process", "Unwanted", nil)

// errCommand is returned if the task's command line or environment cannot be made.
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
	// unwanted reports whether a process is only to be stopped.
	unwanted bool
	// holder holds the lease if the run has two bounds. away reports whether the server itself
	// failed to answer the last beat. Only one beat at a time uses these fields.
	holder *lease.Holder
	away   bool

	asked    policy.Request  // the question to the policy
	allowed  policy.Decision // the answer
	restarts int             // of the task until now
	stopping bool            // the activity was canceled, or StopTasks was called
	ordered  <-chan struct{} // receives when StopTasks is called
	ended    bool            // the last process has exited
	// used is the last sample of the process's resources, or nil before the first.
	used atomic.Pointer[spec.LiveUsage]
	// wrote is the time of the process's last output, or nil without output.
	wrote   atomic.Pointer[time.Time]
	silence silence
	// stopped receives the result of the request to stop the process.
	stopped chan error
}

// hold finds or starts the process, attends to it until it exits, and then decides what happens
// next.
//
// A run may have thousands of leases, all waiting in attend with their callers' frames on the
// stack. To keep these frames small, large variables are confined to functions that return before
// attend or are called after it.
func (l *taskLease) hold(in *hostapi.RunTaskInput) (spec.Exit, error) {
	if err := l.readPlan(in); err != nil {
		return spec.Exit{}, err
	}
	processes, sealed, err := l.begin()
	switch {
	case err != nil:
		return spec.Exit{}, err
	case sealed:
		return l.conclude(processes, nil), nil
	}
	if last := &processes[len(processes)-1]; last.Exit == nil {
		if err := l.attend(last); err != nil {
			return spec.Exit{}, err
		}
	} else { // it exited between two attempts
		(&metricsFile{lease: l, process: *last}).end(last.Exit)
	}
	return l.judge(processes)
}

func (l *taskLease) readPlan(in *hostapi.RunTaskInput) error {
	p, err := l.planFor(l.ctx, l.key.Run, in)
	if errors.Is(err, errNoPlan) {
		return lostError("its host worker has no record of the run")
	} else if err != nil {
		return err
	}
	p.bounds = (*lease.Bounds)(in.Bounds)
	l.plan = p
	return nil
}

// begin finds or starts the process; a process that it finds may have exited. sealed reports
// whether the task was waiting for a restart when the run ended.
func (l *taskLease) begin() (processes []supervisor.Process, sealed bool, err error) {
	reply, err := l.Supervisor.Attach(l.ctx, supervisor.AttachRequest{Key: l.key, Fence: l.fence})
	if err != nil {
		return nil, false, err
	}
	processes = reply.Processes
	if len(processes) == 0 && l.resumed {
		l.services.Lost(l.key)
		return nil, false, lostError("the record of its process is missing")
	}
	next := 0
	l.restarts = l.restartsOf(processes)
	if n := len(processes); n > 0 {
		last := processes[n-1]
		next = last.Number + 1
		switch {
		case last.Exit == nil:
			return processes, false, l.listenFor(l.plan, last)
		case !last.Granted && last.Launch == l.fence.Launch:
			return processes, false, nil
		case last.Granted && last.Launch == l.fence.Launch && l.sealed():
			return processes, true, nil
		}
	}
	if l.unwanted {
		return nil, false, errUnwanted
	}
	p, err := l.start(next)
	if err != nil {
		return nil, false, err
	}
	processes = append(processes, p)
	l.restarts = l.restartsOf(processes)
	return processes, false, nil
}

// start starts process number.
func (l *taskLease) start(number int) (supervisor.Process, error) {
	command, err := l.command(number)
	if err == nil {
		err = l.written(command)
	}
	if err != nil {
		return supervisor.Process{}, fmt.Errorf("%w: %w", errCommand, err)
	}
	contact, err := l.contact()
	if err != nil {
		return supervisor.Process{}, err
	}
	if l.plan.Spec.CleanShm && number+l.key.Generation > 0 {
		l.cleanShm()
	}
	began := time.Now()
	p, err := l.Supervisor.Start(l.ctx, supervisor.StartRequest{
		Key: l.key, Fence: l.fence, Number: number, Command: command, Contact: contact,
	})
	if err != nil {
		return supervisor.Process{}, err
	}
	l.Metrics.Starts.Observe(time.Since(began).Seconds())
	l.noteStart(command)
	return p, nil
}

// restartsOf returns the number of restarts to report: the restarts of this launch and, in restart
// scope "group", the earlier generations.
func (l *taskLease) restartsOf(processes []supervisor.Process) int {
	return l.key.Generation + restartsOf(processes, l.fence.Launch)
}

// sealed reads the plan again, because the run may have been sealed after this call started.
func (l *taskLease) sealed() bool {
	p, err := l.plans.get(l.key.Run)
	return err == nil && p.sealed()
}

// attend sends heartbeats until the process has exited, and stops it if the activity is canceled.
// On return, p contains the exit.
func (l *taskLease) attend(p *supervisor.Process) error {
	l.Metrics.Processes.Inc()
	defer l.Metrics.Processes.Dec()
	// The wait must continue if the activity is canceled, but not if the host shuts down.
	waiting, done := context.WithCancel(context.WithoutCancel(l.ctx))
	defer done()
	closed := l.group.Context()
	defer context.AfterFunc(closed, done)()
	beats := l.newBeater(p)
	defer beats.stop()
	ended := make(chan error, 1)
	l.group.Go(func(context.Context) {
		q, err := l.Supervisor.Wait(waiting, beats.process.Ref())
		if err == nil {
			*p = q
		}
		ended <- err
	})
	l.stopped = make(chan error, 1)
	if l.unwanted {
		l.stop(waiting, &beats.process)
	}
	cancelled, leaving := l.ctx.Done(), activity.GetWorkerStopChannel(l.ctx)
	var late <-chan time.Time
	if activity.GetInfo(l.ctx).IsLocalActivity {
		late = time.After(hereFor)
	}
	for {
		select {
		case <-closed.Done():
			return errAway
		case <-leaving:
			return errAway
		case <-late:
			return errAway
		case err := <-ended:
			if err != nil && closed.Err() != nil {
				return errAway
			} else if err != nil {
				return err
			}
			beats.metrics.end(p.Exit)
			return nil
		case err := <-l.stopped:
			if err != nil {
				return err
			}
		case <-beats.due.C:
			beats.beat(waiting)
		case err := <-beats.answers:
			if server.IsGone(err) {
				return errSuperseded
			}
			l.stop(waiting, &beats.process)
		case <-l.ordered:
			l.stop(waiting, &beats.process)
		case <-cancelled:
			cancelled = nil
			if err := l.onCancelled(waiting, beats); err != nil {
				return err
			}
		}
	}
}

// onCancelled handles a cancellation of the activity. An error ends the attempt.
func (l *taskLease) onCancelled(waiting context.Context, beats *beater) error {
	cause := context.Cause(l.ctx)
	switch {
	case temporal.IsCanceledError(cause) && !l.stopping:
		l.group.Go(func(context.Context) { l.confirm(waiting, beats.process, cause, beats.answers) })
	case server.IsGone(cause):
		return errSuperseded
	case l.stopping, errors.Is(cause, activity.ErrActivityPaused), errors.Is(cause, activity.ErrActivityReset):
		// A paused activity must not be started again, but its process continues.
	default:
		return fmt.Errorf("%w: %v", errAway, cause)
	}
	return nil
}

// confirm asks the server about a cancellation that it has pushed. The server also pushes a
// cancellation if only the execution is closed. If the run continues in another execution, the
// process belongs to that execution's attempt.
func (l *taskLease) confirm(waiting context.Context, p supervisor.Process, cancelled error, answers chan<- error) {
	ctx, cancel := context.WithTimeout(waiting, beatPatience)
	defer cancel()
	if err := l.Server.RecordActivityHeartbeat(ctx, l.token, l.details(p)); server.IsGone(err) {
		cancelled = err
	}
	select {
	case answers <- cancelled:
	default: // an answer is already pending
	}
}

// stop starts stopping the process because the activity was canceled. waiting is canceled when the
// process exits.
func (l *taskLease) stop(waiting context.Context, p *supervisor.Process) {
	if !l.stopping {
		l.stopping = true
		l.audited("the run stops it")
		l.group.Go(func(context.Context) { l.stopped <- l.stopProcess(waiting, *p) })
	}
}

// stopProcess stops the process. If the process has shown an error, it first gets a moment to exit
// without a signal, so that our signal does not change its last output and exit code.
func (l *taskLease) stopProcess(waiting context.Context, p supervisor.Process) error {
	stop, err := l.plan.stopOf(l.key.Task, "", nil)
	if err != nil {
		return err
	}
	request := supervisor.StopRequest{
		Run: l.key.Run, Tasks: []string{l.key.Task}, Generation: l.key.Generation, Fence: &l.fence,
		Signal: stop.Signal, Grace: stop.Grace, Reason: supervisor.ReasonCollateral,
		// After our signal, it would be unknown whether the signal caused the error.
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
	// The process is stopped even if the caller gives up in the meantime.
	_, err = l.Supervisor.Stop(l.group.Context(), request)
	return err
}

// judge decides whether the last process's exit finishes the task or is followed by another
// process. In the second case the permission for that process is journalled before it is reported.
func (l *taskLease) judge(processes []supervisor.Process) (spec.Exit, error) {
	l.ended = true
	last := processes[len(processes)-1]
	l.services.Brokers().ProcessEnded(l.key)
	if last.Exit.Reason == supervisor.ReasonCollateral || l.cancelled() {
		return l.conclude(processes, nil), nil
	}
	history := l.plan.historyOf(processes, l.fence.Launch, l.Owned)
	delay, again := l.plan.next(history, l.sealed())
	if !again {
		return l.conclude(processes, nil), nil
	}
	exit := l.exit(last)
	history.Same = sameErrors(processes, l.key.Task, exit)
	if l.plan.restartPolicy().Hopeless(history) {
		return l.conclude(processes, &history.Same), nil
	}
	note, err := json.Marshal(history.Same)
	if err != nil {
		return spec.Exit{}, err
	}
	err = l.Supervisor.Grant(l.ctx, supervisor.GrantRequest{
		Key: l.key, Fence: l.fence, Number: last.Number, Failures: history.Failures(), Note: string(note),
	})
	if err != nil {
		return spec.Exit{}, err
	}
	l.count(last, exit)
	l.Metrics.Restarts.Inc()
	l.services.Restarts(l.key, howEnded(exit))
	l.Log.Info("restart", zap.String("task", l.key.String()), zap.Int("process", last.Number+1), zap.Duration("delay", delay))
	return spec.Exit{}, retryAt(l.whyRestart(exit), spec.ErrRestart, delay, exit.Restart)
}

// whyRestart returns, in one line, why the task gets another process after that exit.
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

// historyOf returns a launch's history for the restart rules. The supervisor does not keep all of
// the launch's processes, but it keeps the number of failures up to the last but one.
func (p *plan) historyOf(processes []supervisor.Process, launch int, owned bool) lifecycle.RestartHistory {
	history := lifecycle.HistoryOf(p.attemptsOf(processes, launch, owned))
	if n := len(processes); n > 1 && processes[n-2].Launch == launch {
		history.Counted = max(history.Counted, processes[n-2].Failures)
	}
	return history
}

// sameErrors counts consecutive failures with the same error, up to and including the last process.
// The notes of the earlier grants contain the counts so far.
func sameErrors(processes []supervisor.Process, task string, exit spec.Exit) (same lifecycle.SameError) {
	n := len(processes)
	if n > 1 && processes[n-2].Launch == processes[n-1].Launch {
		_ = json.Unmarshal([]byte(processes[n-2].Note), &same) // without a note the count starts at 0
	}
	if !exit.Cause.ByItself() {
		return same
	}
	return same.After(exit, []string{task}, exit.LastStep)
}

// next asks the restart rules whether and when a task gets another process after its last one.
func (p *plan) next(history lifecycle.RestartHistory, sealed bool) (delay time.Duration, again bool) {
	history.Sealed = sealed
	return p.restartPolicy().Next(history)
}

// restartPolicy returns the task's restart rules.
func (p *plan) restartPolicy() lifecycle.RestartPolicy {
	return lifecycle.RestartPolicy{AutoRestart: p.Spec.RestartsTasks(), MaxRestarts: p.Spec.MaxRestarts, SameErrors: p.Spec.GiveUpOnSameError}
}

// conclude reports the last process's exit as the task's exit. hopeless is not nil if another
// process would only fail with the same error.
func (l *taskLease) conclude(processes []supervisor.Process, hopeless *lifecycle.SameError) spec.Exit {
	l.ended = true
	last := processes[len(processes)-1]
	exit := l.exit(last)
	if hopeless != nil {
		exit.SameErrors = hopeless.Times
	}
	if !last.Granted { // otherwise it was counted with its successor
		l.count(last, exit)
	}
	l.services.Ended(l.key, howEnded(exit))
	return exit
}

// count adds an exited process to the metrics.
func (l *taskLease) count(p supervisor.Process, exit spec.Exit) {
	l.Metrics.Exits.WithLabelValues(string(exit.Cause)).Inc()
	l.Metrics.LogBytes.Add(float64(max(0, exit.Usage.OutputBytes)))
	l.Metrics.Orphans.Add(float64(p.Exit.Swept))
}

func (l *taskLease) exit(p supervisor.Process) spec.Exit {
	exit, _ := l.describe(l.plan, p)
	exit.Restart, exit.Steps = l.plan.number(p), l.services.StepTime(l.key)
	if p := l.services.Progress(l.key); p != nil {
		exit.LastStep, exit.Metrics = &p.Current, p.Metrics
	}
	return exit
}

// cancelled reports whether the activity was canceled, according to the SDK or to a heartbeat
// answer that the SDK did not see.
func (l *taskLease) cancelled() bool {
	return l.stopping || l.unwanted || temporal.IsCanceledError(context.Cause(l.ctx))
}

func retryAt(message, kind string, delay time.Duration, details ...any) error {
	return temporal.NewApplicationErrorWithOptions(bounded(message), kind, temporal.ApplicationErrorOptions{
		NextRetryDelay: max(delay, time.Millisecond), Details: details,
	})
}
