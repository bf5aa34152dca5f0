package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Withdraw takes back a join or done whose client does not wait for it any more. Without
// that it would take the queue's error from those who still ask. It has done nothing then,
// and asked again it is another one. Where it has begun a drain, what was cancelled stays
// so, and the next request that asks gets the error.
func (q *requests) Withdraw(r closure.WaitRequest) closure.WithdrawAnswer {
	c := q.clients.named[r.Client]
	if c == nil {
		return closure.WithdrawAnswer{}
	}
	asked := func(w *request) bool { return w.client == c && w.kind != asksSchedule && w.number == r.Call }
	var found *request
	if at := slices.IndexFunc(q.waitlist, asked); at >= 0 {
		found = q.waitlist[at]
		q.waitlist = slices.Delete(q.waitlist, at, at+1)
	} else if q.drain != nil && asked(q.drain) {
		found, q.drain = q.drain, nil
	} else {
		return closure.WithdrawAnswer{}
	}
	c.waits.forgive(r.Call)
	found.wait.refuse(ErrWithdrawn)
	q.advance()
	return closure.WithdrawAnswer{Withdrawn: true}
}
