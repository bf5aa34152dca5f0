package closurequeue

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Many values are looked up in one request.
func TestFetchAll(t *testing.T) {
	f := newFixture(t)
	const n = 1500
	var ids []uint64
	for i := range n {
		f.schedule(newClosure("same", i))
		ids = append(ids, uint64(i)+1)
	}
	require.NoError(t, f.Join(patience(t)))
	f.ContinueAsNew()
	f.schedule(newClosure("wait"))
	require.NoError(t, f.Flush(patience(t)))
	f.Queue = f.open()
	before := f.Reads()
	ids = append(ids, n+1, 7, n+1)
	remotes := must.Get(f.FetchAll(patience(t), ids...))(t)
	require.Len(t, remotes, n+3)
	assert.LessOrEqual(t, f.Reads()-before, 4, "of each of two executions")
	for i := range n {
		f.assertValue(text(i), remotes[i])
	}
	f.assertOpen(remotes[n])
	f.assertValue("6", remotes[n+1])
	close(f.release)
	f.assertValue(`"released"`, remotes[n])
	f.assertValue(`"released"`, remotes[n+2])
}

// secondQuery is a server whose second query fails.
type secondQuery struct {
	client.Client
	asked int
	err   error
}

func (s *secondQuery) QueryWorkflow(ctx context.Context, workflow, execution, query string, args ...any) (converter.EncodedValue, error) {
	if s.asked++; s.asked == 2 {
		return nil, s.err
	}
	return s.Client.QueryWorkflow(ctx, workflow, execution, query, args...)
}

// If outcomes cannot be looked up, no call waits for them.
func TestAFetchThatFails(t *testing.T) {
	f := newFixture(t)
	f.schedule(newClosure("wait"))
	f.schedule(newClosure("wait"))
	require.NoError(t, f.Flush(patience(t)))
	s := &secondQuery{Client: f.Server, err: errors.New("no")}
	q := Attach(s, queues.Run)
	t.Cleanup(q.Close)
	_, err := q.Fetch(patience(t), 2)
	require.EqualError(t, err, "no")
	require.Equal(t, 2, s.asked)
	q.mu.Lock()
	assert.Empty(t, q.remotes)
	q.mu.Unlock()
	r := must.Get(q.Fetch(patience(t), 2))(t)
	close(f.release)
	f.assertValue(`"released"`, r)
}

// A fetch waits for a server that is away for a moment, and for the worker of the queue.
func TestAFetchWaitsForTheServer(t *testing.T) {
	for _, away := range []error{context.DeadlineExceeded, serviceerror.NewUnavailable(""), serviceerror.NewFailedPrecondition("no poller seen")} {
		f := newFixture(t)
		f.schedule(newClosure("wait"))
		require.NoError(t, f.Flush(patience(t)))
		s := &secondQuery{Client: f.Server, err: away}
		q := Attach(s, queues.Run)
		t.Cleanup(q.Close)
		r := must.Get(q.Fetch(patience(t), 1))(t)
		require.Equal(t, 3, s.asked)
		close(f.release)
		f.assertValue(`"released"`, r)
	}
}

// endsMeanwhile is a server whose run ends after the first lookup of outcomes. A follower of
// the history learns of the end during the second lookup.
type endsMeanwhile struct {
	client.Client
	described  int
	end, known func()
	second     chan struct{}
}

func (s *endsMeanwhile) DescribeWorkflowExecution(ctx context.Context, workflow, execution string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	switch s.described++; s.described {
	case 2: // the lookup of the position from which the history is followed
		s.end()
	case 3:
		close(s.second)
		defer s.known()
	}
	return s.Client.DescribeWorkflowExecution(ctx, workflow, execution)
}

func (s *endsMeanwhile) GetWorkflowHistory(ctx context.Context, workflow, execution string, follow bool, filter enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	if follow {
		select {
		case <-s.second:
		case <-ctx.Done():
		}
	}
	return s.Client.GetWorkflowHistory(ctx, workflow, execution, follow, filter)
}

// The outcomes of a run that ends while its closures are looked up are still returned.
func TestARunThatEndsDuringAFetch(t *testing.T) {
	f := newFixture(t)
	f.schedule(newClosure("wait"))
	require.NoError(t, f.Flush(patience(t)))
	s := &endsMeanwhile{Client: f.Server, second: make(chan struct{}), end: func() { f.Server.End("the run has ended") }}
	q := Attach(s, queues.Run)
	t.Cleanup(q.Close)
	s.known = func() { assert.NoError(t, q.await(patience(t), func() bool { return q.broken != nil })) }
	r := must.Get(q.Fetch(patience(t), 1))(t)
	_, err := r.Wait(patience(t))
	var failed *closure.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, closure.ErrCancelled, failed.Kind)
	assert.Contains(t, failed.Message, "the run has ended")
}
