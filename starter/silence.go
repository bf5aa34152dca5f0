package starter

import (
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// silentAfter is how long a host must go without heartbeats to count as silent. Hosts with the
// maximum number of tasks send one every 8 seconds.
const silentAfter = 12 * time.Second

// silentHosts returns the hosts that hold none of their tasks' activities, or send no heartbeats
// for them. host maps an activity to its task's host. One heartbeat is enough for a host. The
// run gives a host up after givenUp, or never if that is 0.
func silentHosts(now time.Time, givenUp time.Duration, activities []*workflowpb.PendingActivityInfo, host func(id string) string) []outcome.SilentHost {
	last := map[string]time.Time{}
	for _, a := range activities {
		name := host(a.GetActivityId())
		if isAsked(a) {
			name = spec.HostOfQueue(a.GetActivityOptions().GetTaskQueue().GetName())
		}
		if name == "" {
			continue
		}
		if at := heard(now, a); at.After(last[name]) {
			last[name] = at
		}
	}
	var silent []outcome.SilentHost
	for _, name := range slices.Sorted(maps.Keys(last)) {
		h := outcome.SilentHost{Host: name, Heard: last[name]}
		if givenUp > 0 {
			h.GivenUp = h.Heard.Add(givenUp)
		}
		if now.Sub(h.Heard) >= silentAfter {
			silent = append(silent, h)
		}
	}
	return silent
}

// heard returns the time of an activity's last heartbeat.
func heard(now time.Time, a *workflowpb.PendingActivityInfo) time.Time {
	timeout := a.GetActivityOptions().GetHeartbeatTimeout().AsDuration()
	beat, taken, scheduled := a.GetLastHeartbeatTime().AsTime(), a.GetLastStartedTime().AsTime(), a.GetScheduledTime().AsTime()
	switch isScheduled := a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED; {
	case isAsked(a):
		return scheduled.Add(-timeout)
	case a.GetLastFailure().GetTimeoutFailureInfo() != nil && beat.Unix() <= 0:
		return a.GetLastAttemptCompleteTime().AsTime().Add(-timeout)
	case a.GetLastFailure().GetTimeoutFailureInfo() != nil:
		// If the previous attempt was lost, handing a new attempt to the host's poll is not a
		// sign of life, because the host may have been cut off with its poll open.
		return beat
	case isScheduled && now.Sub(scheduled) < silentAfter:
		return now // it waits for its restart, or the host may not have taken it yet
	case isScheduled && beat.Unix() <= 0:
		return scheduled
	case taken.After(beat):
		return taken
	}
	return beat
}

// isAsked reports whether an activity asks a silent host if it is back. Its heartbeat timeout is
// how long the host had been silent.
func isAsked(a *workflowpb.PendingActivityInfo) bool {
	return a.GetActivityType().GetName() == hostapi.MethodName(hostapi.Host.Answer)
}
