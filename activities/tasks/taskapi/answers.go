package taskapi

import "github.com/clusterrun/clusterrun/activities/tasks/wire"

// keepAnswers is how many of a task's latest barrier answers are kept. They answer arrivals that
// are repeated because an answer was lost.
const keepAnswers = 32

// outcome is the answer to an arrival: a release or a problem.
type outcome struct {
	released *wire.Released
	problem  *wire.Problem
}

// answers holds the latest answers to a task.
type answers struct {
	next int
	ring [keepAnswers]struct {
		name, key string
		outcome   outcome
	}
}

func (a *answers) find(name, key string) (outcome, bool) {
	if a == nil {
		return outcome{}, false
	}
	for i := range a.ring {
		if e := &a.ring[i]; e.key == key && e.name == name {
			return e.outcome, true
		}
	}
	return outcome{}, false
}

func (a *answers) add(name, key string, out outcome) {
	e := &a.ring[a.next%keepAnswers]
	e.name, e.key, e.outcome = name, key, out
	a.next++
}
