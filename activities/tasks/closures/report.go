package closures

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// reportAgain is the time between retries of a report, and reportWarnsAfter the number of
// successive failures that log a warning. They take most of a second, which is more than a single
// lost answer.
var reportAgain = retry.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

const reportWarnsAfter = 5

// reportAfter is the time to collect changes in the serving processes.
const reportAfter = 3 * time.Millisecond

// changedTasks schedules a report of serving processes.
func (b *Broker) changedTasks() {
	if b.reporting != nil || b.isClosed() {
		return
	}
	b.reporting = time.AfterFunc(reportAfter, b.report)
}

func (b *Broker) report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reporting = nil
	list := b.servingTasks()
	same := b.reported != nil && slices.Equal(list, b.reported)
	b.reported = list
	if same {
		return
	}
	select {
	case b.due <- struct{}{}:
	default: // it will read this one
	}
}

// sendReports sends reports until the broker is closed.
func (b *Broker) sendReports() {
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

// servingTasks returns the serving tasks, never nil.
func (b *Broker) servingTasks() []closure.ServingTask {
	list := []closure.ServingTask{}
	for _, p := range b.processes {
		if p.serves() {
			list = append(list, closure.ServingTask{Task: p.task, Slots: p.slots})
		}
	}
	slices.SortFunc(list, func(a, b closure.ServingTask) int { return strings.Compare(a.Task, b.Task) })
	return list
}
