package runrecord

import (
	"time"

	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Phase is a phase of a run: queued (until it has hosts), placing (until the hosts are
// prepared), launch (until the first process of each task has started), running (until the event
// that ended the run) or ending.
type Phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// PhaseNames lists the names of the phases in order.
var PhaseNames = []string{"queued", "placing", "launch", "running", "ending"}

// phases returns the phases that a run has reached. Process times are by their hosts' clocks. A
// phase that would end before it began has zero length.
func phases(s *starter.Status, histories []*historypb.History) []Phase {
	var placing, launch, cancelled time.Time
	first := func(at *time.Time, e *historypb.HistoryEvent) {
		if at.IsZero() {
			*at = e.GetEventTime().AsTime()
		}
	}
	local := false
	for _, h := range histories {
		for _, e := range h.GetEvents() {
			local = local || spec.IsLocalQueue(e.GetWorkflowExecutionStartedEventAttributes().GetTaskQueue().GetName())
			activity := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
			child := e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowType().GetName()
			switch {
			case activity == hostapi.Name(hostapi.Host.Reserve),
				local && e.GetWorkflowTaskStartedEventAttributes() != nil: // it includes the reservation
				first(&placing, e)
			case activity == hostapi.Name(hostapi.Host.RunTask), child == spec.GroupWorkflowType:
				first(&launch, e)
			case e.GetWorkflowExecutionCancelRequestedEventAttributes() != nil:
				first(&cancelled, e)
			}
		}
	}
	if at := began(s); local && !at.IsZero() && (launch.IsZero() || at.Before(launch)) {
		launch = at // within the first workflow task
	}
	var phases []Phase
	from := s.Started
	for i, until := range []time.Time{placing, launch, launched(s), over(s, cancelled), s.Ended} {
		if until.IsZero() {
			break
		}
		phases = append(phases, Phase{Name: PhaseNames[i], Seconds: max(0, until.Sub(from).Seconds())})
		if until.After(from) {
			from = until
		}
	}
	return phases
}

// began returns when the first process started, or the zero time if none has.
func began(s *starter.Status) (first time.Time) {
	for _, at := range firstStarts(s) {
		if first.IsZero() || at.Before(first) && !at.IsZero() {
			first = at
		}
	}
	return first
}

// launched returns when the last task's first process started, or the zero time if a task has
// not had a process yet.
func launched(s *starter.Status) (last time.Time) {
	for _, at := range firstStarts(s) {
		if at.IsZero() && s.Open {
			return time.Time{}
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// firstStarts returns when each task's first process started.
func firstStarts(s *starter.Status) (all []time.Time) {
	exits := map[string]spec.Exit{}
	if s.Result != nil {
		for _, t := range s.Result.Tasks {
			if len(t.Exits) > 0 {
				exits[t.Name] = t.Exits[0]
			}
		}
	}
	for _, t := range s.Tasks {
		at := t.Started
		if t.Exit != nil {
			at = t.Exit.Started
		}
		if first, ok := exits[t.Name]; ok {
			at = first.Started
		}
		all = append(all, at)
	}
	return all
}

// over returns when the run ended: at its first failure, at a request, or at the exit of the
// last task that succeeded, or else of the first process.
func over(s *starter.Status, cancelled time.Time) time.Time {
	if s.Result == nil {
		return s.Ended
	}
	if f := s.Result.FirstFailure; f != nil {
		return f.Failed()
	}
	if !cancelled.IsZero() {
		return cancelled
	}
	var well, earliest time.Time
	for _, t := range s.Tasks {
		if t.Exit == nil {
			continue
		}
		if t.Exit.OK() && t.Exit.Ended.After(well) {
			well = t.Exit.Ended
		}
		if earliest.IsZero() || t.Exit.Ended.Before(earliest) {
			earliest = t.Exit.Ended
		}
	}
	if well.IsZero() {
		return earliest
	}
	return well
}
