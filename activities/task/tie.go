package task

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/internal/news"
	"github.com/clusterrun/clusterrun/activities/task/coordinator"
)

// tiePatience is how long the run may take to hear of a stop of a coordinator.
const tiePatience = time.Minute

// StopError is what stopped a coordinator that is tied to the run: an error of
// another process.
type StopError struct{ Stopping }

func (e *StopError) Error() string {
	who := e.By
	if who == "" {
		who = "an operator"
	}
	text := e.Stopping.Error.Message
	if kind := e.Stopping.Error.Kind; kind != "" {
		text = kind + ": " + text
	}
	return fmt.Sprintf("%s stopped the run: %s", who, text)
}

// Tie makes one of a coordinator of this process and those of all others that do the
// same: whatever stops it stops the run, and a stop of the run, whoever asked, stops
// it. Its Join then returns the first error anywhere: a [StopError] if that is of
// another process. ClearStop is for all, too.
//
//	coord := coordinator.New()
//	defer t.Tie(coord)()
//	coord.Go("reader", read)
//	coord.Go("trainer", train)
//	return coord.Join()
//
// RequestStop of the coordinator returns, and Join does, when the run has heard of
// it, or after a minute. What the coordinator takes for a clean stop reaches the run
// as a reason and not as an error; of other errors the run knows kinds that are none.
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

// tie keeps a coordinator and the run agreed.
type tie struct {
	task  *Task
	coord *coordinator.Coordinator

	mu sync.Mutex
	// said is what the run said last.
	said Stopping
	// asking counts requests under way. The run has not heard of them when it says
	// something meanwhile.
	asking int
}

func (x *tie) follow(ctx context.Context, now *news.Item[Stopping]) {
	for {
		x.receive(now.Value)
		select {
		case <-now.Later():
			now = now.Next()
		case <-ctx.Done():
			return
		}
	}
}

// receive notes what the run says, unless it has said something later.
func (x *tie) receive(now Stopping) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if now.Seq <= x.said.Seq {
		return
	}
	x.said = now
	x.agree()
}

// agree must be called with mu held.
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

// ask has the run hear of something, and agrees with what it says then.
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
