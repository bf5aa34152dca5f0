package closurequeue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// A run may have no queue. Requests do not create one.
func TestNoQueue(t *testing.T) {
	s := queues.New(t, nil)
	q := Attach(s, queues.Run)
	t.Cleanup(q.Close)
	for name, ask := range map[string]func(context.Context) error{
		"status": func(ctx context.Context) error { _, err := q.Status(ctx); return err },
		"join":   q.Join,
		"done":   func(ctx context.Context) error { _, err := q.Done(ctx); return err },
		"fetch":  func(ctx context.Context) error { _, err := q.Fetch(ctx, 1); return err },
		"cancel": func(ctx context.Context) error { _, err := q.Cancel(ctx); return err },
		"schedule": func(ctx context.Context) error {
			r, err := q.Schedule(ctx, newClosure("same", 1))
			if err == nil {
				_, err = r.Wait(ctx)
			}
			return err
		},
	} {
		err := ask(patience(t))
		require.ErrorIs(t, err, ErrNoQueue, name)
		var refused *closure.RefusedError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, `run "iris" has no calls: no task called serve(), and nothing was scheduled`, err.Error(), name)
	}
	assert.Zero(t, s.Updates(closure.UpdateJoin))
}
