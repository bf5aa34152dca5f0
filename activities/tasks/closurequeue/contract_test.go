package closurequeue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/tests/queues/contract"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
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
			q := must.Get(closurequeue.Open(t.Context(), s, "", closure.QueueInput{Run: queues.Run}, nil))(t)
			return q
		},
		Release:       func(name string) { close(holds[name]) },
		ContinueAsNew: func(*closurequeue.Queue) { s.ContinueAsNew() },
		End:           func() { s.End("it was terminated") },
	})
}
