package call

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// A command that waits for a paused queue, or for closures that no task serves, reports that,
// and reports each change.
func TestACommandSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of the two
		var now closure.QueueStatus
		var said []string
		ctx, cancel := context.WithCancel(t.Context())
		go tellWaits(ctx, func(context.Context) (closure.QueueStatus, error) {
			mu.Lock()
			defer mu.Unlock()
			return now, nil
		}, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		})
		for _, s := range []closure.QueueStatus{
			{},
			{Unserved: []closure.Unserved{{Function: "add", Queued: 1}, {Function: "mul", Task: "worker-3", Queued: 2}}},
			{Unserved: []closure.Unserved{{Function: "add", Queued: 1}, {Function: "mul", Task: "worker-3", Queued: 2}}},
			{},
			{State: closure.QueuePaused, Paused: "lunch", Counts: closure.QueueCounts{Queued: 1}},
			{State: closure.QueuePaused, Paused: "lunch"},
		} {
			mu.Lock()
			now = s
			mu.Unlock()
			time.Sleep(askAgain)
			synctest.Wait()
		}
		cancel()
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []string{
			"1 queued call waits until a task serves that has registered add; 2 queued calls wait until worker-3 serves: only that task may call mul",
			"the queue is paused (lunch) until `clusterrun call resume RUN`",
		}, said)
	})
}
