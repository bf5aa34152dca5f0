package starter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/starter"
)

// at is a look at the workflow task of a run.
type at struct {
	scheduled time.Duration // before or after the first look
	state     enumspb.PendingWorkflowTaskState
	attempt   int32
	none      bool // there is no task
	closed    bool
}

const (
	lies  = enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
	taken = enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED
)

// watched returns a run on the queue q of a server. seen returns its state after a time, and
// polled is the time of the queue's last poll.
func watched(seen func(after time.Duration) at, polled time.Duration) *starter.Run {
	began := time.Now()
	c := &mocks.Client{}
	describe := c.On("DescribeWorkflowExecution", mock.Anything, "x", "")
	describe.Run(func(mock.Arguments) {
		s := seen(time.Since(began))
		info := &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, TaskQueue: "q"}
		if s.closed {
			info.Status, info.CloseTime = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, timestamppb.Now()
		}
		d := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}
		if !s.none && !s.closed {
			d.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{
				State: s.state, ScheduledTime: timestamppb.New(began.Add(s.scheduled)), Attempt: max(s.attempt, 1),
			}
		}
		describe.Return(d, nil)
	})
	c.On("DescribeTaskQueue", mock.Anything, "q", enumspb.TASK_QUEUE_TYPE_WORKFLOW).Return(&workflowservice.DescribeTaskQueueResponse{
		Pollers: []*taskqueuepb.PollerInfo{{LastAccessTime: timestamppb.New(began.Add(polled))}},
	}, nil)
	return starter.Get(c, "x", "")
}

func TestUnexecuted(t *testing.T) {
	const longAgo, day = -4 * time.Minute, -24 * time.Hour
	always := func(a at) func(time.Duration) at { return func(time.Duration) at { return a } }
	for name, c := range map[string]struct {
		seen   func(after time.Duration) at
		polled time.Duration
		nobody bool
		stuck  int // the attempt that the error has
	}{
		"nothing waits":             {seen: always(at{none: true}), polled: longAgo},
		"it has ended":              {seen: always(at{closed: true}), polled: longAgo},
		"nobody ever came":          {seen: always(at{state: lies, scheduled: day}), polled: 2 * day, nobody: true},
		"its host worker is gone":   {seen: always(at{state: lies}), polled: longAgo, nobody: true},
		"its host worker is busy":   {seen: always(at{state: lies}), polled: time.Second, stuck: 1},
		"it fails again and again":  {seen: func(after time.Duration) at { return at{state: lies, scheduled: after, attempt: 7} }, polled: time.Hour, stuck: 7},
		"it is done in a second":    {seen: func(after time.Duration) at { return at{state: taken, none: after > time.Second} }, polled: longAgo},
		"others follow, as they do": {seen: func(after time.Duration) at { return at{state: taken, scheduled: after.Truncate(time.Second)} }, polled: longAgo},
		"who had it cached is gone": {
			seen: func(after time.Duration) at {
				if after < 2*time.Second {
					return at{state: lies}
				}
				return at{state: lies, scheduled: 2 * time.Second}
			},
			polled: longAgo, nobody: true,
		},
		"who has started it was killed": {
			seen: func(after time.Duration) at {
				if after < 5*time.Second {
					return at{state: taken}
				}
				return at{state: lies, scheduled: 5 * time.Second, attempt: 2}
			},
			polled: longAgo, nobody: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				nobody, err := watched(c.seen, c.polled).Unexecuted(ctx)
				assert.Equal(t, c.nobody, nobody)
				if c.stuck == 0 {
					require.NoError(t, err)
					return
				}
				var stuck *starter.StuckError
				require.ErrorAs(t, err, &stuck)
				assert.Equal(t, c.stuck, stuck.Attempt)
			})
		})
	}
}

func TestAwaitUnexecuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := watched(func(after time.Duration) at { return at{none: after < time.Hour, state: lies, scheduled: time.Hour} }, -time.Hour)
		require.NoError(t, r.AwaitUnexecuted(t.Context()))
		assert.GreaterOrEqual(t, time.Since(began), time.Hour)

		r = watched(func(after time.Duration) at { return at{none: true, closed: after > time.Hour} }, -time.Hour)
		var ended *starter.EndedError
		require.ErrorAs(t, r.AwaitUnexecuted(t.Context()), &ended)
	})
}
