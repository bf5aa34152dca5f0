package taskapi

import (
	"time"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stopping is the latest state of stopping a run's tasks together that this host knows. Waiting
// requests follow it from state to state.
type stopping struct {
	background.Feed[spec.Stopping]
}

// SetStopping sets whether a run's tasks are stopping together. A state older than the known one
// is ignored. The state is kept for tasks added later, until [Server.Release]. A restarted host
// worker calls SetStopping before [Server.Listen], so that no task sees an older state first.
func (s *Server) SetStopping(run runkey.Run, now spec.Stopping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stoppingOf(run).set(now)
}

// stoppingOf returns a run's state, creating it if necessary. s.mu must be held.
func (s *Server) stoppingOf(run runkey.Run) *stopping {
	st := s.stops[run]
	if st == nil {
		st = &stopping{}
		s.stops[run] = st
	}
	return st
}

func (st *stopping) set(now spec.Stopping) {
	st.Add(now, func(known spec.Stopping) bool { return now.Seq > known.Seq })
}

// asAnswer converts a state to a task's answer.
func asAnswer(s spec.Stopping, at time.Time) wire.Stopping {
	var notice *wire.Notice
	if n := s.Notice; n != nil {
		notice = &wire.Notice{Reason: n.String(), Deadline: n.Deadline.UTC().Format(time.RFC3339Nano), Left: left(n.Given, n.Deadline, at)}
	}
	if !s.Stop {
		return wire.Stopping{Seq: s.Seq, Notice: notice}
	}
	out := wire.Stopping{Seq: s.Seq, Stop: true, By: s.By, Reason: s.Reason, Clean: s.Clean, Notice: notice}
	if e := s.Error; e != nil {
		out.Error = &wire.Error{Kind: e.Kind, Message: e.Message, Traceback: e.Traceback}
	}
	if !s.Deadline.IsZero() {
		out.Deadline = s.Deadline.UTC().Format(time.RFC3339Nano)
		out.Left = left(s.Asked, s.Deadline, at)
	}
	return out
}

// left returns the time until a deadline in seconds. Because this host's clock may differ from the
// run's, the result is never more than deadline minus from.
func left(from, deadline, at time.Time) float64 {
	left := deadline.Sub(at)
	if !from.IsZero() {
		left = min(left, deadline.Sub(from))
	}
	return max(0, left).Seconds()
}
