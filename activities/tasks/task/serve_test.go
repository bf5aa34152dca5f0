package task

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Once the tasks stop, an idle process leaves with its last request and sends no other, because
// its host may count it as ended by then.
func TestNothingIsSaidTwiceWhenTheTasksStop(t *testing.T) {
	functions := NewFunctions()
	require.NoError(t, functions.Register("f", func(context.Context) error { return nil }))
	s := &server{functions: functions, slots: 1, calls: map[uint64]*call{7: {Call: wire.Call{Closure: closure.Closure{ID: 7}}}}, unanswered: map[uint64]int{}, busy: 1}
	s.stopping = true
	now := time.Now()
	x, _ := s.next(now)
	require.NotNil(t, x, "its call may be cancelled")
	assert.Zero(t, x.request.Slots)
	s.busy = 0
	s.ended(s.calls[7], wire.CallOutcome{})
	last, _ := s.next(now.Add(time.Second))
	require.NotNil(t, last, "the host wants the outcome")
	assert.Len(t, last.request.Done, 1)
	s.answered(x, &wire.ClosuresAnswer{}, nil)
	s.answered(last, &wire.ClosuresAnswer{}, nil)
	again, wait := s.next(now.Add(time.Hour))
	assert.Nil(t, again)
	assert.Equal(t, long, wait)
}
