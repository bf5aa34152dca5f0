package fleet

import (
	"slices"
	"time"
)

// Snapshot is the state that a fleet passes from one execution of its workflow to the next.
type Snapshot struct {
	Now      time.Time      `json:"now,omitzero"`
	Met      int            `json:"met,omitempty"`
	Settled  time.Time      `json:"settled,omitzero"`
	Settings Settings       `json:"settings,omitzero"`
	Hosts    []SnapshotHost `json:"hosts,omitempty"`
	// GPUs has the GPUs of hosts, once for all hosts with the same.
	GPUs    [][]GPU `json:"gpus,omitempty"`
	Cordons []named `json:"cordons,omitempty"`
	// Past are the ends of runs on hosts, and Recent the failures of the last day.
	Past   []PastHost      `json:"past,omitempty"`
	Recent []RecentFailure `json:"recent,omitempty"`
	// Sparing are indexes of Runs: the runs that want spares, in their order.
	Sparing []int `json:"sparing,omitempty"`
	// Runs are the runs that wait, in their order, then the runs with a grant that is not
	// placed, and then the runs that hold something.
	Runs []SnapshotRun `json:"runs,omitempty"`
	// Packed is all of that as JSON, compressed by gzip; the rest is empty then. See [Snapshot.Pack].
	Packed []byte `json:"packed,omitempty"`
}

// SnapshotHost is a host. GPUs is the index of its GPUs in [Snapshot.GPUs].
type SnapshotHost struct {
	Host   Host           `json:"host"`
	GPUs   int            `json:"gpus"`
	Silent bool           `json:"silent,omitempty"`
	Since  time.Time      `json:"since,omitzero"`
	Cordon *cordon        `json:"cordon,omitempty"`
	Holds  []SnapshotHold `json:"holds,omitempty"`
}

// SnapshotHold is the room that one of [Snapshot.Runs] holds on a host.
type SnapshotHold struct {
	Run        int      `json:"run"`
	Generation int      `json:"generation,omitempty"`
	Tasks      int      `json:"tasks,omitempty"`
	Devices    []string `json:"devices,omitempty"`
	Exclusive  bool     `json:"exclusive,omitempty"`
	Spare      bool     `json:"spare,omitempty"`
	Stuck      string   `json:"stuck,omitempty"`
}

// SnapshotRun is a run.
type SnapshotRun struct {
	Run        Run               `json:"run"`
	Number     int               `json:"number"`
	Generation int               `json:"generation,omitempty"`
	Try        int               `json:"try,omitempty"`
	State      runState          `json:"state,omitempty"`
	Demand     *Demand           `json:"demand,omitempty"`
	Since      time.Time         `json:"since,omitzero"`
	Ends       time.Time         `json:"ends,omitzero"`
	Refusals   []SnapshotRefusal `json:"refusals,omitempty"`
	Places     []SnapshotPlace   `json:"places,omitempty"`
	GrantedAt  time.Time         `json:"granted_at,omitzero"`
	New        bool              `json:"new,omitempty"`
	Told       bool              `json:"told,omitempty"`
	Enough     time.Time         `json:"enough,omitzero"`
	// Priority, Notice and Firm are as in the last demand.
	Priority int           `json:"priority,omitempty"`
	Notice   time.Duration `json:"notice,omitempty"`
	Firm     bool          `json:"firm,omitempty"`
	// Leaves is the time by which the run must leave, For the run For.
	Leaves time.Time `json:"leaves,omitzero"`
	For    *Run      `json:"for,omitempty"`
}

// SnapshotRefusal is a host that is left out for a run.
type SnapshotRefusal struct {
	Host   string    `json:"host"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until"`
}

// SnapshotPlace is a place of a grant that is not placed.
type SnapshotPlace struct {
	Place
	Tasks int `json:"tasks"`
}

// Snapshot returns the fleet as it is.
func (m *Machine) Snapshot() Snapshot {
	s := Snapshot{Now: m.now, Met: m.met, Settled: m.settled, Settings: m.settings, Cordons: slices.Clone(m.cordons), Past: m.past.hosts, Recent: m.past.recent}
	index := map[*run]int{} // for look-ups only
	keep := func(r *run) int {
		i, there := index[r]
		if !there {
			i = len(s.Runs)
			index[r] = i
			s.Runs = append(s.Runs, r.snapshot())
		}
		return i
	}
	for _, r := range m.waiting {
		keep(r)
	}
	for _, r := range m.granted {
		keep(r)
	}
	for _, h := range m.hosts {
		kind := slices.IndexFunc(s.GPUs, func(gpus []GPU) bool { return slices.Equal(gpus, h.GPUs) })
		if kind < 0 {
			kind, s.GPUs = len(s.GPUs), append(s.GPUs, h.GPUs)
		}
		sh := SnapshotHost{Host: h.Host, GPUs: kind, Silent: h.silent, Since: h.since}
		sh.Host.GPUs = nil
		if h.cordon.On {
			sh.Cordon = new(h.cordon)
		}
		for _, o := range h.holds {
			sh.Holds = append(sh.Holds, SnapshotHold{keep(o.run), o.Generation, o.Tasks, o.Devices, o.Exclusive, o.Spare, o.Stuck})
		}
		s.Hosts = append(s.Hosts, sh)
	}
	for _, r := range m.sparing {
		s.Sparing = append(s.Sparing, keep(r))
	}
	return s
}

func (r *run) snapshot() SnapshotRun {
	s := SnapshotRun{
		Run: r.id, Number: r.number, Generation: r.generation, Try: r.try, State: r.state, Since: r.since, Ends: r.ends, New: r.asked, Told: r.told, GrantedAt: r.grantedAt, Enough: r.enough,
	}
	s.Priority, s.Notice, s.Firm = r.terms.priority, r.terms.notice, r.terms.firm
	if s.Leaves = r.leaving.until; !s.Leaves.IsZero() {
		s.For = new(r.leaving.whom)
	}
	if r.state != holding || r.demand.Spares > 0 {
		s.Demand = new(r.demand)
	}
	for _, f := range r.refusals {
		s.Refusals = append(s.Refusals, SnapshotRefusal{f.host, f.reason, f.until})
	}
	for _, p := range r.places {
		s.Places = append(s.Places, SnapshotPlace{p.Place, p.tasks})
	}
	return s
}

// Resume returns the fleet of a snapshot.
func Resume(s Snapshot) *Machine {
	m := New()
	m.now, m.met, m.settled, m.settings, m.cordons = s.Now, s.Met, s.Settled, s.Settings, slices.Clone(s.Cordons)
	m.past = past{hosts: s.Past, recent: s.Recent}
	runs := make([]*run, len(s.Runs))
	for i, q := range s.Runs {
		r := &run{
			id: q.Run, number: q.Number, generation: q.Generation, try: q.Try, state: q.State, since: q.Since, ends: q.Ends, asked: q.New, told: q.Told, grantedAt: q.GrantedAt, enough: q.Enough,
		}
		if q.Demand != nil {
			r.set(*q.Demand)
		}
		r.terms = terms{q.Priority, q.Notice, q.Firm}
		if r.leaving.until = q.Leaves; q.For != nil {
			r.leaving.whom = *q.For
		}
		for _, f := range q.Refusals {
			r.refusals = append(r.refusals, refusal{f.Host, f.Reason, f.Until})
		}
		for _, p := range q.Places {
			r.places = append(r.places, place{Place: p.Place, tasks: p.Tasks, gpus: len(p.Devices)})
		}
		runs[i], m.runs[r.id] = r, r
		switch r.state {
		case waiting:
			m.waiting = append(m.waiting, r)
		case granted:
			m.granted = append(m.granted, r)
		}
	}
	for _, i := range s.Sparing {
		m.sparing = append(m.sparing, runs[i])
	}
	for _, sh := range s.Hosts {
		h := &host{Host: sh.Host, silent: sh.Silent, since: sh.Since}
		h.GPUs = s.GPUs[sh.GPUs]
		if sh.Cordon != nil {
			h.cordon = *sh.Cordon
		}
		m.hosts = append(m.hosts, h)
		for _, o := range sh.Holds {
			r := runs[o.Run]
			h.hold(r, Holding{Run: r.id, Generation: o.Generation, Tasks: o.Tasks, Devices: o.Devices, Exclusive: o.Exclusive, Spare: o.Spare, Stuck: o.Stuck})
		}
		for _, r := range m.granted {
			if r.placeOn(h.Name) != nil {
				h.granted = append(h.granted, r)
			}
		}
		h.count()
	}
	m.judgeHosts()
	return m
}
