package starter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A silent host is named within 20 s, with the consequence and its time.
func TestASilentHostIsNamed(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s int) *timestamppb.Timestamp { return timestamppb.New(start.Add(time.Duration(s) * time.Second)) }
	fenced := &activitypb.ActivityOptions{
		HeartbeatTimeout: durationpb.New(20 * time.Second), ScheduleToStartTimeout: durationpb.New(100 * time.Second),
	}
	offering := &activitypb.ActivityOptions{
		HeartbeatTimeout: durationpb.New(15 * time.Second), ScheduleToStartTimeout: durationpb.New(25 * time.Second),
		RetryPolicy: &commonpb.RetryPolicy{NonRetryableErrorTypes: []string{"TemporalTimeout:Heartbeat"}},
	}
	started := func(id string, beat int, o *activitypb.ActivityOptions) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{
			ActivityId: id, State: enumspb.PENDING_ACTIVITY_STATE_STARTED, Attempt: 1,
			ScheduledTime: at(0), LastStartedTime: at(1), LastHeartbeatTime: at(beat), ActivityOptions: o,
		}
	}
	timedOut := started("gpu-2/0", 10, fenced)
	timedOut.State, timedOut.Attempt, timedOut.ScheduledTime = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 2, at(31)
	timedOut.LastFailure = &failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{}}}
	// The server has given the next attempt to the poll that the host had open when it was cut off.
	again := started("gpu-2/0", 10, fenced)
	again.Attempt, again.LastStartedTime, again.LastFailure = 2, at(31), timedOut.LastFailure
	// It was cut off before its first beat.
	never := started("gpu-2/0", 0, fenced)
	never.LastHeartbeatTime, never.LastAttemptCompleteTime = nil, at(21)
	never.Attempt, never.LastStartedTime, never.LastFailure = 2, at(22), timedOut.LastFailure
	back := started("gpu-2/0", 39, fenced)
	back.Attempt, back.LastStartedTime, back.LastFailure = 2, at(38), timedOut.LastFailure
	restarting := started("gpu-3/0", 10, fenced)
	restarting.State, restarting.Attempt, restarting.ScheduledTime = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 2, at(600)
	restarting.LastFailure = &failurepb.Failure{}
	// The run offers the task again, since the heartbeats had stopped for 20 s.
	offered := &workflowpb.PendingActivityInfo{
		ActivityId: "gpu-2/0.0.1", State: enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, Attempt: 1, ScheduledTime: at(30), ActivityOptions: fenced,
	}
	// The run asks whether it is back.
	asked := &workflowpb.PendingActivityInfo{
		ActivityId: "77", ActivityType: &commonpb.ActivityType{Name: "Answer"}, State: enumspb.PENDING_ACTIVITY_STATE_STARTED, Attempt: 2,
		ScheduledTime: at(30), LastStartedTime: at(31), ActivityOptions: &activitypb.ActivityOptions{
			TaskQueue: &taskqueuepb.TaskQueue{Name: spec.InstanceQueue(spec.TaskQueue, "gpu-2", "i")}, HeartbeatTimeout: durationpb.New(20 * time.Second), ScheduleToCloseTimeout: durationpb.New(18 * time.Second),
		},
	}

	for _, c := range []struct {
		name       string
		now        int
		activities []*workflowpb.PendingActivityInfo
		want       []string
	}{
		{"all is well", 19, []*workflowpb.PendingActivityInfo{started("gpu-2/0", 10, fenced)}, nil},
		{"one of its tasks is heard of", 40, []*workflowpb.PendingActivityInfo{started("gpu-2/0", 10, fenced), started("gpu-2/1", 39, fenced)}, nil},
		{"silent", 24, []*workflowpb.PendingActivityInfo{started("gpu-1/0", 23, fenced), started("gpu-2/0", 10, fenced)},
			[]string{"no heartbeat from host gpu-2 for 14s; it will be declared lost in 1m47s"}},
		{"silent, in a run with two bounds", 24, []*workflowpb.PendingActivityInfo{started("gpu-2/0", 10, offering)},
			[]string{"no heartbeat from host gpu-2 for 14s; it will be declared lost in 11s"}},
		{"its attempt has timed out", 32, []*workflowpb.PendingActivityInfo{timedOut}, []string{"no heartbeat from host gpu-2 for 22s; it will be declared lost in 1m39s"}},
		{"its next attempt is taken by nobody", 32, []*workflowpb.PendingActivityInfo{again}, []string{"no heartbeat from host gpu-2 for 22s; it will be declared lost in 2m0s"}},
		{"it was never heard of", 32, []*workflowpb.PendingActivityInfo{never}, []string{"no heartbeat from host gpu-2 for 31s; it will be declared lost in 1m51s"}},
		{"it is offered its task again", 32, []*workflowpb.PendingActivityInfo{offered}, []string{"no heartbeat from host gpu-2 for 22s; it will be declared lost in 1m38s"}},
		{"it is asked whether it is back", 32, []*workflowpb.PendingActivityInfo{asked}, []string{"no heartbeat from host gpu-2 for 22s; it will be declared lost in 16s"}},
		{"it is back", 40, []*workflowpb.PendingActivityInfo{back}, nil},
		{"the time is over", 132, []*workflowpb.PendingActivityInfo{timedOut}, []string{"no heartbeat from host gpu-2 for 2m2s; it is being declared lost"}},
		{"kept", 3610, []*workflowpb.PendingActivityInfo{started("gpu-2/0", 10, nil)},
			[]string{"no heartbeat from host gpu-2 for 1h0m0s; the run waits for it (on_disconnect: keep)"}},
		{"it waits to be started again", 300, []*workflowpb.PendingActivityInfo{restarting}, nil},
		{"not a task", 300, []*workflowpb.PendingActivityInfo{started("other", 10, fenced)}, nil},
	} {
		now := start.Add(time.Duration(c.now) * time.Second)
		var got []string
		for _, h := range silentHosts(now, c.activities, func(id string) string { return map[bool]string{true: id[:min(5, len(id))]}[id != "other"] }) {
			got = append(got, h.Text(now))
		}
		assert.Equal(t, c.want, got, c.name)
	}
}
