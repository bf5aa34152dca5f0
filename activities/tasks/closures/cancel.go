package closures

import (
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// restartAgain is the time that the broker waits for the end of a process before it asks
	// again.
	restartAgain = 30 * time.Second
	// maxKind bounds the kind of an error, which is the name of a class, and maxTask bounds the name
	// of the task that it blames, both in bytes.
	maxKind = 200
	maxTask = 200
)

// Cancel cancels closures. Waiting closures end at once, and others as soon as a lease brings
// them. A process that calls one gets a cancellation, and is restarted if the call has not
// ended after the grace. Cancel does not wait for that: the closures end in their leases.
func (b *Broker) Cancel(in closure.CancelLease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isClosed() {
		b.cancel(in.Closures, in.Grace)
	}
}

func (b *Broker) cancel(ids []uint64, grace time.Duration) {
	if len(ids) == 0 {
		return
	}
	b.grace = grace
	told := map[*process]bool{}
	for _, id := range ids {
		// A lease may still bring it, perhaps again, and the process that holds it may still
		// return.
		b.cancelled.add(id)
		e := b.entries[id]
		switch {
		case e == nil || e.state == ended || e.told:
		case e.state == queued:
			b.queue.remove(e)
			b.doom(e)
		default:
			told[e.process] = true
			b.tell(e, grace)
		}
	}
	for p := range told {
		b.answerOwed(p)
	}
}

// doom ends a cancelled closure that no process is known to hold. As long as processes of an
// earlier broker may return, one of them may hold it, so the outcome is delayed: the function
// must no longer be running when it is reported.
func (b *serving) doom(e *entry) {
	e.told = true
	if b.settled {
		b.finish(e, cancelledOutcome(""))
		return
	}
	e.state = doomed
}

// endDoomed ends the doomed closures that no process has reported.
func (b *serving) endDoomed() {
	for _, e := range b.entries {
		if e.state == doomed {
			b.finish(e, cancelledOutcome(""))
		}
	}
}

// tell tells a process to end a call, with its next answer. If it does not, the process is
// restarted after the grace.
func (b *serving) tell(e *entry, grace time.Duration) {
	e.stopTimer()
	e.told = true
	e.process.owed = true
	b.after(e, grace, func() { b.restart(e) })
}

// answerOwed sends the pending cancellations and releases to a waiting process.
func (b *serving) answerOwed(p *process) {
	if p.request != nil {
		b.answer(p, b.news(p))
	}
}

// restart restarts a process that does not end a call.
func (b *serving) restart(e *entry) {
	p := e.process
	if time.Since(p.restarted) >= restartAgain || p.restarted.IsZero() {
		p.restarted = time.Now()
		b.Log.Warn("a process ignored the cancellation of a call; restarting it",
			zap.String("task", p.task), zap.Uint64("closure", e.closure.ID), zap.String("function", e.closure.Function))
		go b.Restart(p.task)
	}
	b.after(e, restartAgain, func() { b.restart(e) })
}

// after calls do after d, unless the call has ended by then.
func (b *store) after(e *entry, d time.Duration, do func()) {
	p, call := e.process, e.call
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if e.timer == t && e.state == given && e.process == p && e.call == call && !b.isClosed() {
			e.timer = nil
			do()
		}
	})
	e.timer = t
}

func cancelledOutcome(traceback string) closure.Outcome {
	return closure.Outcome{Kind: closure.OutcomeCancelled, Error: &closure.Error{
		Kind: closure.ErrCancelled, Message: closure.TextCancelled, Traceback: traceback,
	}}
}

// judge returns the outcome of a call from the report of its process.
func judge(e *entry, in wire.CallOutcome) closure.Outcome {
	out := closure.Outcome{ID: in.ID, Kind: in.Kind}
	var traceback string
	if in.Error != nil {
		traceback = shorten.Traceback(in.Error.Traceback, closure.MaxTraceback)
		out.Error = &closure.Error{
			Kind: shorten.Head(in.Error.Kind, maxKind), Message: shorten.Head(in.Error.Message, closure.MaxError),
			Traceback: traceback, Task: shorten.Head(in.Error.Task, maxTask), Args: boundedArgs(in.Error.Args),
		}
		out.Alone = out.Kind == closure.OutcomeError && (in.Error.Kind == closure.ErrNotJSON || in.Error.Kind == closure.ErrValueTooLarge)
	}
	switch {
	case out.Kind == "" || out.Kind == closure.OutcomeValue:
		value := closure.Escaped(in.Value)
		if len(value) > closure.MaxBytes {
			return closure.Outcome{Kind: closure.OutcomeError, Alone: true, Error: tooLarge(e.closure.Function, len(value), len(value) > len(in.Value))}
		}
		// A value counts even if it comes late.
		return closure.Outcome{Value: value}
	case out.Kind == closure.OutcomeCancelled && e.told:
		return cancelledOutcome(traceback)
	case out.Kind == closure.OutcomeCancelled:
		// The call was not cancelled.
		out.Kind = closure.OutcomeError
	}
	if out.Error == nil {
		out.Error = &closure.Error{Message: "the process gave no reason"}
	}
	return out
}

// boundedArgs returns the arguments of an exception, or nil if they are too long.
func boundedArgs(args json.RawMessage) json.RawMessage {
	if args = closure.Escaped(args); len(args) > closure.MaxErrorArgs || len(args) == 0 || args[0] != '[' {
		return nil
	}
	return args
}

// tooLarge returns the error for a value of that size.
func tooLarge(function string, bytes int, escaped bool) *closure.Error {
	of := ""
	if escaped {
		of = ", in which <, > and & take six each"
	}
	return &closure.Error{Kind: closure.ErrValueTooLarge, Message: fmt.Sprintf(
		"the value of %s has %d bytes of JSON%s; the limit is %d: write it to a file and return the file's path", function, bytes, of, closure.MaxBytes)}
}

// verdict returns the outcome in the form that a lease returns.
func (e *entry) verdict() closure.Outcome {
	o := e.outcome
	if o.Error != nil {
		named := *o.Error
		named.Closure = o.ID
		if named.Task == "" {
			named.Task = o.Task
		}
		o.Error = &named
	}
	return o
}
