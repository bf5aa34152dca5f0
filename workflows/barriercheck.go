package workflows

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/barrier"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

const (
	// checkAfter is the delay before a host checks whether the missing tasks can still arrive. Most
	// rounds are shorter.
	checkAfter = time.Second
	// checkSilence is the check's heartbeat timeout. checkLasts is its total timeout, which is
	// longer than any round.
	checkSilence, checkLasts = 20 * time.Second, 10 * 365 * 24 * time.Hour
	// checkInterval limits the time between two attempts. An attempt fails if the host cannot
	// check.
	checkInterval = time.Minute
	// checkTaken limits how long a host may take to start a check. It grows up to checkTakenMost,
	// so that an absent host worker is asked less and less often.
	checkTaken, checkTakenMost = 30 * time.Second, time.Hour
)

// startChecks starts the check for missing tasks, one activity on a signaling host's queue. It
// checks after 1, 2, 4 … 60 s until a missing task has ended, without adding events. Its input
// lists the tasks that were missing when it started. A task that has arrived since does not matter,
// but a task that has left since restarts the check.
func (b *barrierWorkflow) startChecks(ctx workflow.Context) {
	if len(b.hosts) == 0 {
		return
	}
	if b.checking {
		for _, t := range b.round.Missing() {
			if _, asked := slices.BinarySearch(b.asked, t); b.asked != nil && !asked {
				b.stopCheck()
				b.check(ctx)
				return
			}
		}
		return
	}
	b.checking = true
	timer := workflow.NewTimerWithOptions(ctx, checkAfter, workflow.TimerOptions{Summary: "check who is missing"})
	b.selector.AddFuture(timer, func(workflow.Future) { b.check(ctx) })
}

func (b *barrierWorkflow) check(parent workflow.Context) {
	ctx, cancel := workflow.WithCancel(parent)
	b.stopCheck, b.asked = cancel, b.round.Missing()
	queue := b.hosts[(len(b.hosts)-1+b.checks)%len(b.hosts)]
	f := workflow.ExecuteActivity(checking(ctx, queue, b.names[queue], b.checks), spec.ActivityBarrierCheck,
		spec.BarrierCheckInput{Run: b.in.Run, Missing: b.asked})
	b.selector.AddFuture(f, func(f workflow.Future) {
		var out spec.BarrierCheckOutput
		err := f.Get(ctx, &out)
		var cancelled *temporal.CanceledError
		switch {
		case errors.As(err, &cancelled):
			return // a newer check is under way
		case err != nil:
			b.checks++
		default:
			b.checks = 0
			b.checked(out)
		}
		if b.round.Result() == nil {
			b.checking, b.asked = false, nil
			// The run's loop would also start them, but only after it has set the deadline and
			// received the next signals. In the histories of open rounds, the timer comes before
			// these.
			b.startChecks(parent)
		}
	})
}

func (b *barrierWorkflow) checked(out spec.BarrierCheckOutput) {
	if out.RunEnded != "" {
		b.round.Step(barrier.RunEnded{How: out.RunEnded})
	}
	for _, t := range out.Ended {
		b.round.Step(barrier.Ended{Task: t.Task, How: t.How})
	}
}

func checking(ctx workflow.Context, queue, host string, failed int) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    checkLasts,
		HeartbeatTimeout:       checkSilence,
		ScheduleToStartTimeout: min(checkTaken<<min(failed, 10), checkTakenMost),
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: checkInterval,
		},
		Summary: "ask " + markdown.Name(host) + " who is missing",
	})
}
