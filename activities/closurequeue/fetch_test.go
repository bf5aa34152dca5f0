package closurequeue

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/tests/queues"
)

// Many values are found in one go.
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
	remotes, err := f.FetchAll(patience(t), ids...)
	require.NoError(t, err)
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

// secondQuery fails.
type secondQuery struct {
	Server
	asked int
	err   error
}

func (s *secondQuery) QueryWorkflow(ctx context.Context, workflow, execution, query string, args ...any) (converter.EncodedValue, error) {
	if s.asked++; s.asked == 2 {
		return nil, s.err
	}
	return s.Server.QueryWorkflow(ctx, workflow, execution, query, args...)
}

// What cannot be told is waited for by nobody.
func TestAFetchThatFails(t *testing.T) {
	f := newFixture(t)
	f.schedule(newClosure("wait"))
	f.schedule(newClosure("wait"))
	require.NoError(t, f.Flush(patience(t)))
	s := &secondQuery{Server: f.Server, err: errors.New("no")}
	q := Attach(s, queues.Run)
	t.Cleanup(q.Close)
	_, err := q.Fetch(patience(t), 2)
	require.EqualError(t, err, "no")
	require.Equal(t, 2, s.asked)
	q.mu.Lock()
	assert.Empty(t, q.remotes)
	q.mu.Unlock()
	r, err := q.Fetch(patience(t), 2)
	require.NoError(t, err)
	close(f.release)
	f.assertValue(`"released"`, r)
}

// A server that is away for a moment is waited for, and so is whoever executes the queue.
func TestAFetchWaitsForTheServer(t *testing.T) {
	for _, away := range []error{context.DeadlineExceeded, serviceerror.NewUnavailable(""), serviceerror.NewFailedPrecondition("no poller seen")} {
		f := newFixture(t)
		f.schedule(newClosure("wait"))
		require.NoError(t, f.Flush(patience(t)))
		s := &secondQuery{Server: f.Server, err: away}
		q := Attach(s, queues.Run)
		t.Cleanup(q.Close)
		r, err := q.Fetch(patience(t), 1)
		require.NoError(t, err)
		require.Equal(t, 3, s.asked)
		close(f.release)
		f.assertValue(`"released"`, r)
	}
}
