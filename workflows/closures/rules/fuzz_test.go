package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// FuzzQueue feeds a queue any events in any order, with hosts that behave arbitrarily, and
// checks what the workflow and the coordinators rely on. A twin gets the same events without
// being restored from a snapshot, and must act in the same way.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{})
	for seed := range byte(48) {
		script := []byte{seed}
		x := uint32(seed)*2654435761 + 12345
		for range 300 {
			x = x*1664525 + 1013904223
			script = append(script, byte(x>>24))
		}
		f.Add(script)
	}
	scripts.Fuzz(f, 3000, func(t *testing.T, data scripts.Bytes) {
		newFuzzed(t, data).run()
	})
}

// fuzzHosts are the tasks, and the hosts on which they serve. All of them serve in the end.
var fuzzHosts = []struct {
	host, queue string
	tasks       []string
}{
	{"host-a", "q/a", []string{"worker-0", "worker-1"}},
	{"host-b", "q/b", []string{"worker-2"}},
	{"host-b", "q/b2", []string{"worker-2", "worker-3"}},
}

type fuzzed struct {
	t *testing.T
	scripts.Bytes
	config      Config
	queue, twin *Queue
	seq         int64
	numbers     map[string]uint64
	calls       []*fuzzCall

	// Closures from the view of hosts and clients: admitted and cancelled closures have IDs,
	// those in ended have ended, and those in held are at a host.
	detached map[uint64]bool
	ended    map[uint64]bool
	failed   map[uint64]bool // with an error that may be the queue's
	held     map[uint64]fuzzHeld
	leases   map[int][]uint64
	order    []int // of open leases
	raisedTo map[uint64][]string
	lastID   uint64
	over     bool
	restored bool
	// executing is the number of closures that were held and not detached when the last step
	// began, and own the number for each client.
	executing int
	own       map[string]int

	// owners holds the owners of resources that are not released. built holds the resources
	// that a host may have built and does not know to be gone, and telling the released ranges
	// that a lease carries, by its number.
	owners  map[uint64]string
	built   map[string]map[uint64]bool
	telling map[int][][2]uint64
	// Releases that hosts have not answered, of each.
	releases, twins []ReleaseOn
}

type fuzzHeld struct {
	host     string
	attempt  int
	detached bool
	client   string
}

// fuzzCall is a request, with its answers from both.
type fuzzCall struct {
	schedule    *closure.ScheduleRequest
	wait        *closure.WaitRequest
	done        bool
	answered    bool
	withdrawn   bool
	ids         []uint64
	main, other fuzzAnswer
}

type fuzzAnswer interface{ state() (bool, string) }

func (c *Call[A]) state() (bool, string) {
	a, err := c.Answer()
	text, _ := json.Marshal(a)
	return c.Ready(), fmt.Sprintf("%s %v", text, err)
}

func newFuzzed(t *testing.T, data scripts.Bytes) *fuzzed {
	f := &fuzzed{
		t: t, Bytes: data, numbers: map[string]uint64{}, detached: map[uint64]bool{}, ended: map[uint64]bool{}, failed: map[uint64]bool{},
		held: map[uint64]fuzzHeld{}, leases: map[int][]uint64{}, raisedTo: map[uint64][]string{},
		owners: map[uint64]string{}, built: map[string]map[uint64]bool{}, telling: map[int][][2]uint64{},
	}
	size, more := f.Byte(), f.Byte()
	f.config = Config{QueueSize: []int{0, 1, 2, 7, 1000}[size%5], TransientUnavailable: int(more % 4)}
	f.queue, f.twin = New(f.config), New(f.config)
	return f
}

func (f *fuzzed) client() string { return fmt.Sprint("client-", f.Byte()%3) }

// both does the same to both queues.
func (f *fuzzed) both(do func(*Queue)) {
	do(f.queue)
	do(f.twin)
}

func (f *fuzzed) run() {
	for len(f.Bytes) > 0 {
		f.event()
		f.step()
	}
	f.finish()
}

func (f *fuzzed) event() {
	switch f.Byte() % 29 {
	case 0, 1:
		f.serve(int(f.Byte())%len(fuzzHosts), int(f.Byte())%5)
	case 2, 3, 4, 5, 6:
		f.schedule()
	case 7:
		f.wait(false)
	case 8:
		f.wait(true)
	case 9, 10, 11, 12, 13, 14, 15, 16:
		f.leaseEnds()
	case 17:
		if n := f.chooseLease(); n > 0 {
			f.leaseLost(n, f.Byte()%3 == 0)
		}
	case 18, 19:
		f.cancel()
	case 20:
		f.askAgain()
	case 21:
		if f.Byte()%2 == 0 {
			f.continueAsNew()
		}
	case 22:
		f.wait(false)
	case 23:
		f.withdraw()
	case 24, 25:
		f.createResource()
	case 26:
		f.release()
	case 27:
		f.answerReleases(f.Byte()%3 > 0)
	default:
		if f.Byte()%16 == 0 {
			f.runEnded()
		}
	}
}

func (f *fuzzed) serve(at, slots int) {
	h := fuzzHosts[at]
	f.seq++
	m := closure.ServingMessage{Host: h.host, Queue: h.queue, Seq: f.seq}
	if slots > 0 {
		for _, task := range h.tasks {
			m.Serving = append(m.Serving, closure.ServingTask{Task: task, Slots: slots, Functions: []string{"f", "g"}[:1+slots%2]})
		}
	}
	if slots == 0 {
		f.forgetBuilt(h.queue)
	}
	f.both(func(q *Queue) { q.Serving(m) })
}

func (f *fuzzed) schedule() {
	client := f.client()
	f.numbers[client]++
	r := &closure.ScheduleRequest{Client: client, Batch: f.numbers[client]}
	if c := f.queue.clients.named[client]; c != nil {
		r.Epoch = c.epoch
		if r.Epoch > 0 && f.Byte()%8 == 0 {
			r.Epoch--
		}
	}
	o := f.Byte()
	for range 1 + f.Byte()%12 {
		c := closure.Closure{Function: []string{"f", "g"}[o&1], Args: fmt.Appendf(nil, "[%q,%d]", client, f.Byte())}
		if o&64 != 0 && f.queue.resources.last > 0 {
			if id := 1 + uint64(f.Byte())%f.queue.resources.last; f.owners[id] != "" {
				c.Resources = []uint64{id}
			}
		}
		if o&2 != 0 && (o&4 != 0 || f.Byte()%2 == 0) {
			c.Task = fmt.Sprint("worker-", f.Byte()%4)
		}
		r.Closures = append(r.Closures, c)
	}
	f.ask(&fuzzCall{schedule: r})
}

func (f *fuzzed) wait(done bool) {
	client := f.client()
	f.numbers[client+" waits"]++
	f.ask(&fuzzCall{wait: &closure.WaitRequest{Client: client, Call: f.numbers[client+" waits"]}, done: done})
}

func (f *fuzzed) ask(c *fuzzCall) {
	c.main, c.other = c.ask(f.queue), c.ask(f.twin)
	f.calls = append(f.calls, c)
}

func (c *fuzzCall) ask(q *Queue) fuzzAnswer {
	switch {
	case c.schedule != nil:
		r := *c.schedule
		r.Closures = slices.Clone(r.Closures)
		return q.Schedule(r)
	case c.done:
		return q.Done(*c.wait)
	}
	return q.Join(*c.wait)
}

// askAgain repeats a request, which must have the same answer.
func (f *fuzzed) askAgain() {
	if len(f.calls) == 0 {
		return
	}
	c := f.calls[len(f.calls)-1-int(f.Byte())%min(len(f.calls), 4)]
	if c.withdrawn {
		return // it would be another request
	}
	again, twin := c.ask(f.queue), c.ask(f.twin)
	before, text := c.main.state()
	if ready, now := again.state(); ready != before || now != text {
		f.t.Fatalf("asked again: %s, and then %s", text, now)
	}
	if ready, now := twin.state(); ready != before || now != text {
		f.t.Fatalf("asked again: %s, and of the twin %s", text, now)
	}
}

// withdraw withdraws a join or done, if the request is one and still waits. It may repeat an
// earlier withdrawal.
func (f *fuzzed) withdraw() {
	if len(f.calls) == 0 {
		return
	}
	c := f.calls[len(f.calls)-1-int(f.Byte())%min(len(f.calls), 8)]
	if c.wait == nil {
		return
	}
	a, b := f.queue.Withdraw(*c.wait), f.twin.Withdraw(*c.wait)
	if a != b || a.Withdrawn == c.answered {
		f.t.Fatalf("withdrawn %v, %v: %+v", a, b, c)
	}
	c.withdrawn = c.withdrawn || a.Withdrawn
}

func (f *fuzzed) chooseLease() int {
	if len(f.order) == 0 {
		return 0
	}
	return f.order[int(f.Byte())%len(f.order)]
}

func (f *fuzzed) closeLease(n int) []uint64 {
	ids := f.leases[n]
	delete(f.leases, n)
	f.order = slices.DeleteFunc(f.order, func(o int) bool { return o == n })
	return ids
}

func (f *fuzzed) leaseEnds() {
	n := f.chooseLease()
	if n == 0 {
		return
	}
	f.heard(n)
	r := closure.LeaseResult{Idle: f.Byte()%2 == 0}
	for _, id := range f.closeLease(n) {
		at := f.held[id]
		delete(f.held, id)
		o := closure.Outcome{ID: id, Task: "worker-0"}
		switch f.Byte() % 20 {
		case 0:
			o.Kind, o.Error = closure.OutcomeError, &closure.Error{Kind: "ValueError", Message: "fuzzed"}
		case 1:
			o.Kind = closure.OutcomeInput
		case 2, 3:
			o.Kind, o.Started = closure.OutcomeLost, true
		case 4:
			o.Kind = closure.OutcomeLost
		case 5:
			o.Kind, o.Error = closure.OutcomeUnavailable, &closure.Error{Message: "away", Task: "ps-0"}
		case 6:
			o.Kind = closure.OutcomeCancelled
		case 7, 8, 9, 10:
			r.Rest = append(r.Rest, id)
			f.held[id] = at
			continue
		case 11:
			continue // it does not know the closure
		case 12:
			o.Kind = "something new"
		}
		r.Outcomes = append(r.Outcomes, o)
		if o.Kind == "" || o.Kind.Final() {
			if f.ended[id] {
				f.t.Fatalf("%d was at a host after its end", id)
			}
			f.ended[id] = true
			f.failed[id] = o.Kind == closure.OutcomeError || o.Kind == closure.OutcomeInput
		}
	}
	f.both(func(q *Queue) { q.LeaseEnded(n, r) })
}

func (f *fuzzed) leaseLost(n int, refused bool) {
	if refused {
		f.forgetBuilt(f.queue.leases[n].host.queue)
	}
	for _, id := range f.closeLease(n) {
		delete(f.held, id)
	}
	f.both(func(q *Queue) {
		if refused {
			q.LeaseRefused(n)
		} else {
			q.LeaseLost(n)
		}
	})
}

func (f *fuzzed) cancel() {
	r := closure.CancelRequest{}
	for range f.Byte() % 4 {
		r.Closures = append(r.Closures, uint64(f.Byte())%(f.lastID+2))
	}
	a, b := f.queue.Cancel(r), f.twin.Cancel(r)
	if a != b {
		f.t.Fatalf("%+v and %+v", a, b)
	}
}

func (f *fuzzed) runEnded() {
	f.over = true
	f.both(func(q *Queue) { q.RunEnded("fuzzed") })
	f.leases, f.order, f.held = map[int][]uint64{}, nil, map[uint64]fuzzHeld{}
}

// continueAsNew replaces the queue by its snapshot. For the twin, every lease ends without
// outcomes. Waiting clients ask again.
func (f *fuzzed) continueAsNew() {
	f.both(func(q *Queue) { q.Suspend(true) })
	f.step()
	snapshot, again := packed(f.t, f.queue)
	f.queue = again
	if f.Byte()%4 == 0 { // packing is slow
		if again, _ := packed(f.t, f.queue); !bytes.Equal(snapshot, again) {
			f.t.Fatal("a snapshot of a snapshot differs")
		}
	}
	f.queue.firstEnded, f.queue.lastEnded = f.twin.firstEnded, f.twin.lastEnded
	for _, n := range f.order {
		f.twin.LeaseEnded(n, closure.LeaseResult{Rest: f.leases[n]})
	}
	f.leases, f.order = map[int][]uint64{}, nil
	f.releases = nil // it is unknown whether they reached the hosts
	f.both(func(q *Queue) { q.Suspend(false) })
	for _, c := range f.calls {
		if !c.answered {
			c.main, c.other = c.ask(f.queue), c.ask(f.twin)
		}
	}
	f.restored = true
	f.step()
}

// step takes the actions of both queues, compares them and carries them out.
func (f *fuzzed) step() {
	t := f.t
	before := f.queue.Status()
	f.executing, f.own = 0, map[string]int{}
	for _, h := range f.held {
		if !h.detached {
			f.executing++
			f.own[h.client]++
		}
	}
	quiet := f.queue.suspended
	actions, twins := f.queue.Actions(), f.twin.Actions()
	actions, f.releases = f.released(actions, f.releases)
	twins, f.twins = f.released(twins, f.twins)
	if f.restored {
		// The restored queue repeats its requests to cancel.
		f.restored = false
		tells := func(a Action) bool { _, tells := a.(CancelOn); return tells }
		twins = slices.DeleteFunc(twins, tells)
		actions = slices.DeleteFunc(actions, tells)
	}
	if a, b := withoutReleased(actions), withoutReleased(twins); len(a)+len(b) > 0 && !reflect.DeepEqual(a, b) {
		t.Fatalf("they do different things:\n%+v\n%+v\n%s\n%s", actions, twins, hostsOf(f.queue), hostsOf(f.twin))
	}
	if a, b := f.queue.Status(), f.twin.Status(); !reflect.DeepEqual(a, b) {
		t.Fatalf("they have different states:\n%+v\n%+v", a, b)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case Dispatch:
			f.dispatched(a, before, quiet)
		case Decide:
			f.decided(a)
		}
	}
	f.answers()
	f.check()
}

func hostsOf(q *Queue) (text string) {
	for _, h := range q.hosts {
		text += fmt.Sprintf("%+v\n", *h)
	}
	return text
}

func (f *fuzzed) dispatched(d Dispatch, before closure.QueueStatus, quiet bool) {
	t := f.t
	if f.leases[d.Number] != nil || len(d.Closures) == 0 || len(d.Closures) > closure.MaxBatch || quiet || f.over {
		t.Fatalf("%+v", d)
	}
	f.order = append(f.order, d.Number)
	f.given(d)
	for _, c := range d.Closures {
		at := fuzzHeld{d.TaskQueue, c.Attempt, c.Task != "", strings.Split(string(c.Args), `"`)[1]}
		known, adopted := f.held[c.ID]
		switch {
		case f.ended[c.ID]:
			t.Fatalf("%d is given out after its end", c.ID)
		case adopted && known != at:
			t.Fatalf("%d is given to %v while %v has it", c.ID, at, known)
		case !adopted && before.State == closure.QueueDraining:
			t.Fatalf("%d is given out while the queue is %s", c.ID, before.State)
		}
		if c.Task != "" && !adopted {
			at := slices.IndexFunc(f.queue.hosts, func(h *host) bool { return h.queue == d.TaskQueue })
			if f.queue.hosts[at].tasks[c.Task] == 0 {
				t.Fatalf("%d is for %s, which does not serve at %s", c.ID, c.Task, d.TaskQueue)
			}
		}
		f.held[c.ID] = at
		f.leases[d.Number] = append(f.leases[d.Number], c.ID)
	}
}

func (f *fuzzed) decided(d Decide) {
	end := func(id uint64) {
		if f.ended[id] {
			f.t.Fatalf("%d ends twice", id)
		}
		f.ended[id] = true
		f.lastID = max(f.lastID, id)
	}
	for _, r := range d.Cancelled {
		for id := r[0]; id <= r[1]; id++ {
			end(id)
		}
	}
	for _, o := range d.Other {
		end(o.ID)
		f.failed[o.ID] = true
	}
}

// answers checks the requests that have been answered.
func (f *fuzzed) answers() {
	for _, c := range f.calls {
		if c.answered {
			continue
		}
		ready, text := c.main.state()
		if twin, other := c.other.state(); twin != ready || text != other {
			f.t.Fatalf("they answer %v: %s and %v: %s", ready, text, twin, other)
		}
		if !ready {
			continue
		}
		c.answered = true
		if c.schedule != nil {
			a, err := c.main.(*Call[closure.ScheduleAnswer]).Answer()
			if err == nil {
				f.scheduled(c, a)
				f.raised(a.Raised, c.schedule.Client)
			}
			continue
		}
		a, err := c.main.(*Call[closure.WaitAnswer]).Answer()
		if err != nil {
			continue
		}
		f.raised(a.Raised, c.wait.Client)
		if !c.done && a.Raised == nil && f.executing > 0 {
			f.t.Fatalf("joined while %d execute", f.executing)
		}
	}
}

func (f *fuzzed) scheduled(c *fuzzCall, a closure.ScheduleAnswer) {
	for i := range c.schedule.Closures {
		id := a.First + uint64(i)
		c.ids = append(c.ids, id)
		if _, twice := f.detached[id]; twice || id == 0 {
			f.t.Fatalf("%d is given to two closures", id)
		}
		f.detached[id] = c.schedule.Closures[i].Task != ""
		if (a.Cancelled || a.Raised != nil && !f.detached[id]) && !f.ended[id] {
			f.t.Fatalf("%d is not cancelled with its request", id)
		}
	}
}

// raised checks an error that a client received: its closure is not detached, and the client
// has not received it before. When the first client receives it, no closure executes; when
// others do, none of their own.
func (f *fuzzed) raised(e *closure.Error, client string) {
	if e == nil || f.over && e.Closure == 0 {
		return
	}
	before := f.raisedTo[e.Closure]
	if slices.Contains(before, client) || !f.failed[e.Closure] || f.detached[e.Closure] {
		f.t.Fatalf("raised to %s, after %v: %+v", client, before, e)
	}
	f.raisedTo[e.Closure] = append(before, client)
	if f.own[client] > 0 || len(before) == 0 && f.executing > 0 {
		f.t.Fatalf("raised while %d execute, %d of them of %s", f.executing, f.own[client], client)
	}
}

func (f *fuzzed) check() {
	t, q := f.t, f.queue
	s := q.Status()
	c := s.Counts
	if c.Scheduled != uint64(c.Queued+c.Executing)+c.Finished+c.Failed+c.Cancelled {
		t.Fatalf("the counts do not add up: %+v", c)
	}
	if uint64(len(f.ended)) != c.Finished+c.Failed+c.Cancelled || len(f.held) != c.Executing {
		t.Fatalf("%d have ended and %d are held: %+v", len(f.ended), len(f.held), c)
	}
	bytes, queued, executing := 0, 0, 0
	for id, it := range q.items {
		if f.ended[id] {
			t.Fatalf("%d is there after its end", id)
		}
		bytes += it.size
		if it.host == nil && !it.detached() {
			queued++
		} else if !it.detached() {
			executing++
		}
	}
	if q.partial != nil {
		for _, it := range q.partial.left {
			bytes += it.size
		}
	}
	if bytes != c.Bytes || queued != q.queued.attached || executing != q.executing.attached {
		t.Fatalf("%d bytes, %d queued, %d executing: %+v", bytes, queued, executing, q)
	}
	for _, h := range q.hosts {
		held := 0
		h.each(func(*item) { held++ })
		if held != h.held || h.window < h.slots || len(h.serving) == 0 && h.held == 0 && len(h.leases) == 0 {
			t.Fatalf("%s holds %d: %+v", h.queue, held, h)
		}
	}
	if s.State == closure.QueueDraining && q.queued.attached > 0 || q.drain != nil && q.executing.attached == 0 {
		t.Fatalf("draining: %+v", c)
	}
	if f.over && len(q.items) > 0 {
		t.Fatalf("open after the run: %+v", c)
	}
}

// finish checks that no request waits forever when all tasks serve and every outcome arrives.
// Then it ends the run, and checks that every closure has ended.
func (f *fuzzed) finish() {
	t := f.t
	for i := range fuzzHosts {
		f.serve(i, 3)
	}
	f.step()
	for rounds := 0; len(f.order) > 0; rounds++ {
		if rounds > 100_000 {
			t.Fatal("it does not come to an end")
		}
		n := f.order[0]
		f.heard(n)
		r := closure.LeaseResult{Idle: true}
		for _, id := range f.closeLease(n) {
			r.Outcomes = append(r.Outcomes, closure.Outcome{ID: id})
			f.ended[id] = true
			delete(f.held, id)
		}
		f.both(func(q *Queue) { q.LeaseEnded(n, r) })
		f.step()
	}
	for _, c := range f.calls {
		if !c.answered {
			t.Fatalf("nobody answers %+v: %+v", c, f.queue)
		}
	}
	if c := f.queue.Status().Counts; c.Queued+c.Executing+c.Bytes > 0 {
		t.Fatalf("left over: %+v", c)
	}
	f.releaseAll()
	if !f.over {
		f.runEnded()
		f.step()
	}
	if uint64(len(f.ended)) != f.queue.lastID || uint64(len(f.detached)) != f.queue.lastID {
		t.Fatalf("%d of %d have ended, %d were told", len(f.ended), f.queue.lastID, len(f.detached))
	}
}
