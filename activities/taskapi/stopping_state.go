package taskapi

import (
	"sync"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stopped has what is known of stopping together, by server and run.
var stopped sync.Map

type stoppedKey struct {
	server *Server
	run    Run
}

// SetStopping says whether the tasks of a run are stopping together. What is older
// than what is known already changes nothing.
func (s *Server) SetStopping(run Run, now spec.Stopping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := stoppedKey{s, run}
	if known, ok := stopped.Load(key); ok && known.(spec.Stopping).Seq > now.Seq {
		return
	}
	stopped.Store(key, now)
}
