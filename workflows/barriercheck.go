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
	// checkAfter is how long a round waits before it has somebody look whether the
	// missing can still come. Most rounds are over by then.
	checkAfter = time.Second
	// checkSilence is how long a host may be silent that looks, and checkLasts is longer than
	// any round.
	checkSilence, checkLasts = 20 * time.Second, 10 * 365 * 24 * time.Hour
	// checkInterval bounds the time between two attempts: where a host cannot look it fails, as
	// does a host worker of an earlier version each time that nobody has ended.
	checkInterval = time.Minute
	// checkTaken is how long a host may take to take up a check, at first; a
	// host worker that is away is asked ever more rarely, up to checkTakenMost.
	checkTaken, checkTakenMost = 30 * time.Second, time.Hour
)

// startChecks sees to it that somebody looks after the missing. The check is one
// activity on the queue of a host that has been heard of. It looks after 1, 2, 4 … 60 s
// until somebody has ended, which costs no event. It is asked about those missing when it began: who has arrived since
// does not matter, but who went away since is not in it, and then it begins anew.
func (b *barrierWorkflow) startChecks(ctx workflow.Context) {
	if len(b.hosts) == 0 {
		return
	}
	if b.checking {
		for _, t := range b.round.Missing() {
			if b.asked != nil && !slices.Contains(b.asked, t) {
				b.stopCheck()
				b.check(ctx)
				return
			}
		}
		return
	}
	b.checking = true
	timer := workflow.NewTimerWithOptions(ctx, checkAfter, workflow.TimerOptions{Summary: "look who is missing"})
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
			return // another one is under way
		case err != nil:
			b.checks++
		default:
			b.checks = 0
			b.checked(out)
		}
		if b.round.Result() == nil {
			b.checking, b.asked = false, nil
			// The loop of the run would do so, too, but only after it has set the
			// deadline and heard the next signals: rounds that are open have the timer
			// before those in their histories.
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
		Summary: "who is missing, asked at " + markdown.Name(host),
	})
}
