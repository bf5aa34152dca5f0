package rules

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Bounds of the state of clients, which is kept so that a request that is sent again gets the
// same answer.
const (
	maxClients = 1000
	// maxAnswers bounds the answers that are kept for each client and kind of request. It is
	// more than a server allows updates in flight. Requests that wait do not count.
	maxAnswers = 16
	// maxAnswerBytes bounds the answers of all clients and their names together.
	maxAnswerBytes = 128 << 10
)

// clients are the clients that have sent requests lately.
type clients struct {
	named map[string]*client // for look-ups only: ranging over a map has no order
	list  []*client
	clock uint64
	bytes int
}

// client is a sender of requests, such as a coordinator.
type client struct {
	name string
	// epoch counts the errors that were raised to it.
	epoch uint64
	// used is the time of its last request, by the clock of clients.
	used uint64
	// busy is the idle epoch of the queue in which it has last scheduled closures that are not
	// detached. It is 0 after an answer to the client that nothing is open.
	busy uint64
	// pendingError reports whether the queue's last error was raised to another client, and
	// must be raised to this client, too.
	pendingError bool

	batches   answers[closure.ScheduleAnswer]
	waits     answers[closure.WaitAnswer]
	resources answers[closure.ResourceAnswer]
}

// answers has the answers to one kind of request, by number.
type answers[A any] struct {
	list []numbered[A]
	// forgotten is the highest number whose answer was forgotten. Numbers in open may be
	// lower and were never answered: these requests waited when the queue was last
	// restored, and have not been sent again.
	forgotten uint64
	open      []uint64
}

type numbered[A any] struct {
	number uint64
	call   *Call[A]
	bytes  int // of the answer
}

func newClients() clients { return clients{named: map[string]*client{}} }

// asking returns the client of that name and records that it is active.
func (cs *clients) asking(name string) *client {
	c := cs.named[name]
	if c == nil {
		c = &client{name: name}
		cs.named[name] = c
		cs.list = append(cs.list, c)
		cs.bytes += len(name)
	}
	cs.clock++
	c.used = cs.clock
	for len(cs.list) > maxClients && cs.forgetOldest(c) {
	}
	return c
}

// forgetOldest drops the client that has been quiet for longest, except for the client to keep
// and for clients that wait. A client with a pending error is dropped only if there is no
// other. forgetOldest reports whether it dropped one.
func (cs *clients) forgetOldest(keep *client) bool {
	oldest := -1
	for i, c := range cs.list {
		if c != keep && !c.waits.waiting() && !c.batches.waiting() && (oldest < 0 || c.rather(cs.list[oldest])) {
			oldest = i
		}
	}
	if oldest < 0 {
		return false
	}
	c := cs.list[oldest]
	cs.bytes -= len(c.name) + c.batches.bytes() + c.waits.bytes() + c.resources.bytes()
	delete(cs.named, c.name)
	cs.list = slices.Delete(cs.list, oldest, oldest+1)
	return true
}

// rather reports whether this client is forgotten rather than the other.
func (c *client) rather(o *client) bool {
	if c.pendingError != o.pendingError {
		return o.pendingError
	}
	return c.used < o.used
}

// find returns the call with a number, or nil if it is new.
func (a *answers[A]) find(number uint64) (*Call[A], error) {
	at, found := slices.BinarySearchFunc(a.list, number, compareNumber)
	switch {
	case found:
		return a.list[at].call, nil
	case number <= a.forgotten && !slices.Contains(a.open, number):
		return nil, fmt.Errorf("%w: request %d of the client was answered before request %d, and only the latest answers are kept", ErrForgotten, number, a.forgotten+1)
	}
	return nil, nil
}

// add adds a new call. It forgets as many answers as exceed maxAnswers, and returns their
// size in bytes.
func (a *answers[A]) add(number uint64, call *Call[A]) (dropped int) {
	for a.given() >= maxAnswers {
		dropped += a.drop(slices.IndexFunc(a.list, func(n numbered[A]) bool { return n.call.ready }))
	}
	a.insert(number, call)
	return dropped
}

func (a *answers[A]) given() int {
	given := 0
	for _, n := range a.list {
		if n.call.ready {
			given++
		}
	}
	return given
}

func (a *answers[A]) insert(number uint64, call *Call[A]) {
	at, _ := slices.BinarySearchFunc(a.list, number, compareNumber)
	a.list = slices.Insert(a.list, at, numbered[A]{number: number, call: call})
	a.open = slices.DeleteFunc(a.open, func(o uint64) bool { return o == number })
}

func (a *answers[A]) drop(at int) (bytes int) {
	bytes = a.list[at].bytes
	a.forgotten = max(a.forgotten, a.list[at].number)
	a.list = slices.Delete(a.list, at, at+1)
	return bytes
}

// forgive removes a request as if it had never been sent, so that it can be sent again.
func (a *answers[A]) forgive(number uint64) {
	at, found := slices.BinarySearchFunc(a.list, number, compareNumber)
	if !found {
		return
	}
	a.list = slices.Delete(a.list, at, at+1)
	if number <= a.forgotten {
		a.open = append(a.open, number)
		a.open = a.open[max(0, len(a.open)-maxWaiting):]
	}
}

// weigh records the size of an answer.
func (a *answers[A]) weigh(number uint64, bytes int) {
	if at, found := slices.BinarySearchFunc(a.list, number, compareNumber); found {
		a.list[at].bytes = bytes
	}
}

func (a *answers[A]) waiting() bool {
	return slices.ContainsFunc(a.list, func(n numbered[A]) bool { return !n.call.ready })
}

func (a *answers[A]) bytes() int {
	sum := 0
	for _, n := range a.list {
		sum += n.bytes
	}
	return sum
}

func compareNumber[A any](n numbered[A], number uint64) int {
	switch {
	case n.number < number:
		return -1
	case n.number > number:
		return 1
	}
	return 0
}

// answered counts an answer to a client. If all answers are too large together, the clients
// that have been quiet for longest are forgotten, and then the older answers to c.
func (cs *clients) answered(c *client, bytes int) {
	cs.bytes += bytes
	for cs.bytes > maxAnswerBytes && cs.forgetOldest(c) {
	}
	for cs.bytes > maxAnswerBytes && (c.batches.shorten(cs) || c.waits.shorten(cs)) {
	}
}

// shorten drops the oldest answer unless it is the only one.
func (a *answers[A]) shorten(cs *clients) bool {
	if len(a.list) < 2 || !a.list[0].call.ready {
		return false
	}
	cs.bytes -= a.drop(0)
	return true
}
