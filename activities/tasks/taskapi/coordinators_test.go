package taskapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// queueClient connects tasks to a queue the way a host does. It may later stand for another
// host.
type queueClient struct {
	client *closurequeue.Client
	size   atomic.Int64 // the size of the queue in the run's spec
	mu     sync.Mutex
	feeds  *closurequeue.Feeds
}

func (q *queueClient) Open(ctx context.Context, by runkey.Task, process int) (Opened, error) {
	if err := q.client.Open(ctx, closurequeue.Options{QueueSize: int(q.size.Load())}); err != nil {
		return Opened{}, err
	}
	if process > 0 {
		if _, err := q.client.ReleaseResources(ctx, closure.ReleaseRequest{Task: by.Task, Process: process}); err != nil {
			return Opened{}, err
		}
	}
	here, err := q.client.Here(ctx)
	return Opened{here.String(), closurequeue.FirstRoom(int(q.size.Load()))}, err
}

func forTask[A any](a A, err error) (A, error) {
	if errors.Is(err, closurequeue.ErrRunEnded) {
		return a, ErrRunOver
	}
	return a, err
}

func (q *queueClient) Schedule(ctx context.Context, _ runkey.Task, in closure.ScheduleRequest) (closure.ScheduleAnswer, error) {
	return forTask(q.client.Schedule(ctx, in))
}

func (q *queueClient) Join(ctx context.Context, _ runkey.Task, in closure.WaitRequest) (closure.WaitAnswer, error) {
	return forTask(q.client.Join(ctx, in))
}

func (q *queueClient) Done(ctx context.Context, _ runkey.Task, in closure.WaitRequest) (closure.WaitAnswer, error) {
	return forTask(q.client.Done(ctx, in))
}

func (q *queueClient) CreateResource(ctx context.Context, _ runkey.Task, in closure.ResourceRequest) (closure.ResourceAnswer, error) {
	return forTask(q.client.CreateResource(ctx, in))
}

func (q *queueClient) ReleaseResources(ctx context.Context, _ runkey.Task, in closure.ReleaseRequest) (closure.ReleaseAnswer, error) {
	return forTask(q.client.ReleaseResources(ctx, in))
}

func (q *queueClient) Cancel(ctx context.Context, _ runkey.Task, in closure.CancelRequest) (closure.CancelAnswer, error) {
	return forTask(q.client.Cancel(ctx, in))
}

func (q *queueClient) Find(ctx context.Context, _ runkey.Task, ids []uint64) (map[uint64]closure.Outcome, error) {
	return forTask(q.client.Find(ctx, ids...))
}

func (q *queueClient) Outcomes(ctx context.Context, _ runkey.Task, session, after string, wait time.Duration) (Outcomes, error) {
	at, err := closurequeue.ParsePosition(after)
	if err != nil {
		return Outcomes{}, &closure.RefusedError{Reason: err}
	}
	q.mu.Lock()
	feeds := q.feeds
	q.mu.Unlock()
	b, err := forTask(feeds.Next(ctx, session, at, wait))
	out := Outcomes{At: b.At.String(), Outcomes: b.Outcomes}
	for _, c := range b.Cancelled {
		out.Cancelled = append(out.Cancelled, CancelledClosures(c))
	}
	return out, err
}

// coordinatedHost is a host whose tasks schedule closures.
type coordinatedHost struct {
	*host
	queue  *queues.Server
	client *queueClient
}

func newCoordinated(t *testing.T, functions map[string]queues.Function) *coordinatedHost {
	t.Helper()
	h := &coordinatedHost{host: newHostWith(t, 2, newTogether()), queue: queues.New(t, functions)}
	client := closurequeue.NewClient(h.queue, queues.Run)
	h.client = &queueClient{client: client, feeds: closurequeue.NewFeeds(client)}
	t.Cleanup(func() { h.client.feeds.Close() })
	h.coordinators = h.client
	h.kill()
	return h
}

// kill ends the host without notice, and starts the next one.
func (h *coordinatedHost) kill() {
	h.t.Helper()
	require.NoError(h.t, h.Close())
	h.client.mu.Lock()
	h.client.feeds.Close()
	h.client.feeds = closurequeue.NewFeeds(h.client.client)
	h.client.mu.Unlock()
	h.start()
}

// asks sends a request of a task, and reads the answer.
func asks[A any](h *coordinatedHost, path, body string) (out A) {
	h.t.Helper()
	status, text, _ := h.do(0, "POST", path, body)
	require.Equal(h.t, 200, status, text)
	require.NoError(h.t, json.Unmarshal([]byte(text), &out))
	return out
}

func same(_ context.Context, args []any, kwargs map[string]any) (any, error) {
	if len(kwargs) > 0 {
		return []any{args, kwargs}, nil
	}
	return args[0], nil
}

func forever(ctx context.Context, _ []any, _ map[string]any) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The resources that a killed coordinator has created are dropped once the next process of
// its task coordinates. Those of another task, and of that process itself, are kept.
func TestResourcesOfAKilledCoordinator(t *testing.T) {
	h := newCoordinated(t, map[string]queues.Function{"same": same})
	create := func(session string, of int) {
		body := fmt.Sprintf(`{"session":%q,"number":%d,"function":"same","args":[1]}`, session, 1)
		status, text, _ := h.do(of, "POST", wire.PathCoordinatorResources, body)
		require.Equal(t, 200, status, text)
	}
	schedule := func(session string, resource int) {
		asks[wire.Scheduled](h, wire.PathCoordinatorSchedule, fmt.Sprintf(
			`{"session":%q,"batch":1,"closures":[{"function":"same","args":[{"$clusterrun.resource":%d}],"resources":[%[2]d]}]}`, session, resource))
		asks[closure.WaitAnswer](h, wire.PathCoordinatorJoin, fmt.Sprintf(`{"session":%q,"call":1}`, session))
	}
	asks[wire.CoordinatorOpened](h, wire.PathCoordinatorOpen, "")
	create("other", 1)
	create("process-0", 0)
	schedule("process-0", 2)
	for process := 1; process <= 4; process++ {
		h.listen(0, process) // the one before was killed
		session := fmt.Sprint("process-", process)
		asks[wire.CoordinatorOpened](h, wire.PathCoordinatorOpen, "")
		asks[wire.CoordinatorOpened](h, wire.PathCoordinatorOpen, "") // a child of it, perhaps
		assert.Equal(t, 1, h.queue.Counts().Resource)
		create(session, 0)
		schedule(session, process+2)
		require.Eventually(t, func() bool { return slices.Equal(h.queue.Built(), []uint64{uint64(process + 2)}) }, time.Minute, time.Millisecond)
		asks[wire.CoordinatorOpened](h, wire.PathCoordinatorOpen, "")
		assert.Equal(t, 2, h.queue.Counts().Resource)
	}
}

func TestATaskSchedules(t *testing.T) {
	h := newCoordinated(t, map[string]queues.Function{
		"same": same, "forever": forever,
		"fails": func(context.Context, []any, map[string]any) (any, error) {
			return nil, &closure.Error{Kind: "ValueError", Message: "no", Traceback: "here"}
		},
		"tuple": func(context.Context, []any, map[string]any) (any, error) {
			return map[string]any{closure.TupleKey: []any{1, map[string]any{closure.TupleKey: []any{}}}}, nil
		},
	})
	at := asks[wire.CoordinatorOpened](h, wire.PathCoordinatorOpen, "").At
	resource := asks[closure.ResourceAnswer](h, wire.PathCoordinatorResources, `{"session":"s","number":1,"function":"same","args":[40]}`)
	assert.Equal(t, uint64(1), resource.ID)

	body := `{"session":"s","batch":1,"closures":[{"function":"same","args":["<"],"options":{"key":"k","timeout":"1m","max_losses":-1}},
		{"function":"same","args":[{"$clusterrun.resource":1}],"kwargs":{"x":[]},"resources":[1]},{"function":"same","args":[{"$clusterrun":1}]}]}`
	want := wire.Scheduled{IDs: []uint64{1, 2, 3}, Room: new(spec.DefaultQueueSize - 3)}
	assert.Equal(t, want, asks[wire.Scheduled](h, wire.PathCoordinatorSchedule, body))
	assert.Equal(t, want, asks[wire.Scheduled](h, wire.PathCoordinatorSchedule, body), "the same request again is the same")
	assert.Equal(t, wire.Scheduled{IDs: []uint64{1, 4}, Known: []int{0}, Room: new(spec.DefaultQueueSize - 1)}, asks[wire.Scheduled](h, wire.PathCoordinatorSchedule,
		`{"session":"s","batch":2,"closures":[{"function":"same","options":{"key":"k"}},{"function":"tuple"}]}`))
	assert.Equal(t, closure.WaitAnswer{Done: true}, asks[closure.WaitAnswer](h, wire.PathCoordinatorJoin, `{"session":"s","call":1}`))

	values := map[uint64]string{}
	for len(values) < 4 {
		o := asks[wire.CoordinatorOutcomes](h, wire.PathCoordinatorOutcomes, fmt.Sprintf(`{"session":"s","after":%q,"wait":20}`, at))
		for _, one := range o.Outcomes {
			values[one.ID] = string(one.Value)
			assert.Equal(t, "worker-0", one.Task)
		}
		at = o.At
	}
	assert.Equal(t, map[uint64]string{1: `"\u003c"`, 2: `[[40],{"x":[]}]`, 3: `{"$clusterrun":1}`, 4: `[1,[]]`}, values)
	nothing := asks[wire.CoordinatorOutcomes](h, wire.PathCoordinatorOutcomes, fmt.Sprintf(`{"session":"s","after":%q}`, at))
	assert.Equal(t, wire.CoordinatorOutcomes{At: at, Outcomes: nil}, nothing)
	found := asks[wire.Found](h, wire.PathCoordinatorFind, `{"closures":[4],"tuples":true}`)
	assert.Equal(t, `{"$clusterrun.tuple":[1,{"$clusterrun.tuple":[]}]}`, string(found.Outcomes[0].Value))

	// Join returns the error and cancels the remaining closures.
	asks[wire.Scheduled](h, wire.PathCoordinatorSchedule, `{"session":"s","batch":3,"closures":[{"function":"forever"},{"function":"fails"}]}`)
	waited := asks[closure.WaitAnswer](h, wire.PathCoordinatorJoin, `{"session":"s","call":2}`)
	assert.Equal(t, &closure.Error{Kind: "ValueError", Message: "no", Traceback: "here", Closure: 6, Task: "worker-0"}, waited.Raised)
	assert.Equal(t, uint64(1), waited.Epoch)
	assert.Equal(t, waited, asks[closure.WaitAnswer](h, wire.PathCoordinatorJoin, `{"session":"s","call":2}`))
	stale := asks[wire.Scheduled](h, wire.PathCoordinatorSchedule, `{"session":"s","batch":4,"closures":[{"function":"same","args":[1]}]}`)
	assert.True(t, stale.Cancelled)
	kinds := map[uint64]string{}
	for len(kinds) < 3 {
		o := asks[wire.CoordinatorOutcomes](h, wire.PathCoordinatorOutcomes, fmt.Sprintf(`{"session":"s","after":%q,"wait":20}`, at))
		for _, one := range o.Outcomes {
			kinds[one.ID] = string(one.Kind)
		}
		for _, c := range o.Cancelled {
			assert.Equal(t, wire.CancelledClosures{First: 7, Last: 7}, c)
			kinds[c.First] = "range"
		}
		at = o.At
	}
	assert.Equal(t, map[uint64]string{5: "cancelled", 6: "error", 7: "range"}, kinds)

	asks[wire.Scheduled](h, wire.PathCoordinatorSchedule, `{"session":"s","batch":5,"epoch":1,"closures":[{"function":"forever"}]}`)
	assert.False(t, asks[closure.WaitAnswer](h, wire.PathCoordinatorDone, `{"session":"s","call":3}`).Done)
	assert.Equal(t, 1, asks[closure.CancelAnswer](h, wire.PathCoordinatorCancel, `{"closures":[8]}`).Told)
	assert.True(t, asks[closure.WaitAnswer](h, wire.PathCoordinatorJoin, `{"session":"s","call":4}`).Done)

	assert.Equal(t, 0, asks[closure.ReleaseAnswer](h, wire.PathCoordinatorRelease, `{"session":"other","resources":[1]}`).Released)
	assert.Equal(t, []uint64{1}, h.queue.Built())
	assert.Equal(t, 1, asks[closure.ReleaseAnswer](h, wire.PathCoordinatorRelease, `{"session":"s","resources":[1,2]}`).Released)
	assert.Equal(t, 0, asks[closure.ReleaseAnswer](h, wire.PathCoordinatorRelease, `{"session":"s","resources":[1]}`).Released, "the same request again")
	assert.Empty(t, h.queue.Built())
	gone := h.refused(409, wire.CodeQueueRefused, "POST", wire.PathCoordinatorSchedule, `{"session":"s","batch":6,"epoch":1,"closures":[{"function":"same","resources":[1]}]}`)
	assert.Contains(t, gone.Message, "closures[0].resources: resource 1 has been released by the client that had created it; create another one")

	h.queue.End("it is")
	p := h.refused(409, wire.CodeOver, "POST", wire.PathCoordinatorSchedule, `{"session":"s","batch":6,"closures":[{"function":"same"}]}`)
	assert.Equal(t, "the run has ended, and its closures with it", p.Message)
}

// Arguments count as many bytes as they take in the history.
func TestArgumentsAreEscapedEarly(t *testing.T) {
	large := `{"session":"s","batch":1,"closures":[{"function":"f","args":["` + strings.Repeat("<", 50_000) + `"]}]}`
	h := newCoordinated(t, nil)
	p := h.refused(400, wire.CodeInvalid, "POST", wire.PathCoordinatorSchedule, large)
	assert.Equal(t, "closures[0].args", p.Field)
	assert.Contains(t, p.Message, "the arguments have 300004 bytes; they may have 262144")
}

func TestBadCoordinatorsAreRefused(t *testing.T) {
	h := newHost(t, 1)
	p := h.refused(501, wire.CodeNotThere, "POST", wire.PathCoordinatorOpen, "")
	assert.Equal(t, "this host worker has no closures that its tasks could schedule", p.Message)
	c := newCoordinated(t, map[string]queues.Function{"f": same})
	asks[wire.CoordinatorOpened](c, wire.PathCoordinatorOpen, "")
	many := "[" + strings.Repeat("1,", maxListed) + "1]"
	for _, bad := range []struct{ path, body, code, field, message string }{
		{wire.PathCoordinatorSchedule, `{}`, wire.CodeInvalid, "session", "it is empty; give the process a random name that no other has"},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1}`, wire.CodeInvalid, "closures", "is empty; give at least one closure"},
		{wire.PathCoordinatorSchedule, `{"session":"s","closures":[{"function":"f"}]}`, wire.CodeInvalid, "batch", "missing; count the requests of the client from 1"},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":""},{"function":""}]}`, wire.CodeInvalid, "closures[0].function", "missing; name a function that the tasks have registered (and 1 more problems)"},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":"f","args":{}}]}`, wire.CodeInvalid, "closures[0].args", "must be a JSON array, is"},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":"f","kwargs":[]}]}`, wire.CodeInvalid, "closures[0].kwargs", "must be a JSON object, is"},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":"f","options":{"timeout":"soon"}}]}`, wire.CodeInvalid, "closures[0].options.timeout", `"soon" is no duration`},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":"f","options":{"timeout":"-1s"}}]}`, wire.CodeInvalid, "closures[0].options.timeout", "must not be negative, is -1s"},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":"g"}]}`, wire.CodeQueueRefused, "closures[0].function", `no task has registered a function "g"`},
		{wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":"f","resources":[7]}]}`, wire.CodeQueueRefused, "closures[0].resources", `there is no resource 7`},
		{wire.PathCoordinatorJoin, `{"session":"s"}`, wire.CodeInvalid, "call", "missing; count the requests of the client from 1"},
		{wire.PathCoordinatorDone, `{"session":"a b","call":1}`, wire.CodeInvalid, "session", "want at most 64 letters"},
		{wire.PathCoordinatorResources, `{"session":"s","number":1,"function":"f","args":7}`, wire.CodeInvalid, "args", "must be a JSON array, is"},
		{wire.PathCoordinatorResources, `{"session":"s","number":1,"function":"g"}`, wire.CodeQueueRefused, "function", `no task has registered a function "g"`},
		{wire.PathCoordinatorRelease, `{"session":"s"}`, wire.CodeInvalid, "resources", "is empty; give the IDs of resources that the client has created"},
		{wire.PathCoordinatorRelease, `{"resources":[1]}`, wire.CodeInvalid, "session", "it is empty; give the process a random name that no other has"},
		{wire.PathCoordinatorRelease, `{"session":"s","resources":` + many + `}`, wire.CodeInvalid, "resources", "has 4097; a request takes up to 1000; send several requests"},
		{wire.PathCoordinatorCancel, `{"closures":` + many + `}`, wire.CodeInvalid, "closures", "it has 4097 elements; the limit is 4096"},
		{wire.PathCoordinatorOutcomes, `{"session":"s"}`, wire.CodeInvalid, "after", "it is missing; give the at of the answer before, or that of /v1/coordinator/open"},
		{wire.PathCoordinatorOutcomes, `{"session":"s","after":"x:1","wait":21}`, wire.CodeInvalid, "wait", "it is 21; want 0 to 20 seconds"},
		{wire.PathCoordinatorOutcomes, `{"session":"s","after":"x"}`, wire.CodeQueueRefused, "", `"x" is not a position in the history of a queue`},
		{wire.PathCoordinatorFind, `{}`, wire.CodeInvalid, "closures", "it is empty; want the IDs of closures"},
		{wire.PathCoordinatorFind, `{"closures":[7]}`, wire.CodeQueueRefused, "", "there is no closure 7; 0 were scheduled"},
	} {
		status := 400
		if bad.code == wire.CodeQueueRefused {
			status = 409
		}
		p := c.refused(status, bad.code, "POST", bad.path, bad.body)
		assert.Equal(t, bad.field, p.Field, bad.body)
		assert.Contains(t, p.Message, bad.message, bad.body)
	}
}

// Waiting coordinators are told when the run is released here.
func TestWaitingCoordinatorsAreReleased(t *testing.T) {
	h := newCoordinated(t, map[string]queues.Function{"forever": forever})
	at := asks[wire.CoordinatorOpened](h, wire.PathCoordinatorOpen, "").At
	asks[wire.Scheduled](h, wire.PathCoordinatorSchedule, `{"session":"s","batch":1,"closures":[{"function":"forever"}]}`)
	var all sync.WaitGroup
	for path, body := range map[string]string{
		wire.PathCoordinatorJoin:     `{"session":"s","call":1}`,
		wire.PathCoordinatorOutcomes: fmt.Sprintf(`{"session":"s","after":%q,"wait":20}`, at),
	} {
		all.Go(func() {
			p := h.refused(409, wire.CodeOver, "POST", path, body)
			assert.Equal(t, "the run is released on this host", p.Message)
		})
	}
	require.Eventually(t, func() bool { return h.queue.Updates(closure.UpdateJoin) == 1 }, time.Minute, time.Millisecond)
	h.Release(h.run)
	all.Wait()
}
