package taskapi

import (
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/steptime"
)

// work measures how long a process works on its steps. Its clock stops while the process waits at
// a barrier.
type work struct {
	// observe is called with each step's duration in seconds.
	observe func(seconds float64)

	mu     sync.Mutex
	series steptime.Series
	waits  int           // barriers where the process waits, in several threads
	since  time.Time     // when the clock last stopped or started
	worked time.Duration // until then
}

func newWork(observe func(seconds float64)) *work { return &work{observe: observe, since: time.Now()} }

// turn counts waits, and returns how long the process has worked. w.mu must be held.
func (w *work) turn(waits int) time.Duration {
	now := time.Now()
	if w.waits == 0 {
		w.worked += now.Sub(w.since)
	}
	w.since = now
	w.waits += waits
	return w.worked
}

// wait stops the clock until resume is first called. resume's argument reports whether all tasks
// have met.
func (w *work) wait() (resume func(met bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(1)
	over := false
	return func(met bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if over {
			return
		}
		over = true
		worked := w.turn(-1)
		if met {
			w.took(w.series.Round(worked))
		}
	}
}

// progress records a step that the program counts itself.
func (w *work) progress(step float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took(w.series.Progress(step, w.turn(0)))
}

func (w *work) took(steps float64, took time.Duration) {
	if w.observe != nil && steps > 0 {
		w.observe(took.Seconds() / steps)
	}
}

func (w *work) stepTime() *spec.StepTime {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.series.Time()
}

// waits stops the process's clock for an arrival. Call resume with the answer, or with a zero
// outcome if no request is waiting any longer.
func (e *endpoint) waits(a barriers.Arrival) (resume func(outcome)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := len(a.Participants) == len(e.task.View.Tasks)
	began := e.work.wait()
	return func(o outcome) { began(all && o.released != nil) }
}

// StepTimes returns the typical step times of the processes on this host. A time is nil if its
// process has reported no steps.
func (s *Server) StepTimes() map[runkey.Task]*spec.StepTime {
	s.mu.Lock()
	all := make(map[runkey.Task]*endpoint, len(s.tasks))
	for id, e := range s.tasks {
		all[id] = e
	}
	s.mu.Unlock()
	times := make(map[runkey.Task]*spec.StepTime, len(all))
	for id, e := range all {
		times[id] = e.stepTime()
	}
	return times
}

// StepTime returns the typical step time of a task's process, or nil if it has reported no steps.
func (s *Server) StepTime(id runkey.Task) *spec.StepTime {
	s.mu.Lock()
	e := s.tasks[id]
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.stepTime()
}

func (e *endpoint) stepTime() *spec.StepTime {
	e.mu.Lock()
	w := e.work
	e.mu.Unlock()
	return w.stepTime()
}
