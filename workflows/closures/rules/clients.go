package rules

import (
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Client is a program that schedules closures.
type Client struct {
	Name string `json:"name"`
	// Batch and Call are the numbers of its last answered requests, and Scheduled and Joined the
	// answers. Partial reports which closures of the unanswered schedule are queued.
	Batch     uint64                 `json:"batch,omitempty"`
	Scheduled closure.ScheduleAnswer `json:"scheduled"`
	Partial   Partial                `json:"partial"`
	Call      uint64                 `json:"call,omitempty"`
	Joined    closure.WaitAnswer     `json:"joined"`
	// Outcomes lists those that the client may not have received, and Taken counts the ones before
	// them.
	Outcomes []closure.Outcome `json:"outcomes,omitempty"`
	Taken    uint64            `json:"taken,omitempty"`
	// Heard is the time of its last request.
	Heard time.Time `json:"heard"`
}

// Partial describes a schedule that is larger than the queue: its first closure and the number of
// queued ones.
type Partial struct {
	Batch  uint64 `json:"batch,omitempty"`
	First  uint64 `json:"first,omitempty"`
	Queued int    `json:"queued,omitempty"`
}

const (
	// maxKept limits the bytes of kept outcomes; above it, hosts do not get new closures.
	maxKept = closure.MaxQueueBytes
	// A client with untaken outcomes is forgotten after being idle for forgetAfter.
	forgetAfter = time.Minute
	// maxClients limits the clients that are remembered.
	maxClients = 1000
)

// client returns a request's client.
func (q *Queue) client(name string) *Client {
	i := slices.IndexFunc(q.Clients, func(c *Client) bool { return c.Name == name })
	if i < 0 {
		q.forgetClients()
		q.Clients = append(q.Clients, &Client{Name: name})
		i = len(q.Clients) - 1
	}
	c := q.Clients[i]
	c.Heard = q.now
	return c
}

// forgetClients forgets idle clients that block active ones, and the oldest ones if there are too
// many.
func (q *Queue) forgetClients() {
	q.Clients = slices.DeleteFunc(q.Clients, func(c *Client) bool {
		many := len(q.Clients) >= maxClients && len(c.Outcomes) == 0
		if q.kept <= maxKept && !many || q.now.Sub(c.Heard) < forgetAfter || q.waits(c) {
			return false
		}
		for _, o := range c.Outcomes {
			q.kept -= sizeOf(o)
		}
		return true
	})
}

// waits reports whether one of the client's requests waits.
func (q *Queue) waits(c *Client) bool {
	return q.drain != nil && q.drain.client == c || slices.ContainsFunc(q.takes, func(t *take) bool { return t.client == c }) ||
		slices.ContainsFunc(q.requests, func(r *request) bool { return r.client == c })
}

// take is a request that waits for outcomes: a take, or an otherwise completed schedule.
type take struct {
	client *Client
	give   func([]closure.Outcome)
	refuse func(error)
}

// Take waits for the client's outcomes.
func (q *Queue) Take(r closure.TakeRequest) *Call[closure.TakeAnswer] {
	if err := q.check(); err != nil {
		return refused[closure.TakeAnswer](err)
	}
	c := q.client(r.Client)
	if err := q.drop(c, r.After); err != nil {
		return refused[closure.TakeAnswer](err)
	}
	call := &Call[closure.TakeAnswer]{}
	q.await(&take{client: c, refuse: call.refuse, give: func(o []closure.Outcome) { call.give(closure.TakeAnswer{Outcomes: o}) }})
	q.advance()
	return call
}

// drop drops the outcomes that a client has received.
func (q *Queue) drop(c *Client, after uint64) error {
	if after < c.Taken || after > c.Taken+uint64(len(c.Outcomes)) {
		return fmt.Errorf("the values of %s are no longer known: it has not taken any for a minute while too many were kept", c.Name)
	}
	for _, o := range c.Outcomes[:after-c.Taken] {
		q.kept -= sizeOf(o)
	}
	c.Outcomes, c.Taken = c.Outcomes[after-c.Taken:], after
	return nil
}

// await makes a request wait for outcomes. The same client's older request gets an empty answer.
func (q *Queue) await(t *take) {
	q.takes = slices.DeleteFunc(q.takes, func(older *take) bool {
		if older.client == t.client {
			older.give(nil)
		}
		return older.client == t.client
	})
	q.takes = append(q.takes, t)
}

// answerTakes answers the takes with available outcomes.
func (q *Queue) answerTakes() {
	q.takes = slices.DeleteFunc(q.takes, func(t *take) bool {
		n, size := 0, 0
		for n < len(t.client.Outcomes) && n < closure.MaxBatch && (n == 0 || size < closure.MaxBatchBytes) {
			size += sizeOf(t.client.Outcomes[n])
			n++
		}
		if n > 0 {
			t.give(t.client.Outcomes[:n:n])
		}
		return n > 0
	})
}

// finish completes a closure, and keeps its outcome for its client.
func (q *Queue) finish(it *Item, o closure.Outcome) {
	switch o.Kind {
	case "", closure.OutcomeValue:
		q.Counts.Finished++
	case closure.OutcomeCancelled:
		q.Counts.Cancelled++
	default:
		q.Counts.Failed++
	}
	o.ID = it.ID
	if i := slices.IndexFunc(q.Clients, func(c *Client) bool { return c.Name == it.Client }); i >= 0 {
		q.Clients[i].Outcomes = append(q.Clients[i].Outcomes, o)
		q.kept += sizeOf(o)
	}
}

// overhead is the approximate size of an outcome as JSON without its value and its error.
const overhead = 96

// sizeOf returns the size of an outcome as JSON, in bytes.
func sizeOf(o closure.Outcome) int {
	n := overhead + len(o.Value) + len(o.Task)
	if e := o.Error; e != nil {
		n += overhead + len(e.Message) + len(e.Traceback) + len(e.Args)
	}
	return n
}
