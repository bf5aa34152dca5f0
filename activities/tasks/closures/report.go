package closures

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// reportAgain is the time before each try of a report, which collects changes, and reportWarnsAfter
// the number of failures that log a warning. These failures take half a second, longer than a
// single lost answer would delay the report.
var reportAgain = retry.Backoff{First: 5 * time.Millisecond, Most: 2 * time.Second}

const reportWarnsAfter = 7

// changedTasks makes sendReports send a report.
func (b *Broker) changedTasks() {
	select {
	case b.due <- struct{}{}:
	default:
	}
}

// sendReports reports which tasks serve, until the broker is closed.
func (b *Broker) sendReports() {
	var reported []closure.ServingTask
	for {
		select {
		case <-b.due:
		case <-b.ctx.Done():
			return
		}
		again := reportAgain
		for tries := 1; again.Sleep(b.ctx) == nil; tries++ {
			list := b.servingTasks()
			if reported != nil && slices.Equal(list, reported) {
				break
			}
			err := b.Report(b.ctx, list)
			if err == nil {
				reported = list
				break
			}
			if tries == reportWarnsAfter {
				b.Log.Warn("could not notify the call queue which tasks serve; retrying", zap.Error(err))
			}
		}
	}
}

// servingTasks returns the serving tasks, never nil.
func (b *Broker) servingTasks() []closure.ServingTask {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []closure.ServingTask{}
	for _, p := range b.processes {
		if p.serves() {
			list = append(list, closure.ServingTask{Task: p.task, Slots: p.slots})
		}
	}
	slices.SortFunc(list, func(a, b closure.ServingTask) int { return strings.Compare(a.Task, b.Task) })
	return list
}
