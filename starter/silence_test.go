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

	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A silent host is named within 20 s, with the time when it will be given up.
func TestASilentHostIsNamed(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s int) *timestamppb.Timestamp { return timestamppb.New(start.Add(time.Duration(s) * time.Second)) }
	fenced := &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(20 * time.Second)}
	started := func(id string, beat int, o *activitypb.ActivityOptions) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{
			ActivityId: id, State: enumspb.PENDING_ACTIVITY_STATE_STARTED, Attempt: 1,
			ScheduledTime: at(0), LastStartedTime: at(1), LastHeartbeatTime: at(beat), ActivityOptions: o,
		}
	}
	timedOut := started("gpu-2/0", 10, fenced)
	timedOut.State, timedOut.Attempt, timedOut.ScheduledTime = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 2, at(31)
	timedOut.LastFailure = &failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{}}}
	// The server gave the next attempt to the poll that was open when the host was cut off.
	again := started("gpu-2/0", 10, fenced)
	again.Attempt, again.LastStartedTime, again.LastFailure = 2, at(31), timedOut.LastFailure
	// It was cut off before its first heartbeat.
	never := started("gpu-2/0", 0, fenced)
	never.LastHeartbeatTime, never.LastAttemptCompleteTime = nil, at(21)
	never.Attempt, never.LastStartedTime, never.LastFailure = 2, at(22), timedOut.LastFailure
	back := started("gpu-2/0", 39, fenced)
	back.Attempt, back.LastStartedTime, back.LastFailure = 2, at(38), timedOut.LastFailure
	restarting := started("gpu-3/0", 10, fenced)
	restarting.State, restarting.Attempt, restarting.ScheduledTime = enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, 2, at(600)
	restarting.LastFailure = &failurepb.Failure{}
	// The run asks whether the host is back.
	asked := &workflowpb.PendingActivityInfo{
		ActivityId: "77", ActivityType: &commonpb.ActivityType{Name: "Answer"}, State: enumspb.PENDING_ACTIVITY_STATE_STARTED, Attempt: 2,
		ScheduledTime: at(30), LastStartedTime: at(31), ActivityOptions: &activitypb.ActivityOptions{
			TaskQueue: &taskqueuepb.TaskQueue{Name: spec.InstanceQueue(spec.TaskQueue, "gpu-2", "i")}, HeartbeatTimeout: durationpb.New(20 * time.Second),
		},
	}

	for _, c := range []struct {
		name       string
		now        int
		activities []*workflowpb.PendingActivityInfo
		heard      int // 0: the host is not silent
	}{
		{"all is well", 19, []*workflowpb.PendingActivityInfo{started("gpu-2/0", 10, fenced)}, 0},
		{"one of its tasks is heard of", 40, []*workflowpb.PendingActivityInfo{started("gpu-2/0", 10, fenced), started("gpu-2/1", 39, fenced)}, 0},
		{"silent", 24, []*workflowpb.PendingActivityInfo{started("gpu-1/0", 23, fenced), started("gpu-2/0", 10, fenced)}, 10},
		{"its attempt has timed out", 32, []*workflowpb.PendingActivityInfo{timedOut}, 10},
		{"its next attempt is taken by nobody", 32, []*workflowpb.PendingActivityInfo{again}, 10},
		{"it was never heard of", 32, []*workflowpb.PendingActivityInfo{never}, 1},
		{"it is asked whether it is back", 32, []*workflowpb.PendingActivityInfo{asked}, 10},
		{"it is back", 40, []*workflowpb.PendingActivityInfo{back}, 0},
		{"it waits to be started again", 300, []*workflowpb.PendingActivityInfo{restarting}, 0},
		{"not a task", 300, []*workflowpb.PendingActivityInfo{started("other", 10, fenced)}, 0},
	} {
		now := start.Add(time.Duration(c.now) * time.Second)
		var want []outcome.SilentHost
		if heard := start.Add(time.Duration(c.heard) * time.Second).UTC(); c.heard > 0 {
			want = []outcome.SilentHost{{Host: "gpu-2", Heard: heard, GivenUp: heard.Add(2 * time.Minute)}}
		}
		got := silentHosts(now, 2*time.Minute, c.activities, func(id string) string { return map[bool]string{true: id[:min(5, len(id))]}[id != "other"] })
		assert.Equal(t, want, got, c.name)
	}
	kept := silentHosts(start.Add(time.Hour), 0, []*workflowpb.PendingActivityInfo{started("gpu-2/0", 10, nil)}, func(string) string { return "gpu-2" })
	assert.Zero(t, kept[0].GivenUp)
}
