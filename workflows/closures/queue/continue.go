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
	// handOver limits how long hosts may take to return their batches. The batches of a host that
	// does not answer go to other hosts.
	handOver = 5 * time.Second
	// maxCarried limits the packed state, in bytes. A server accepts 2 MiB by default, and
	// terminates a workflow that sends more.
	maxCarried = 1900 << 10
	// stayFor is the number of events after which a queue that was too large to continue as new
	// tries again.
	stayFor = 1000
)

// shouldContinue reports whether the history is long enough to continue as new.
func (q *queue) shouldContinue(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() && (q.stayed == 0 || info.GetCurrentHistoryLength() >= q.stayed+stayFor)
}

// continueAsNew continues as new. Hosts return their batches, and continue their current calls for
// the next execution. Clients repeat their waiting requests.
//
// A queue that is too large does not continue as new. This is rare, because it takes a full queue
// of random arguments.
func (q *queue) continueAsNew(ctx workflow.Context) error {
	q.machine.Suspend()
	q.carryOut(ctx)
	if _, err := workflow.AwaitWithTimeout(ctx, handOver, func() bool { return len(q.cancels) == 0 }); err != nil {
		return err
	}
	if err := yield(ctx); err != nil {
		return err
	}
	if q.machine.Ended() {
		return nil
	}
	state := q.machine.Carried()
	packed, err := pack(state)
	if err != nil {
		return err
	}
	// The answer is recorded in the history, so that a replay does not depend on the size: another
	// Go version may compress to a different size.
	var tooLarge bool
	err = workflow.SideEffect(ctx, func(workflow.Context) any { return len(packed) > maxCarried }).Get(&tooLarge)
	if err != nil {
		return err
	}
	if !tooLarge {
		return workflow.NewContinueAsNewError(ctx, closure.QueueType, q.in, packed)
	}
	q.log(ctx).Warn("the call queue is too large to continue as new at present", "bytes", len(packed), "limit", maxCarried)
	q.stayed = workflow.GetInfo(ctx).GetCurrentHistoryLength()
	q.machine.Resume()
	return nil
}

// maxUnpacked limits a queue before it is packed, in bytes. It is never reached.
const maxUnpacked = 128 << 20

// pack returns a state as compressed JSON.
func pack(s rules.State) ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false) // escaping would lengthen the arguments, whose size counts toward the limit
	if err := e.Encode(s); err != nil {
		return nil, err
	}
	err := z.Close()
	return packed.Bytes(), err
}

// unpack is the inverse of pack.
func unpack(packed []byte) (s rules.State, err error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return s, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxUnpacked)) // reading to the end verifies the checksum
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}
