package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// listening receives the messages to queues.
type listening struct {
	taskservices.Queues
	messages chan closure.ServingMessage
}

func (l *listening) Tell(_ context.Context, _ closure.QueueInput, m closure.ServingMessage) error {
	l.messages <- m
	return nil
}

// forgetful is a server that does not know any activity.
type forgetful struct{ client.Client }

func (forgetful) RecordActivityHeartbeat(context.Context, []byte, ...any) error {
	return serviceerror.NewNotFound("no such activity")
}

// The queue gives no more closures to a host that died. A host that only seemed dead reports
// its presence once its lease was lost.
func TestAHostWhoseLeaseWasLostSaysThatItIsThere(t *testing.T) {
	queue := &listening{messages: make(chan closure.ServingMessage, 10)}
	s := servingOf(t, queue)
	s.asks("a", 1, 1)
	first := <-queue.messages
	require.Len(t, first.Serving, 1)
	srv := &server.Server{}
	srv.Connect(forgetful{})
	s.do(func(ctx context.Context) error {
		_, err := server.NewClosures(srv, s.Brokers()).RunClosures(ctx, closure.Lease{Run: s.of(), Closures: []closure.Closure{{ID: 1, Function: "g"}}})
		require.ErrorContains(t, err, "no such activity")
		return nil
	})
	again := <-queue.messages
	assert.Equal(t, first.Serving, again.Serving)
	assert.Equal(t, first.Broker, again.Broker)
	assert.Greater(t, again.Seq, first.Seq)
}

// A host without leases reports its presence after a silence that is long enough for the queue
// to give it up.
func TestAHostThatWasCutOffSaysThatItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := &listening{messages: make(chan closure.ServingMessage, 10)}
		s := servingOf(t, queue)
		defer s.Close()
		require.NotNil(t, s.Brokers().Serving(s.run))
		s.watch.mu.Lock()
		s.watch.lastHeard = time.Now().Add(-time.Hour)
		s.watch.mu.Unlock()
		s.watch.heard(nil)
		synctest.Wait()
		assert.Empty(t, queue.messages, "nobody knows yet who serves")
		assert.Empty(t, (<-queue.messages).Serving, "the broker is settled")
		for range 10 {
			time.Sleep(15 * time.Second)
			s.watch.heard(nil)
		}
		time.Sleep(30 * time.Second)
		s.watch.heard(serviceerror.NewUnavailable("away"))
		synctest.Wait()
		assert.Empty(t, queue.messages)
		s.watch.heard(nil)
		synctest.Wait()
		assert.Len(t, queue.messages, 1)
	})
}
