package queue

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

const (
	// settle is the time that an execution that is about to end waits for its leases to return,
	// so that their closures need not be leased again.
	settle = 50 * time.Millisecond
	// maxExecutions bounds the executions whose ranges of IDs are kept. A server deletes
	// closed executions long before.
	maxExecutions = 1000
	// maxCarried bounds a packed resumption, in bytes. A server takes 2 MiB by default, and
	// terminates a workflow that sends more.
	maxCarried = 1900 << 10
	// stayFor is the number of events after which a queue that was too large tries again.
	stayFor = 1000
)

// shouldContinue reports whether the history is long enough to continue as new. A queue
// that was too large tries again when half of its closures have ended.
func (q *queue) shouldContinue(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	if !info.GetContinueAsNewSuggested() {
		return false
	}
	return q.stayed == 0 || info.GetCurrentHistoryLength() >= q.stayed+stayFor || q.machine.Shrunk()
}

// continueAsNew continues as new. Closures of open leases stay on their hosts, and the next
// execution leases them again. Before that nothing new is given out, so that no event comes
// between this decision and the server's accepting it.
//
// A queue that is too large stays without an error, and takes no closures until enough of them
// have ended. That is rare: it takes hundreds of kilobytes of random resources in addition to a
// full queue of random arguments.
func (q *queue) continueAsNew(ctx workflow.Context) error {
	q.continuing = true
	q.machine.Suspend(true)
	if _, err := workflow.AwaitWithTimeout(ctx, settle, func() bool { return q.open == 0 }); err != nil {
		return err
	}
	if err := yield(ctx); err != nil {
		return err
	}
	q.carryOut(ctx) // what it decided by itself
	snapshot, err := q.machine.Snapshot()
	if err != nil {
		return err
	}
	packed, err := pack(resumption{q.allExecutions(ctx), snapshot})
	if err != nil {
		return err
	}
	if q.isTooLarge(ctx, len(packed)) {
		q.log(ctx).Warn("the call queue is too large to continue as new; it accepts no calls until some have ended", "bytes", len(packed), "limit", maxCarried)
		q.stayed = workflow.GetInfo(ctx).GetCurrentHistoryLength()
		q.machine.TooLarge()
		q.machine.Suspend(false)
		q.continuing = false
		return nil
	}
	return workflow.NewContinueAsNewError(ctx, closure.QueueType, q.in, packed)
}

// isTooLarge reports whether a server might not take so many bytes. The answer is recorded in
// the history, so that a replay does not depend on the size: another version of Go may
// compress the same to more or less.
func (q *queue) isTooLarge(ctx workflow.Context, size int) bool {
	var d closure.DecidedOutcomes
	err := workflow.SideEffect(ctx, func(workflow.Context) any { return closure.DecidedOutcomes{TooLarge: size > maxCarried} }).Get(&d)
	return err != nil || d.TooLarge
}

// allExecutions returns the executions of the queue up to the present one.
func (q *queue) allExecutions(ctx workflow.Context) []closure.QueueExecution {
	own := closure.QueueExecution{RunID: workflow.GetInfo(ctx).WorkflowExecution.RunID}
	own.First, own.Last = q.machine.Ended()
	all := append(q.executions[:len(q.executions):len(q.executions)], own)
	return all[max(0, len(all)-maxExecutions):]
}

// resumption is the state that an execution passes to the next.
type resumption struct {
	Executions []closure.QueueExecution `json:"executions"`
	Queue      *rules.Snapshot          `json:"queue"`
}

// maxUnpacked bounds a queue before it is packed, in bytes. No queue reaches it.
const maxUnpacked = 128 << 20

// pack returns a resumption as JSON, compressed.
func pack(r resumption) ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false) // the text of arguments must not change: it counts
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	err := z.Close()
	return packed.Bytes(), err
}

// unpack is the inverse of pack.
func unpack(packed []byte) (r resumption, err error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return r, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxUnpacked)) // all of it, for its checksum
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}
