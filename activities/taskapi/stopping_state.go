package taskapi

import (
	"time"

	"github.com/clusterrun/clusterrun/activities/internal/news"
	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stopping is whether the tasks of one run are stopping together, as far as this
// host knows. Who waits follows it from one state to the next.
type stopping struct {
	news.Feed[spec.Stopping]
}

// SetStopping says whether the tasks of a run are stopping together. What is older
// than what is known already changes nothing. It is kept for tasks that are listened
// for later, until [Server.Release]; a host worker that was started again says it
// before [Server.Listen], so that nobody is told otherwise in between.
func (s *Server) SetStopping(run runkey.Run, now spec.Stopping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stoppingOf(run).set(now)
}

// stoppingOf must be called with mu held.
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

// asAnswer returns what a task is told.
func asAnswer(s spec.Stopping, at time.Time) wire.Stopping {
	if !s.Stop {
		return wire.Stopping{Seq: s.Seq}
	}
	out := wire.Stopping{Seq: s.Seq, Stop: true, By: s.By, Reason: s.Reason, Clean: s.Clean}
	if e := s.Error; e != nil {
		out.Error = &wire.Error{Kind: e.Kind, Message: e.Message, Traceback: e.Traceback}
	}
	if !s.Deadline.IsZero() {
		out.Deadline = s.Deadline.UTC().Format(time.RFC3339Nano)
		// The clocks of this host and of the run are two: nobody is told of more time
		// than there was from the beginning.
		left := s.Deadline.Sub(at)
		if !s.Asked.IsZero() {
			left = min(left, s.Deadline.Sub(s.Asked))
		}
		out.Left = max(0, left).Seconds()
	}
	return out
}
