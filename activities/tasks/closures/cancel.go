package closures

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const (
	// restartAgain is the delay before a retry if a process does not exit.
	restartAgain = 30 * time.Second
	// maxKind limits an error's kind, which is a class name, and maxTask the name of the task that
	// it blames, both in bytes.
	maxKind = 200
	maxTask = 200
)

// cancel cancels a call. The next answer to its process contains that, and the process is
// restarted if the call has not returned after grace.
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
	b.restartAfter(c, grace)
}

// restartAfter restarts the process of a call that has not returned after d.
func (b *Broker) restartAfter(c *call, d time.Duration) {
	p := c.process
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if c.timer != t || c.process != p || b.isClosed() {
			return
		}
		c.timer = nil
		if time.Since(p.restarted) >= restartAgain {
			p.restarted = time.Now()
			b.Log.Warn("a process ignored the cancellation of a call; restarting it",
				zap.String("task", p.task), zap.Uint64("closure", c.ID), zap.String("function", c.Function))
			go b.Restart(p.task)
		}
		b.restartAfter(c, restartAgain)
	})
	c.timer = t
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
			Traceback: traceback, Task: shorten.Head(in.Error.Task, maxTask), Args: boundedArgs(in.Error.Args),
		}
	}
	switch {
	case out.Kind == "" || out.Kind == closure.OutcomeValue:
		value := closure.Escaped(in.Value)
		if len(value) > closure.MaxBytes {
			return closure.Outcome{Kind: closure.OutcomeError, Error: tooLarge(c.Function, len(value), len(value) > len(in.Value))}
		}
		// A late value still counts.
		return closure.Outcome{Value: value}
	case out.Kind == closure.OutcomeCancelled && c.told:
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

// boundedArgs returns an exception's arguments, or nil if they are too long.
func boundedArgs(args json.RawMessage) json.RawMessage {
	if args = closure.Escaped(args); len(args) > closure.MaxErrorArgs || len(args) == 0 || args[0] != '[' {
		return nil
	}
	return args
}

// tooLarge returns the error for a value of the given size.
func tooLarge(function string, bytes int, escaped bool) *closure.Error {
	of := ""
	if escaped {
		of = ", in which <, > and & take six each"
	}
	return &closure.Error{Kind: closure.ErrValueTooLarge, Message: fmt.Sprintf(
		"the value of %s has %d bytes of JSON%s; the limit is %d: write it to a file and return the file's path", function, bytes, of, closure.MaxBytes)}
}
