package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Restore returns the queue of a snapshot. What hosts hold is leased again by the next
// [Queue.Actions], and what is to be cancelled there they are told again.
func Restore(c Config, snapshot []byte) (*Queue, error) {
	q, err := restore(c, snapshot)
	if err != nil {
		return nil, fmt.Errorf("closures: no snapshot of a queue: %w", err)
	}
	return q, nil
}

var errDamaged = errors.New("its parts contradict each other")

func restore(c Config, snapshot []byte) (*Queue, error) {
	head, columns, err := decompress(snapshot)
	if err != nil {
		return nil, err
	}
	var s saved
	if err := json.Unmarshal(head, &s); err != nil {
		return nil, err
	}
	if s.LastLease < 0 || len(s.Clients) > 2*maxClients || len(s.Resources) > maxResources ||
		len(s.Seen) > maxFunctions || len(s.Peers) > maxPeers || s.Drain != nil && s.Fault == nil {
		return nil, errDamaged
	}
	q := New(c)
	q.lastID, q.lastLease, q.counts = s.LastID, s.LastLease, s.Counts
	q.paused, q.reason, q.ended, q.fault, q.last, q.peers = s.Paused, s.Reason, s.Ended, s.Fault, s.Last, s.Peers
	for _, name := range s.Seen {
		q.seen.add(name)
	}
	for _, step := range []func(*saved) error{
		q.restoreResources, q.restoreHosts, q.restoreClients, q.restoreRequests,
		func(s *saved) error { return q.restoreItems(s, columns) }, q.restoreLosses,
		func(*saved) error { return q.restoreKeys(&columns[columnKeys]) },
	} {
		if err := step(&s); err != nil {
			return nil, err
		}
	}
	if n := &q.counts; n.Scheduled != uint64(len(q.items))+n.Finished+n.Failed+n.Cancelled || q.ended != "" && len(q.items) > 0 {
		return nil, errDamaged
	}
	return q, nil
}

func (q *Queue) restoreResources(s *saved) error {
	for _, saved := range s.Resources {
		if saved.ID <= q.resources.last || saved.Owner < 0 || saved.Owner >= len(s.Owners) {
			return errDamaged
		}
		o := s.Owners[saved.Owner]
		q.resources.add(&resource{Resource: saved.Resource, owner: owner{o.Client, o.Task, o.Process}, released: saved.Released})
	}
	if s.LastResource < q.resources.last {
		return errDamaged
	}
	q.resources.last = s.LastResource
	return nil
}

func (q *Queue) restoreHosts(s *saved) error {
	for _, saved := range s.Hosts {
		h := &host{name: saved.Name, queue: saved.Queue, pinned: map[string]int{}}
		if n := len(q.hosts); n > 0 && compareHosts(q.hosts[n-1], h) >= 0 {
			return errDamaged
		}
		var serving []closure.ServingTask
		for _, t := range saved.Tasks {
			names, ok := q.restoreFunctions(s, t.List)
			if !ok {
				return errDamaged
			}
			serving = append(serving, closure.ServingTask{Task: t.Task, Process: t.Process, Slots: t.Slots, Functions: names})
		}
		q.hosts = append(q.hosts, h)
		q.serve(h, serving)
		h.seq, h.broker, h.former = saved.Seq, saved.Broker, saved.Former
		q.doubt(h, saved.Doubted)
		h.more = h.more || saved.More
		h.window = min(max(saved.Window, h.slots), max(maxWindow, h.slots))
		h.given, h.gone = span{saved.Given[0], saved.Given[1]}, span{saved.Gone[0], saved.Gone[1]}
		for _, ids := range []span{h.given, h.gone} {
			if ids.first > ids.last || ids.last > q.resources.last || ids.first == 0 && ids.last > 0 {
				return errDamaged
			}
		}
	}
	return nil
}

func (q *Queue) restoreFunctions(s *saved, at int) (names []string, ok bool) {
	if at < 0 || at >= len(s.Sets) {
		return nil, false
	}
	return q.seen.of(s.Sets[at])
}

func (q *Queue) restoreClients(s *saved) error {
	for _, saved := range s.Clients {
		if q.clients.named[saved.Name] != nil {
			return errDamaged
		}
		c := q.clients.asking(saved.Name)
		if saved.Owed && s.Last == nil {
			return errDamaged
		}
		c.epoch, c.owed = saved.Epoch, saved.Owed
		if saved.Busy {
			c.busy = q.period
		}
		ok := restoreAnswers(&c.batches, saved.Batches) && restoreAnswers(&c.waits, saved.Waits) && restoreAnswers(&c.resources, saved.Resources)
		if !ok {
			return errDamaged
		}
		q.clients.bytes += c.batches.bytes() + c.waits.bytes() + c.resources.bytes()
	}
	return nil
}

func restoreAnswers[A any](a *answers[A], s savedAnswers[A]) bool {
	a.forgotten, a.open = s.Forgotten, s.Open
	for i, n := range s.List {
		if n.Bytes < 0 || i > 0 && n.Number <= s.List[i-1].Number {
			return false
		}
		call := &Call[A]{}
		call.give(n.Answer)
		a.list = append(a.list, numbered[A]{n.Number, call, n.Bytes})
	}
	return len(a.list) <= maxAnswers+maxLine && len(a.open) <= maxLine
}

// restoreRequests brings back the requests that have already done something.
func (q *Queue) restoreRequests(s *saved) error {
	var err error
	if s.Drain != nil {
		if q.drain, err = q.restoreRequest(s.Drain); err != nil {
			return err
		}
	}
	if s.Entering != nil {
		if q.entering, err = q.restoreRequest(s.Entering); err != nil || q.entering.kind != asksSchedule {
			return errDamaged
		}
	}
	return nil
}

func (q *Queue) restoreRequest(s *savedRequest) (*request, error) {
	c := q.clients.named[s.Client]
	if c == nil || s.Kind < asksSchedule || s.Kind > asksDone {
		return nil, errDamaged
	}
	r := &request{client: c, kind: s.Kind, number: s.Number, detached: s.Detached, first: s.First, known: s.Known}
	if s.Kind == asksSchedule {
		if call, _ := c.batches.find(s.Number); call != nil {
			return nil, errDamaged
		}
		r.schedule = &Call[closure.ScheduleAnswer]{}
		c.batches.insert(s.Number, r.schedule)
		return r, nil
	}
	if call, _ := c.waits.find(s.Number); call != nil {
		return nil, errDamaged
	}
	r.wait = &Call[closure.WaitAnswer]{}
	c.waits.insert(s.Number, r.wait)
	return r, nil
}

// restoreItems reads the columns.
func (q *Queue) restoreItems(s *saved, columns [columnCount]column) error {
	last := uint64(0)
	for len(columns[columnID].bytes) > 0 {
		it, state, ok := readItem(s, &columns, last)
		if !ok || it.ID <= last || it.ID > q.lastID {
			return errDamaged
		}
		last = it.ID
		q.bytes += it.size
		q.use(it.Resources)
		switch {
		case state == stateQueued:
			q.items[it.ID] = it
			q.lanes.of(it).append(it)
			q.queuedOne(it)
		case state == stateEntering && q.entering != nil:
			q.entering.left = append(q.entering.left, it)
		case state >= stateHeld && state-stateHeld < uint64(len(q.hosts)):
			q.items[it.ID] = it
			q.restoreHeld(q.hosts[state-stateHeld], it)
		default:
			return errDamaged
		}
	}
	for i := range columns {
		if i != columnKeys && len(columns[i].bytes) > 0 {
			return errDamaged
		}
	}
	return nil
}

// restoreKeys is the inverse of [writer.keys].
func (q *Queue) restoreKeys(c *column) error {
	var key []byte
	for last := uint64(0); len(c.bytes) > 0; {
		shared := c.number()
		rest := c.take(c.number())
		step := c.number()
		if c.short || shared > uint64(len(key)) || shared+uint64(len(rest)) > closure.MaxFunctionName {
			return errDamaged
		}
		key = append(key[:shared], rest...)
		id := last + step>>1
		_, known := q.keys.ids[string(key)]
		if len(key) == 0 || known || id <= last || id > q.lastID {
			return errDamaged
		}
		q.keys.add(string(key), id)
		if step&1 == 1 {
			q.keys.hasFailed(string(key), id)
		}
		last = id
	}
	return nil
}

func (q *Queue) restoreHeld(h *host, it *item) {
	h.hold(it)
	h.rest = append(h.rest, it)
	q.executing++
	if !it.detached() {
		q.attachedExecuting++
	}
	if it.told {
		q.tell(it)
	}
}

func readItem(s *saved, columns *[columnCount]column, last uint64) (it *item, state uint64, ok bool) {
	number := func(column int) uint64 { return columns[column].number() }
	id := last + number(columnID)
	state = number(columnState)
	flags, attempt := number(columnFlags), number(columnAttempt)
	function := number(columnFunction)
	options := number(columnOptions)
	key := columns[columnKey].take(number(columnKey))
	c := closure.Closure{
		Args:   argument(columns[columnArgs].take(number(columnArgsLen))),
		Kwargs: argument(columns[columnKwargs].take(number(columnKwargsLen))),
	}
	uses := number(columnResources)
	if uses > uint64(len(columns[columnResources].bytes)) || function >= uint64(len(s.Functions)) || attempt > math.MaxInt32 {
		return nil, 0, false
	}
	for range uses {
		c.Resources = append(c.Resources, number(columnResources))
	}
	c.Function = s.Functions[function]
	if c.Options, ok = readOptions(s.Options, options, string(key)); !ok {
		return nil, 0, false
	}
	if slices.ContainsFunc(columns[:], func(c column) bool { return c.short }) {
		return nil, 0, false
	}
	it = newItem(c, id)
	it.Attempt = int(attempt)
	it.setFlags(flags)
	return it, state, true
}

// argument returns a copy, so that one closure does not keep the others' alive.
func argument(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return bytes.Clone(raw)
}

func (q *Queue) restoreLosses(s *saved) error {
	for _, l := range s.Losses {
		it := q.items[l.ID]
		if it == nil || l.Times < 0 || len(l.On) > maxLostOn {
			return errDamaged
		}
		it.losses, it.lostOn = l.Times, l.On
	}
	return nil
}
