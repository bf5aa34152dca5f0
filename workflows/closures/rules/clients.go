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
	// Scheduled counts its closures.
	Scheduled uint64 `json:"scheduled,omitempty"`
	// Outcomes lists the outcomes that the client may not have received. Taken is the number of
	// outcomes before them.
	Outcomes []closure.Outcome `json:"outcomes,omitempty"`
	Taken    uint64            `json:"taken,omitempty"`
	// Heard is the time of its last request.
	Heard time.Time `json:"heard"`
}

const (
	// maxKept limits the total size of kept outcomes, in bytes. Above it, hosts do not receive new
	// closures.
	maxKept = closure.MaxQueueBytes
	// forgetAfter is how long a client with untaken outcomes may be idle before it is forgotten.
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

// forgetClients forgets idle clients that block active ones and, if there are too many clients, the
// one that has been idle for longest.
func (q *Queue) forgetClients() {
	isIdle := func(c *Client) bool {
		return q.now.Sub(c.Heard) >= forgetAfter && !slices.ContainsFunc(q.calls, func(one *Call) bool { return one.client == c })
	}
	if q.kept > maxKept {
		q.Clients = slices.DeleteFunc(q.Clients, func(c *Client) bool {
			if !isIdle(c) {
				return false
			}
			for _, o := range c.Outcomes {
				q.kept -= sizeOf(o)
			}
			return true
		})
	}
	if len(q.Clients) < maxClients {
		return
	}
	oldest := -1
	for i, c := range q.Clients {
		if isIdle(c) && len(c.Outcomes) == 0 && (oldest < 0 || c.Heard.Before(q.Clients[oldest].Heard)) {
			oldest = i
		}
	}
	if oldest >= 0 {
		q.Clients = slices.Delete(q.Clients, oldest, oldest+1)
	}
}

// drop drops the outcomes that a client has received.
func (q *Queue) drop(c *Client, r closure.SyncRequest) error {
	if r.After < c.Taken || r.After > c.Taken+uint64(len(c.Outcomes)) || r.First > c.Scheduled+1 {
		return fmt.Errorf("the values of %s were discarded: it did not fetch any for a minute, and too many were kept", c.Name)
	}
	for _, o := range c.Outcomes[:r.After-c.Taken] {
		q.kept -= sizeOf(o)
	}
	c.Outcomes, c.Taken = c.Outcomes[r.After-c.Taken:], r.After
	return nil
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
	o.ID = it.Number
	q.keep(it.Client, o)
}

// keep keeps an outcome for a client.
func (q *Queue) keep(client string, o closure.Outcome) {
	if i := slices.IndexFunc(q.Clients, func(c *Client) bool { return c.Name == client }); i >= 0 {
		q.Clients[i].Outcomes = append(q.Clients[i].Outcomes, o)
		q.kept += sizeOf(o)
	}
}

// overhead is the approximate size of a JSON-encoded outcome, excluding its value and error.
const overhead = 96

// sizeOf returns the size of an outcome as JSON, in bytes.
func sizeOf(o closure.Outcome) int {
	n := overhead + len(o.Value) + len(o.Task)
	if e := o.Error; e != nil {
		n += overhead + len(e.Message) + len(e.Traceback)
	}
	return n
}
