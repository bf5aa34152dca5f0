package closurequeue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Options of a [Queue].
type Options struct {
	// TaskQueue is that of the run's workflow.
	TaskQueue string
	// QueueSize and TransientUnavailable are those of a queue that is made; see
	// [spec.ClosureQueueInput].
	QueueSize            int
	TransientUnavailable *int
}

// Queue is a client of the queue of a run. Its methods may be called at the same
// time.
type Queue struct {
	server client.Client
	id     string
	run    spec.BarrierRun
	name   string // of this client, among all of the queue's

	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu sync.Mutex
	// pending are scheduled here and not yet sent.
	pending      []*Remote
	pendingBytes int
	sending      int // closures of the request that is on its way
	batch, call  uint64
	epoch        uint64
	// raised is the queue's error, which a request to schedule has taken. The next
	// call has to tell it.
	raised error
	// broken is why nothing can be scheduled any more.
	broken error
	// remotes are those whose ID is known and whose outcome is not, and early the
	// outcomes that came before the ID.
	remotes map[uint64][]*Remote
	early   map[uint64]spec.Outcome
	// cancelledEarly are ranges that were cancelled while IDs were on their way.
	cancelledEarly []spec.DecidedOutcomes
	// changed is closed and made anew when something of the above has changed.
	changed chan struct{}
	// following says that the history is followed.
	following bool
}

// ErrRunEnded says that the run of a queue has ended.
var ErrRunEnded = errors.New("the run has ended; its closures cannot be scheduled any more")

// Open attaches to the queue of a run, and makes it if there is none. A queue that
// ended with its run is attached to for its values only. execution of run is the
// first one of the run.
func Open(ctx context.Context, c client.Client, run spec.BarrierRun, o Options) (*Queue, error) {
	id := spec.ClosureQueueID(run.WorkflowID, run.RunID)
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: o.TaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "closures of run " + run.WorkflowID,
	}, spec.ClosureQueueType, spec.ClosureQueueInput{Run: run, QueueSize: o.QueueSize, TransientUnavailable: o.TransientUnavailable})
	var ended *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &ended) {
		return nil, fmt.Errorf("open the queue of closures of run %s: %w", run.WorkflowID, err)
	}
	return attach(c, id, run), nil
}

// Attach attaches to the queue of a run that is there.
func Attach(c client.Client, run spec.BarrierRun) *Queue {
	return attach(c, spec.ClosureQueueID(run.WorkflowID, run.RunID), run)
}

func attach(c client.Client, id string, run spec.BarrierRun) *Queue {
	q := &Queue{
		server: c, id: id, run: run, name: rand.Text(),
		remotes: map[uint64][]*Remote{}, early: map[uint64]spec.Outcome{}, changed: make(chan struct{}),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.loops.Go(q.send)
	return q
}

// ID is the workflow ID of the queue.
func (q *Queue) ID() string { return q.id }

// Close ends the client. The queue, and what is in it, go on. Closures that were
// scheduled here and not yet sent are lost; [Queue.Flush] has them sent.
func (q *Queue) Close() {
	q.cancel()
	q.loops.Wait()
	q.fail(errors.New("the coordinator was closed"))
}

// fail gives all who wait this error.
func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.broken == nil {
		q.broken = err
	}
	for _, r := range q.pending {
		r.fail(err)
	}
	q.pending, q.pendingBytes = nil, 0
	for _, rs := range q.remotes {
		for _, r := range rs {
			r.fail(err)
		}
	}
	clear(q.remotes)
	q.wake()
}

// wake is for holders of mu.
func (q *Queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// await waits until ready, which is called with mu held, says so.
func (q *Queue) await(ctx context.Context, ready func() bool) error {
	for {
		q.mu.Lock()
		if ready() {
			q.mu.Unlock()
			return nil
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-q.ctx.Done():
			return errors.New("the coordinator was closed")
		}
	}
}

// Status asks the queue how it stands. For one that has ended its result says so:
// nobody may be there any more to answer.
func (q *Queue) Status(ctx context.Context) (spec.QueueStatus, error) {
	d, err := q.server.DescribeWorkflowExecution(ctx, q.id, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return spec.QueueStatus{}, &RefusedError{Message: fmt.Sprintf("run %s has no queue of closures", q.run.WorkflowID)}
	} else if err != nil {
		return spec.QueueStatus{}, err
	}
	switch d.GetWorkflowExecutionInfo().GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		var s spec.QueueStatus
		v, err := q.server.QueryWorkflow(ctx, q.id, "", spec.QueryQueue)
		if err == nil {
			err = v.Get(&s)
		}
		return s, err
	}
	var r spec.QueueResult
	if err := q.server.GetWorkflow(ctx, q.id, "").Get(ctx, &r); err != nil {
		return spec.QueueStatus{}, fmt.Errorf("the queue of run %s left no account of its closures: %w", q.run.WorkflowID, err)
	}
	return spec.QueueStatus{State: spec.QueueEnded, Counts: r.Counts, Executions: r.Executions, Workers: []spec.WorkerStatus{}}, nil
}
