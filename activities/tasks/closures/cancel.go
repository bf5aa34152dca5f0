package closures

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// maxKind limits an error's kind, which is a class name, and maxTask the name of the task that
	// it blames, both in bytes.
	maxKind = 200
	maxTask = 200
)

// cancel cancels a call. The next answer to the call's process reports the cancellation, and the
// process is restarted if the call has not returned after grace.
func (b *Broker) cancel(c *call, grace time.Duration) {
	if c.outcome != nil || c.told {
		return
	}
	c.told = true
	if c.process == nil {
		b.queue = slices.DeleteFunc(b.queue, func(o *call) bool { return o == c })
		b.finish(c, cancelledOutcome(""))
		return
	}
	p := c.process
	time.AfterFunc(grace, func() { b.restart(c, p) })
}

// restartAgain is the pause before a failed restart is tried again.
const restartAgain = time.Second

// restart restarts a process that ignored the cancellation of a call, and retries until it
// succeeds.
func (b *Broker) restart(c *call, p *process) {
	b.mu.Lock()
	if c.process != p || p.restarted || b.isClosed() {
		b.mu.Unlock()
		return
	}
	p.restarted = true
	b.mu.Unlock()
	b.Log.Warn("a process ignored the cancellation of a call; restarting it",
		zap.String("task", p.task), zap.Uint64("closure", c.ID), zap.String("function", c.Function))
	if b.Restart(p.task) == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p.restarted = false
	time.AfterFunc(restartAgain, func() { b.restart(c, p) })
}

func cancelledOutcome(traceback string) closure.Outcome {
	return closure.Outcome{Kind: closure.OutcomeCancelled, Error: &closure.Error{
		Kind: closure.ErrCancelled, Message: closure.TextCancelled, Traceback: traceback,
	}}
}

// judge returns a call's outcome from its process's report.
func judge(c *call, in closure.Outcome) closure.Outcome {
	out := closure.Outcome{ID: in.ID, Kind: in.Kind}
	var traceback string
	if in.Error != nil {
		traceback = shorten.Traceback(in.Error.Traceback, closure.MaxTraceback)
		out.Error = &closure.Error{
			Kind: shorten.Head(in.Error.Kind, maxKind), Message: shorten.Head(in.Error.Message, closure.MaxError),
			Traceback: traceback, Task: shorten.Head(in.Error.Task, maxTask),
		}
	}
	switch {
	case out.Kind == "" || out.Kind == closure.OutcomeValue:
		if len(in.Value) > closure.MaxBytes {
			return closure.Outcome{Kind: closure.OutcomeError, Error: &closure.Error{
				Kind: closure.ErrValueTooLarge, Message: fmt.Sprintf("the value of %s has %d bytes of JSON; the limit is %d", c.Function, len(in.Value), closure.MaxBytes),
			}}
		}
		// A late value still counts.
		return closure.Outcome{Value: in.Value}
	case out.Kind == closure.OutcomeCancelled && c.told:
		return cancelledOutcome(traceback)
	case out.Kind == closure.OutcomeCancelled:
		// The call was not cancelled.
		out.Kind = closure.OutcomeError
	}
	if out.Error == nil {
		out.Error = &closure.Error{Message: "the process did not report a reason"}
	}
	return out
}
