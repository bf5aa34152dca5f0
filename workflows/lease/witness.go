package lease

import "time"

// Witness records the leases that a host has extended for tasks on the generation's other hosts.
// Times are nanoseconds on the witness's clock.
type Witness struct {
	began  int64
	said   map[string]int64
	denied map[string]int64
}

// NewWitness returns the record of a host worker that started at the given time. Answers given
// before a restart are forgotten, and count as given at that time. denied holds the host's promises
// by task.
func NewWitness(began int64, denied map[string]int64) *Witness {
	w := &Witness{began: began, said: map[string]int64{}, denied: map[string]int64{}}
	for task, offer := range denied {
		w.denied[task] = offer
	}
	return w
}

// Silent reports whether the host may answer that the server is silent, and remembers that it did.
// offer is the task's offer that the process runs under.
func (w *Witness) Silent(task string, offer, now int64) bool {
	if denied, ok := w.denied[task]; ok && offer <= denied {
		return false
	}
	w.said[task] = now
	return true
}

// Deny promises that Silent returns false for the task up to offer, forever. It returns the time
// since this host may last have answered otherwise.
func (w *Witness) Deny(task string, offer, now int64) (quiet time.Duration) {
	w.denied[task] = max(offer, w.denied[task])
	return time.Duration(now - max(w.began, w.said[task]))
}
