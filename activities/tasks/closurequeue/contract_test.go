package closurequeue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/tests/queues/contract"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The queue of package queues behaves like the real one: package e2e runs the same script
// with that.
func TestTheQueueOfTestsIsLikeTheRealOne(t *testing.T) {
	holds := map[string]chan struct{}{}
	for _, name := range []string{"never", "cancelled", "long", "for ever"} {
		holds[name] = make(chan struct{})
	}
	s := queues.New(t, map[string]queues.Function{
		"square": func(_ context.Context, args []any, _ map[string]any) (any, error) {
			i := args[0].(float64)
			return i * i, nil
		},
		"fail": func(_ context.Context, args []any, _ map[string]any) (any, error) {
			return nil, errors.New(args[0].(string))
		},
		"counter": func(_ context.Context, args []any, _ map[string]any) (any, error) {
			n := args[0].(float64)
			return &n, nil
		},
		"count": func(_ context.Context, args []any, _ map[string]any) (any, error) {
			n := args[0].(*float64)
			*n++
			return []any{"worker-0", *n}, nil
		},
		"hold": func(ctx context.Context, args []any, _ map[string]any) (any, error) {
			select {
			case <-holds[args[0].(string)]:
				return args[0], nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	contract.Check(t, contract.Queue{
		Server: s, Run: queues.Run,
		Open: func() *closurequeue.Queue {
			q := must.Get(closurequeue.Open(t.Context(), s, "", closure.QueueInput{Run: queues.Run}))(t)
			return q
		},
		Release:       func(name string) { close(holds[name]) },
		ContinueAsNew: func(*closurequeue.Queue) { s.ContinueAsNew() },
		End:           func() { s.End("it was terminated") },
	})
}

// busy is a server that accepts no update, or accepts one and forgets it.
type busy struct {
	client.Client
	err   error
	takes time.Duration
}

func (b *busy) UpdateWorkflow(ctx context.Context, _ client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(b.takes):
		return nil, b.err
	}
}

// If a server does not accept a request for long, a warning is logged once a minute, with the
// remedy.
func TestARequestInVainIsToldOf(t *testing.T) {
	full := serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, "limit on number of concurrent in-flight updates has been reached (10)")
	for name, test := range map[string]struct {
		server busy
		lasts  time.Duration
		told   int
	}{
		"a moment":             {busy{err: full}, 4 * time.Second, 0},
		"for longer":           {busy{err: full}, 30 * time.Second, 1},
		"for minutes":          {busy{err: full}, 150 * time.Second, 3},
		"slow answers":         {busy{err: full, takes: 10 * time.Second}, 30 * time.Second, 1},
		"going on elsewhere":   {busy{err: temporal.NewApplicationError("continued as new", spec.ErrTryAgain)}, time.Minute, 0},
		"taken, and forgotten": {busy{err: errors.New("the execution is over"), takes: time.Minute}, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := closurequeue.NewClient(&test.server, spec.RunRef{WorkflowID: "iris", RunID: "first"})
				var told []string
				c.Warn = func(request string, err error) {
					assert.Equal(t, closure.UpdateCancelClosures, request)
					require.ErrorIs(t, err, full)
					told = append(told, err.Error())
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.lasts)
				defer cancel()
				_, err := c.Cancel(ctx, closure.CancelRequest{})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Len(t, told, test.told)
				for _, text := range told {
					assert.Contains(t, text, "has been reached (10); raise history.maxInFlightUpdates in the server's dynamic configuration")
				}
			})
		})
	}
}
