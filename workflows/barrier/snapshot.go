package barrier

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Snapshot is the state that an open round passes from one execution of its workflow to the
// next.
type Snapshot struct {
	Opened time.Time `json:"opened"`
	// Tasks are the participants, by name.
	Tasks   map[string]SnapshotTask `json:"tasks"`
	Refused []spec.BarrierRefusal   `json:"refused,omitempty"`
}

// SnapshotTask is a participant: its arrivals, and since when it is there, or missing.
type SnapshotTask struct {
	Since    time.Time         `json:"since"`
	Arrivals []SnapshotArrival `json:"arrivals,omitempty"`
}

// SnapshotArrival is an arrival that counts.
type SnapshotArrival struct {
	Key      string        `json:"key"`
	Host     string        `json:"host"`
	Value    string        `json:"value,omitempty"`
	Timeout  time.Duration `json:"timeout,omitempty"`
	Deadline time.Time     `json:"deadline,omitzero"`
}

// Snapshot returns the round as it is, while it is open.
func (r *Round) Snapshot() Snapshot {
	s := Snapshot{Opened: r.opened, Tasks: map[string]SnapshotTask{}, Refused: slices.Clone(r.refused)}
	for _, name := range r.participants {
		p := r.tasks[name]
		t := SnapshotTask{Since: p.since}
		for _, a := range p.arrivals {
			t.Arrivals = append(t.Arrivals, SnapshotArrival{Key: a.key, Host: a.host, Value: a.value, Timeout: a.timeout, Deadline: a.deadline})
		}
		s.Tasks[name] = t
	}
	return s
}

// Resume returns the round of a snapshot.
func Resume(participants []string, s Snapshot) *Round {
	r := New(participants, s.Opened)
	r.refused = slices.Clone(s.Refused)
	for _, name := range r.participants {
		t, known := s.Tasks[name]
		if !known {
			continue
		}
		p := r.tasks[name]
		p.since = t.Since
		for _, a := range t.Arrivals {
			r.brought += spec.BarrierValueSize(a.Value)
			p.arrivals = append(p.arrivals, arrival{key: a.Key, host: a.Host, value: a.Value, timeout: a.Timeout, deadline: a.Deadline})
		}
		if len(p.arrivals) > 0 {
			r.absent--
		}
	}
	return r
}

// Arrivals returns the number of arrivals of the round.
func (r *Round) Arrivals() (n int) {
	for _, name := range r.participants {
		n += len(r.tasks[name].arrivals)
	}
	return n
}
