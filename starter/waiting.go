package starter

import (
	"slices"
	"strings"
	"time"

	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Waiting is a place that a run waits for.
type Waiting struct {
	// Host is the host that the spec names; empty: any will do.
	Host string `json:"host,omitempty"`
	// Queue is the task queue of the host workers that are asked.
	Queue string `json:"queue"`
	// Refusal is what the last of them said; empty: none has answered yet.
	Refusal string `json:"refusal,omitempty"`
	// Until is when the run gives up.
	Until time.Time `json:"until,omitzero"`
}

// waiting finds what a run waits for among its pending activities.
func waiting(queue string, pending []*workflowpb.PendingActivityInfo) []Waiting {
	var all []Waiting
	for _, a := range pending {
		switch a.GetActivityType().GetName() {
		case spec.ActivityReserve, spec.ActivityPrepare:
		default:
			continue
		}
		w := Waiting{Queue: a.GetActivityOptions().GetTaskQueue().GetName(), Refusal: failureText(a.GetLastFailure())}
		if host, ok := strings.CutPrefix(w.Queue, spec.HostQueue(queue, "")); ok {
			w.Host, _, _ = strings.Cut(host, "/")
		}
		if t := a.GetExpirationTime(); t != nil {
			w.Until = t.AsTime()
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Waiting) int { return strings.Compare(a.Queue, b.Queue) })
	return all
}

// failureText returns why an attempt of an activity failed, for people.
func failureText(f *failurepb.Failure) string {
	if f.GetTimeoutFailureInfo() != nil {
		return spec.NoAnswerText
	}
	return f.GetMessage()
}
