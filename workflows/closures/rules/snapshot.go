package rules

import (
	"cmp"
	"errors"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Snapshot is a queue as one execution of its workflow gives it to the next. Requests that
// wait are not in it, because they have done nothing yet: their clients ask again.
type Snapshot struct {
	LastID    uint64              `json:"last_id"`
	LastLease int                 `json:"last_lease"`
	Counts    closure.QueueCounts `json:"counts"`
	Ended     string              `json:"ended,omitempty"`
	Fault     *closure.Error      `json:"fault,omitempty"`
	Last      *closure.Error      `json:"last,omitempty"`
	Drain     *savedRequest       `json:"drain,omitempty"`
	Partial   *savedRequest       `json:"partial,omitempty"`
	// Seen are the names of functions, and Sets are sets of them, as bits.
	Seen         []string        `json:"seen,omitempty"`
	Sets         [][]byte        `json:"sets,omitempty"`
	Hosts        []savedHost     `json:"hosts,omitempty"`
	Peers        []report        `json:"peers,omitempty"`
	Clients      []savedClient   `json:"clients,omitempty"`
	Resources    []savedResource `json:"resources,omitempty"`
	LastResource uint64          `json:"last_resource,omitempty"`
	// Closures are the closures that have not ended, by ID.
	Closures []savedClosure `json:"closures,omitempty"`
}

// savedClosure has no ID if that is one more than the ID before it. So closures that are
// alike have the same text, and a hundred thousand of them take little room when packed.
type savedClosure struct {
	closure.Closure
	Host    int      `json:"host,omitempty"` // its place in Hosts, from 1
	Partial bool     `json:"partial,omitempty"`
	Told    bool     `json:"told,omitempty"`
	Returns int      `json:"returns,omitempty"`
	Losses  int      `json:"losses,omitempty"`
	LostOn  []string `json:"lost_on,omitempty"`
}

type savedRequest struct {
	Client   string `json:"client"`
	Kind     kind   `json:"kind"`
	Number   uint64 `json:"number"`
	Detached bool   `json:"detached,omitempty"`
	First    uint64 `json:"first,omitempty"`
}

type savedHost struct {
	Name    string      `json:"name"`
	Queue   string      `json:"queue"`
	Seq     int64       `json:"seq"`
	Window  int         `json:"window"`
	Doubted bool        `json:"doubted,omitempty"`
	Broker  string      `json:"broker,omitempty"`
	Former  string      `json:"former,omitempty"`
	More    bool        `json:"more,omitempty"`
	Tasks   []savedTask `json:"tasks,omitempty"`
	Given   span        `json:"given,omitzero"`
	Gone    span        `json:"gone,omitzero"`
}

type savedTask struct {
	Task    string `json:"task"`
	Process string `json:"process"`
	Slots   int    `json:"slots"`
	Set     int    `json:"set"` // the place of its functions in Sets
}

type savedResource struct {
	closure.Resource
	Client   string `json:"client"`
	Task     string `json:"task,omitempty"`
	Process  int    `json:"process,omitempty"`
	Released bool   `json:"released,omitempty"`
}

type savedClient struct {
	Name      string                               `json:"name"`
	Epoch     uint64                               `json:"epoch,omitempty"`
	Busy      bool                                 `json:"busy,omitempty"`
	Pending   bool                                 `json:"pending,omitempty"`
	Batches   savedAnswers[closure.ScheduleAnswer] `json:"batches,omitzero"`
	Waits     savedAnswers[closure.WaitAnswer]     `json:"waits,omitzero"`
	Resources savedAnswers[closure.ResourceAnswer] `json:"resources,omitzero"`
}

type savedAnswers[A any] struct {
	Forgotten uint64           `json:"forgotten,omitempty"`
	Open      []uint64         `json:"open,omitempty"`
	List      []savedAnswer[A] `json:"list,omitempty"`
}

type savedAnswer[A any] struct {
	Number uint64 `json:"n"`
	Answer A      `json:"a"`
	Bytes  int    `json:"b,omitempty"`
}

// Snapshot returns the queue as the next execution of its workflow restores it. All actions
// must have been taken before.
func (q *Queue) Snapshot() (*Snapshot, error) {
	if !q.decided.empty() {
		return nil, errors.New("closures: a snapshot before all actions were taken would lose decisions")
	}
	q.noteDropped()
	s := &Snapshot{
		LastID: q.lastID, LastLease: q.lastLease, Counts: q.counts,
		Ended: q.ended, Fault: q.fault,
		Drain: saveRequest(q.drain), Partial: saveRequest(q.partial),
		Seen: q.seen.list, Peers: q.peers, LastResource: q.resources.last,
	}
	q.saveHosts(s)
	for _, r := range q.resources.list {
		s.Resources = append(s.Resources, savedResource{r.Resource, r.owner.client, r.owner.task, r.owner.process, r.released})
	}
	byUse := slices.SortedFunc(slices.Values(q.clients.list), func(a, b *client) int { return cmp.Compare(a.used, b.used) })
	for _, c := range byUse {
		if c.pendingError {
			s.Last = q.last
		}
		s.Clients = append(s.Clients, savedClient{
			Name: c.name, Epoch: c.epoch, Busy: c.busy == q.idleEpoch, Pending: c.pendingError,
			Batches: saveAnswers(&c.batches), Waits: saveAnswers(&c.waits), Resources: saveAnswers(&c.resources),
		})
	}
	q.saveClosures(s)
	return s, nil
}

func (q *Queue) saveHosts(s *Snapshot) {
	sets := map[string]int{}
	for _, h := range q.hosts {
		saved := savedHost{
			Name: h.name, Queue: h.queue, Seq: h.seq, Window: h.window, Doubted: h.doubted,
			Broker: h.broker, Former: h.former, More: h.more, Given: h.given, Gone: h.unheard(),
		}
		for _, t := range h.serving {
			set := q.seen.set(t.Functions)
			at, known := sets[string(set)]
			if !known {
				at = len(s.Sets)
				sets[string(set)] = at
				s.Sets = append(s.Sets, set)
			}
			saved.Tasks = append(saved.Tasks, savedTask{t.Task, t.Process, t.Slots, at})
		}
		s.Hosts = append(s.Hosts, saved)
	}
}

func (q *Queue) saveClosures(s *Snapshot) {
	hosts := map[*host]int{}
	for i, h := range q.hosts {
		hosts[h] = i + 1
	}
	var open []*item
	each := func(it *item) { open = append(open, it) }
	q.queues.each(each)
	for _, h := range q.hosts {
		h.each(each)
	}
	if q.partial != nil {
		open = append(open, q.partial.left...)
	}
	slices.SortFunc(open, byID)
	last := uint64(0)
	for _, it := range open {
		saved := savedClosure{
			Closure: it.Closure, Host: hosts[it.host], Partial: q.items[it.ID] == nil,
			Told: it.told, Returns: it.returns, Losses: it.losses, LostOn: it.lostOn,
		}
		if it.ID == last+1 {
			saved.ID = 0
		}
		last = it.ID
		s.Closures = append(s.Closures, saved)
	}
}

func saveRequest(r *request) *savedRequest {
	if r == nil {
		return nil
	}
	return &savedRequest{Client: r.client.name, Kind: r.kind, Number: r.number, Detached: r.detached, First: r.first}
}

// saveAnswers saves the answers, and the numbers of unanswered requests.
func saveAnswers[A any](a *answers[A]) savedAnswers[A] {
	s := savedAnswers[A]{Forgotten: a.forgotten, Open: slices.Clone(a.open)}
	for _, n := range a.list {
		if n.call.ready {
			s.List = append(s.List, savedAnswer[A]{n.number, n.call.answer, n.bytes})
		} else if n.number <= a.forgotten {
			s.Open = append(s.Open, n.number)
		}
	}
	slices.Sort(s.Open)
	s.Open = s.Open[max(0, len(s.Open)-maxWaiting):]
	return s
}
