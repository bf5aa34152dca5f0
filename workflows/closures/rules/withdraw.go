package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Withdraw removes a join or done whose client no longer waits for it. Otherwise it would take
// the queue's error without raising it to a client. A request that is sent again is a new
// request. If it had begun a drain, cancelled closures stay cancelled, and the next request
// raises the error.
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
