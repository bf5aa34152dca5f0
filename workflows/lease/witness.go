package lease

import "time"

// Witness is the memory of a host about the leases that it has extended for the tasks of the
// other hosts of a generation. Times are nanoseconds of its own clock.
type Witness struct {
	began  int64
	said   map[string]int64
	denied map[string]int64
}

// NewWitness returns the memory of a host worker that began at that time: earlier words of this
// host are forgotten, and count as said then. denied are its promises, by the task.
func NewWitness(began int64, denied map[string]int64) *Witness {
	w := &Witness{began: began, said: map[string]int64{}, denied: map[string]int64{}}
	for task, offer := range denied {
		w.denied[task] = offer
	}
	return w
}

// Silent reports whether the host may say that the server does not answer, and remembers
// that it did. offer is the offer of the task under which the process lives.
func (w *Witness) Silent(task string, offer, now int64) bool {
	if denied, ok := w.denied[task]; ok && offer <= denied {
		return false
	}
	w.said[task] = now
	return true
}

// Deny promises that Silent returns false for the task up to that offer, for ever. It returns
// the time since this host may last have said otherwise.
func (w *Witness) Deny(task string, offer, now int64) (quiet time.Duration) {
	w.denied[task] = max(offer, w.denied[task])
	return time.Duration(now - max(w.began, w.said[task]))
}
