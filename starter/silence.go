package starter

import (
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// silentAfter is the time without a heartbeat after which a host counts as silent: hosts with
// the most tasks send one every 8 seconds.
const silentAfter = 12 * time.Second

// silentHosts returns the hosts that hold none of the activities of their tasks, or send no
// heartbeats for them. host maps an activity to the host of its task. One heartbeat is enough
// for a host.
func silentHosts(now time.Time, activities []*workflowpb.PendingActivityInfo, host func(id string) string) []outcome.SilentHost {
	hosts := map[string]outcome.SilentHost{}
	for _, a := range activities {
		name := host(a.GetActivityId())
		if isAsked(a) {
			name = spec.HostOfQueue(a.GetActivityOptions().GetTaskQueue().GetName())
		}
		if name == "" {
			continue
		}
		last, known := hosts[name]
		heard, givenUp := signOfLife(now, a)
		if heard.After(last.Heard) {
			last.Heard = heard
		}
		// The first activity that is given up ends the wait for all.
		if !known || !givenUp.IsZero() && (last.GivenUp.IsZero() || givenUp.Before(last.GivenUp)) {
			last.GivenUp = givenUp
		}
		last.Host = name
		hosts[name] = last
	}
	var silent []outcome.SilentHost
	for _, h := range hosts {
		if now.Sub(h.Heard) >= silentAfter {
			silent = append(silent, h)
		}
	}
	slices.SortFunc(silent, func(a, b outcome.SilentHost) int { return strings.Compare(a.Host, b.Host) })
	return silent
}

// signOfLife returns the time of the last heartbeat of an activity, and when its host is given
// up without another.
func signOfLife(now time.Time, a *workflowpb.PendingActivityInfo) (heard, givenUp time.Time) {
	o := a.GetActivityOptions()
	beat := a.GetLastHeartbeatTime().AsTime()
	taken := a.GetLastStartedTime().AsTime()
	scheduled := a.GetScheduledTime().AsTime()
	lost := a.GetLastFailure().GetTimeoutFailureInfo() != nil
	isScheduled := a.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	switch heard = beat; {
	case isAsked(a):
		return scheduled.Add(-o.GetHeartbeatTimeout().AsDuration()), scheduled.Add(o.GetScheduleToCloseTimeout().AsDuration())
	case lost:
		// An attempt that the server has given to a poll of the host is not a sign of life if the
		// previous attempt was lost: the host may have been cut off with its poll open.
		if beat.Unix() <= 0 {
			heard = a.GetLastAttemptCompleteTime().AsTime().Add(-o.GetHeartbeatTimeout().AsDuration())
		}
	case isScheduled && isFurtherOffer(a.GetActivityId()):
		heard = scheduled.Add(-o.GetHeartbeatTimeout().AsDuration())
	case isScheduled && now.Sub(scheduled) < silentAfter:
		heard = now // it waits for its restart, or the host may not have taken it yet
	case isScheduled && beat.Unix() <= 0:
		heard = scheduled
	case taken.After(beat):
		heard = taken
	}
	if !isScheduled {
		// If the heartbeats stop for that long, the server offers the activity to the host once
		// more.
		last := beat
		if taken.After(last) {
			last = taken
		}
		scheduled = last.Add(o.GetHeartbeatTimeout().AsDuration() + time.Second)
		if len(o.GetRetryPolicy().GetNonRetryableErrorTypes()) > 0 && !isFurtherOffer(a.GetActivityId()) {
			// The run offers the task again by itself, and counts from the last heartbeat.
			scheduled = last
		}
	}
	if wait := o.GetScheduleToStartTimeout().AsDuration(); wait > 0 {
		givenUp = scheduled.Add(wait)
	}
	return heard, givenUp
}

// isAsked reports whether an activity asks a silent host whether it is back.
func isAsked(a *workflowpb.PendingActivityInfo) bool {
	return a.GetActivityType().GetName() == hostapi.MethodName(hostapi.Host.Answer)
}

// isFurtherOffer reports whether an activity is a further offer of a task; see [spec.OfferID]. Its
// host was silent before.
func isFurtherOffer(id string) bool {
	_, rest, _ := strings.Cut(id, "/")
	return strings.Count(rest, ".") > 1
}
