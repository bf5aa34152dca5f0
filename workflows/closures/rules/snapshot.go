package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// saved is a snapshot without the closures, which are in columns.
type saved struct {
	LastID    uint64              `json:"last_id"`
	LastLease int                 `json:"last_lease"`
	Counts    closure.QueueCounts `json:"counts"`
	Paused    bool                `json:"paused,omitempty"`
	Reason    string              `json:"reason,omitempty"`
	Ended     string              `json:"ended,omitempty"`
	Fault     *closure.Error      `json:"fault,omitempty"`
	Last      *closure.Error      `json:"last,omitempty"`
	Drain     *savedRequest       `json:"drain,omitempty"`
	Entering  *savedRequest       `json:"entering,omitempty"`
	Hosts     []savedHost         `json:"hosts,omitempty"`
	Seen      []string            `json:"seen,omitempty"`
	Peers     []report            `json:"peers,omitempty"`
	Clients   []savedClient       `json:"clients,omitempty"`
	// Resources are those that somebody needs, and LastResource is the last ID.
	Resources    []savedResource `json:"resources,omitempty"`
	LastResource uint64          `json:"last_resource,omitempty"`
	// Owners are the clients that have created resources.
	Owners []savedOwner `json:"owners,omitempty"`

	// Tables that the columns and the hosts refer to.
	Functions []string           `json:"functions,omitempty"`
	Options   []*closure.Options `json:"options,omitempty"`
	Sets      [][]byte           `json:"sets,omitempty"`
	Losses    []savedLosses      `json:"losses,omitempty"`
}

type savedRequest struct {
	Client   string         `json:"client"`
	Kind     kind           `json:"kind"`
	Number   uint64         `json:"number"`
	Detached bool           `json:"detached,omitempty"`
	First    uint64         `json:"first,omitempty"`
	Known    map[int]uint64 `json:"known,omitempty"`
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
	// Given and Gone are the first and the last ID of resources.
	Given [2]uint64 `json:"given,omitzero"`
	Gone  [2]uint64 `json:"gone,omitzero"`
}

type savedResource struct {
	closure.Resource
	Owner    int  `json:"o"`
	Released bool `json:"x,omitempty"`
}

type savedOwner struct {
	Client  string `json:"c"`
	Task    string `json:"t,omitempty"`
	Process int    `json:"p,omitempty"`
}

type savedTask struct {
	Task    string `json:"task"`
	Process string `json:"process"`
	Slots   int    `json:"slots"`
	List    int    `json:"list"` // the set of its functions
}

type savedClient struct {
	Name      string                               `json:"name"`
	Epoch     uint64                               `json:"epoch,omitempty"`
	Busy      bool                                 `json:"busy,omitempty"`
	Owed      bool                                 `json:"owed,omitempty"`
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

type savedLosses struct {
	ID    uint64   `json:"i"`
	Times int      `json:"n"`
	On    []string `json:"on,omitempty"`
}

// Snapshot returns what a queue takes along from one execution of its workflow to the
// next. What hosts hold goes along with them, and is leased again. Requests that wait
// do not go along, for they have done nothing yet: their clients ask again. All actions
// have to be taken before.
func (q *Queue) Snapshot() ([]byte, error) {
	if !q.decided.empty() {
		return nil, errors.New("closures: a snapshot before all actions were taken would lose decisions")
	}
	s := &saved{
		LastID: q.lastID, LastLease: q.lastLease, Counts: q.counts,
		Paused: q.paused, Reason: q.reason, Ended: q.ended, Fault: q.fault,
		Drain: saveRequest(q.drain), Entering: saveRequest(q.entering), Seen: q.seen.list, Peers: q.peers, LastResource: q.resources.last,
	}
	w := &writer{saved: s, seen: &q.seen}
	hosts := map[*host]int{}
	for i, h := range q.hosts {
		hosts[h] = i
		s.Hosts = append(s.Hosts, w.host(h))
	}
	var open []*item
	q.lanes.each(func(it *item) { open = append(open, it) })
	for _, h := range q.hosts {
		h.each(func(it *item) { open = append(open, it) })
	}
	entering := map[*item]bool{}
	if r := q.entering; r != nil {
		open = append(open, r.left...)
		for _, it := range r.left {
			entering[it] = true
		}
	}
	slices.SortFunc(open, byID)
	for _, id := range w.resources(&q.resources, open) {
		for i, h := range q.hosts {
			if h.given.has(id) {
				gone := span{s.Hosts[i].Gone[0], s.Hosts[i].Gone[1]}
				gone.cover(span{id, id})
				s.Hosts[i].Gone = [2]uint64{gone.first, gone.last}
			}
		}
	}
	for _, it := range open {
		switch {
		case entering[it]:
			w.item(it, stateEntering)
		case it.host != nil:
			w.item(it, stateHeld+uint64(hosts[it.host]))
		default:
			w.item(it, stateQueued)
		}
	}
	byUse := slices.SortedFunc(slices.Values(q.clients.list), func(a, b *client) int { return cmp.Compare(a.used, b.used) })
	for _, c := range byUse {
		if c.owed {
			s.Last = q.last
		}
		s.Clients = append(s.Clients, savedClient{
			Name: c.name, Epoch: c.epoch, Busy: c.busy == q.period, Owed: c.owed, Batches: saveAnswers(&c.batches), Waits: saveAnswers(&c.waits), Resources: saveAnswers(&c.resources),
		})
	}
	w.keys(&q.keys)
	var head bytes.Buffer
	e := json.NewEncoder(&head)
	e.SetEscapeHTML(false) // it would make another text of resources
	if err := e.Encode(s); err != nil {
		return nil, err
	}
	return compress(head.Bytes(), w.columns)
}

func saveRequest(r *request) *savedRequest {
	if r == nil {
		return nil
	}
	return &savedRequest{Client: r.client.name, Kind: r.kind, Number: r.number, Detached: r.detached, First: r.first, Known: r.known}
}

// saveAnswers saves what was answered, and the numbers of what was not.
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
	s.Open = s.Open[max(0, len(s.Open)-maxLine):]
	return s
}
