package closures

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// reportAgain is the time between tries of a report, and reportWarnsAfter the number of
// successive failures after which a warning is logged. They take most of a second, which is more
// than a single lost answer.
var reportAgain = retry.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

const reportWarnsAfter = 5

// changed schedules a report of the serving processes.
func (b *serving) changed() {
	if b.reporting != nil || b.isClosed() {
		return
	}
	after := reportAfter
	if b.successor && !b.settled {
		// Until the other processes have returned, the last report of the earlier broker is
		// right.
		after = max(after, time.Until(b.started.Add(settleAfter)))
	}
	b.reporting = time.AfterFunc(after, b.report)
}

func (b *serving) report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reporting = nil
	list := b.servingTasks()
	same := b.told && slices.EqualFunc(list, b.reported, sameServing)
	b.reported, b.told = list, true
	if !same {
		b.sendReport()
	}
}

func (b *serving) sendReport() {
	select {
	case b.due <- struct{}{}:
	default:
	}
}

// TellAgain repeats the last report. After the queue has lost the closures that it gave to a
// host, it gives the host no more until the host reports again.
func (b *Broker) TellAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told {
		b.sendReport()
	}
}

// sendReports sends the reports until the broker is closed.
func (b *serving) sendReports() {
	for {
		select {
		case <-b.due:
		case <-b.ctx.Done():
			return
		}
		again := reportAgain
		for tries := 1; ; tries++ {
			b.mu.Lock()
			list := b.reported
			b.mu.Unlock()
			err := b.Report(b.ctx, list)
			if err == nil {
				break
			}
			level := zap.DebugLevel
			if tries == reportWarnsAfter {
				level = zap.WarnLevel
			}
			b.Log.Log(level, "the call queue could not be notified which tasks serve; retrying", zap.Error(err))
			if again.Sleep(b.ctx) != nil {
				return
			}
		}
	}
}

func (b *serving) servingTasks() []closure.ServingTask {
	var list []closure.ServingTask
	for _, p := range b.processes {
		if p.serves() {
			list = append(list, closure.ServingTask{Task: p.task, Process: p.name, Slots: p.slots, Functions: p.functions})
		}
	}
	slices.SortFunc(list, func(a, b closure.ServingTask) int {
		if c := strings.Compare(a.Task, b.Task); c != 0 {
			return c
		}
		return strings.Compare(a.Process, b.Process)
	})
	return list
}

func sameServing(a, b closure.ServingTask) bool {
	return a.Task == b.Task && a.Process == b.Process && a.Slots == b.Slots && slices.Equal(a.Functions, b.Functions)
}
