package task

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/news"
	"github.com/clusterrun/clusterrun/activities/tasks/task/coordinator"
)

// tiePatience is the longest time that the run may take to accept a stop of a coordinator.
const tiePatience = time.Minute

// StopError is the error of another process that stopped a coordinator tied to the run.
type StopError struct{ Stopping }

func (e *StopError) Error() string {
	who := cmp.Or(e.By, "an operator")
	text := e.Stopping.Error.Message
	if kind := e.Stopping.Error.Kind; kind != "" {
		text = kind + ": " + text
	}
	return fmt.Sprintf("%s stopped the run: %s", who, text)
}

// Tie unites a coordinator of this process with the coordinators of all other processes that do
// the same: a stop of the coordinator stops the run, and any stop of the run stops the
// coordinator. Its Join then returns the first error anywhere, as a [StopError] if it is an
// error of another process. ClearStop clears the stop for all, too.
//
//	coord := coordinator.New()
//	defer t.Tie(coord)()
//	coord.Go("reader", read)
//	coord.Go("trainer", train)
//	return coord.Join()
//
// RequestStop and Join of the coordinator return when the run knows of the stop, or after a
// minute. A clean stop of the coordinator reaches the run as a reason rather than an error;
// other errors may be of kinds that are clean stops for the run.
func (t *Task) Tie(c *coordinator.Coordinator) (untie func()) {
	x := &tie{task: t, coord: c}
	w := t.watching()
	detach := c.Tie(x)
	ctx, cancel := context.WithCancel(context.Background())
	go x.follow(ctx, w.Latest())
	return func() {
		detach()
		cancel()
	}
}

// tie keeps a coordinator and the run in the same state.
type tie struct {
	task  *Task
	coord *coordinator.Coordinator

	mu sync.Mutex
	// said is the latest state that the run has sent.
	said Stopping
	// asking counts requests in flight. States that the run sends during a request may precede
	// it.
	asking int
}

func (x *tie) follow(ctx context.Context, now *news.Item[heard]) {
	for {
		x.receive(now.Value.Stopping)
		select {
		case <-now.Later():
			now = now.Next()
		case <-ctx.Done():
			return
		}
	}
}

// receive records a state of the run, unless a later one is known.
func (x *tie) receive(now Stopping) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.Seq <= x.said.Seq {
		return
	}
	x.said = now
	x.agree()
}

// agree brings the coordinator into the state of the run. x.mu must be held.
func (x *tie) agree() {
	switch {
	case x.asking > 0:
	case !x.said.Stop:
		x.coord.OutsideCleared()
	case x.said.Error == nil || x.said.Clean:
		x.coord.OutsideStopped(nil)
	default:
		x.coord.OutsideStopped(&StopError{x.said})
	}
}

// ask sends a request to the run, and then brings the coordinator into the state of the run.
func (x *tie) ask(call func(context.Context) (Stopping, error)) error {
	x.mu.Lock()
	x.asking++
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), tiePatience)
	defer cancel()
	now, err := call(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asking--
	if err != nil {
		return err
	}
	if now.Seq > x.said.Seq {
		x.said = now
	}
	x.agree()
	return nil
}

// RequestStop implements [coordinator.Outside].
func (x *tie) RequestStop(err error, clean bool) error {
	var request Stop
	if clean {
		request.Reason = err.Error()
	} else {
		request.Error = reportOf(err)
	}
	failed := x.ask(func(ctx context.Context) (Stopping, error) { return x.task.Stop(ctx, request) })
	if failed != nil {
		return fmt.Errorf("the run could not be asked to stop: %w", failed)
	}
	return nil
}

// ClearStop implements [coordinator.Outside].
func (x *tie) ClearStop() error { return x.ask(x.task.ClearStop) }

var _ coordinator.Outside = (*tie)(nil)
