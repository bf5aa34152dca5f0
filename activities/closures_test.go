package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/closures"
	"github.com/clusterrun/clusterrun/activities/taskservices"
	"github.com/clusterrun/clusterrun/workflows/closure"
)

// listening takes in what queues are told.
type listening struct {
	taskservices.Queues
	messages chan closure.ServingMessage
}

func (l *listening) Tell(_ context.Context, _ closure.QueueInput, m closure.ServingMessage) error {
	l.messages <- m
	return nil
}

// forgetful does not know any activity.
type forgetful struct{ Server }

func (forgetful) RecordActivityHeartbeat(context.Context, []byte, ...any) error {
	return serviceerror.NewNotFound("no such activity")
}

// servingHost is a host whose broker has reported one task, and the queue's ears.
func servingHost(t *testing.T) (*Host, *brokered, *listening) {
	t.Helper()
	queue := &listening{messages: make(chan closure.ServingMessage, 10)}
	h := &Host{Config: Config{Name: "host-a", Queue: "q", Queues: queue, Server: forgetful{}, Log: zap.NewNop()}, now: time.Now, lastHeard: time.Now()}
	h.brokers.host = h
	s := &brokered{life: "life", changed: make(chan struct{}, 1), ended: make(chan struct{})}
	s.Broker = closures.NewBroker(closures.Config{Log: h.Log, Changed: s.changes})
	t.Cleanup(s.Close)
	h.brokers.all = map[servedKey]*brokered{{}: s}
	go h.brokers.tell(s)
	t.Cleanup(func() { close(s.ended) })
	return h, s, queue
}

// The queue of a host that died gives it nothing more. One that only seemed dead says
// that it is there, when it sees that what it holds was lost.
func TestAHostWhoseLeaseWasLostSaysThatItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, queue := servingHost(t)
		s.changes([]closure.ServingTask{{Task: "worker-0", Slots: 1}})
		first := <-queue.messages
		leased, release := context.WithCancelCause(t.Context())
		h.keepLease(t.Context(), leased, s, nil, func() closure.LeaseBeat { return closure.LeaseBeat{} }, release)
		require.Error(t, context.Cause(leased))
		again := <-queue.messages
		assert.Equal(t, first.Serving, again.Serving)
		assert.Equal(t, first.Broker, again.Broker)
		assert.Greater(t, again.Seq, first.Seq)
	})
}

// One that holds nothing says so after a silence that was long enough for that.
func TestAHostThatWasCutOffSaysThatItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, queue := servingHost(t)
		h.lastHeard = time.Now().Add(-time.Hour)
		h.heard(nil)
		synctest.Wait()
		assert.Empty(t, queue.messages, "nobody knows yet who serves")
		assert.Empty(t, (<-queue.messages).Serving, "the broker is settled")
		s.changes([]closure.ServingTask{{Task: "worker-0", Slots: 1}})
		<-queue.messages
		for range 10 {
			time.Sleep(maxBeat + beatPatience)
			h.heard(nil)
		}
		time.Sleep(30 * time.Second)
		h.heard(serviceerror.NewUnavailable("away"))
		synctest.Wait()
		assert.Empty(t, queue.messages)
		h.heard(nil)
		synctest.Wait()
		assert.Len(t, queue.messages, 1)
	})
}
