package taskapi

import "github.com/clusterrun/clusterrun/activities/internal/wire"

// keepAnswers is how many of its last answers at barriers are kept for a task, for
// arrivals that come again because the answer got lost.
const keepAnswers = 32

// outcome is what an arrival is told: released, or what went wrong.
type outcome struct {
	released *wire.Released
	problem  *wire.Problem
}

// answers are the last ones a task was given.
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
