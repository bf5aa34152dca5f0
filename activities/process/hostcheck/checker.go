package hostcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// DefaultEvery and DefaultTimeout are the defaults of [Config].
const DefaultEvery, DefaultTimeout = 5 * time.Minute, 30 * time.Second

const (
	// again is the interval between executions of a failing check.
	again = 30 * time.Second
	// When a host takes tasks, results older than fresh do not count. A check whose last execution
	// took at most cheap is then repeated, and admitTakes limits the wait for its result.
	fresh, cheap, admitTakes = 30 * time.Second, time.Second, 10 * time.Second
	// stuckAfter is the time after its timeout when an execution counts as stuck.
	stuckAfter = 3 * time.Second
)

// Config configures a [Checker].
type Config struct {
	Checks []Check
	// Every is the interval between executions on a host without tasks. Timeout limits each
	// execution.
	Every, Timeout time.Duration
	// Instance is the supervisor's instance.
	Instance string
	Around   Around
	Log      *zap.Logger
}

// Around supplies what built-in checks need from the host worker.
type Around struct {
	// Dirs are the directories that need free space.
	Dirs []string
	// Clock returns how far the server's clock is ahead of this host's, and the uncertainty.
	Clock func(ctx context.Context) (ahead, doubt time.Duration, err error)
}

// Checker executes a host's checks.
type Checker struct {
	Config
	ctx   context.Context //nolint:containedctx // executions outlive the request that began them
	swept sync.Once

	mu      sync.Mutex
	watched []*watched
	// changed receives an element when a check starts to fail or succeeds again, and noted after
	// every result.
	changed, noted chan struct{}
}

// watched is a check and its last result, guarded by the checker's mutex.
type watched struct {
	Check
	// known is closed when the running execution has a result; nil if none is running.
	known chan struct{}
	// stuck reports whether an execution could not be stopped.
	stuck bool
	last  fleet.CheckResult // none if its time is zero
	since time.Time         // of the present outcome
	next  time.Time
}

// New returns a checker, which does not execute checks after ctx is done.
func New(ctx context.Context, c Config) *Checker {
	c.Every = cmp.Or(c.Every, DefaultEvery)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	k := &Checker{Config: c, ctx: ctx, changed: make(chan struct{}, 1), noted: make(chan struct{}, 1)}
	for _, check := range c.Checks {
		k.watched = append(k.watched, &watched{Check: check})
	}
	return k
}

// Changed receives when the value of [Checker.Failing] changes.
func (k *Checker) Changed() <-chan struct{} { return k.changed }

// Names returns the names of the checks.
func (k *Checker) Names() (list []string) {
	for _, w := range k.watched {
		list = append(list, w.Name)
	}
	return list
}

// Results returns the last result of each check that has one.
func (k *Checker) Results() (list []fleet.CheckResult) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.watched {
		if !w.last.At.IsZero() {
			list = append(list, w.last)
		}
	}
	return list
}

// Failing returns the checks that fail or lack a result so far.
func (k *Checker) Failing() (list []fleet.FailedCheck) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.watched {
		switch {
		case w.last.At.IsZero():
			list = append(list, fleet.FailedCheck{Check: w.Name, Reason: "it has not finished yet"})
		case w.last.Failed != "":
			list = append(list, fleet.FailedCheck{Check: w.Name, Reason: w.last.Failed, Since: w.since})
		}
	}
	return list
}

// Run executes the checks until ctx is done. idle reports whether the host does not have tasks.
func (k *Checker) Run(ctx context.Context, idle func() bool) {
	for {
		wait := k.beginDue(idle)
		select {
		case <-time.After(wait):
		case <-k.noted:
		case <-ctx.Done():
			return
		}
	}
}

// beginDue starts the checks that are due, and returns the time until the next one.
func (k *Checker) beginDue(idle func() bool) time.Duration {
	now, wait := time.Now(), again
	for _, w := range k.watched {
		k.mu.Lock()
		due, failed, first := !w.next.After(now), w.last.Failed != "", w.last.At.IsZero()
		switch {
		case !due:
			wait = min(wait, w.next.Sub(now))
		case !first && !failed && !idle():
			w.next, due = now.Add(k.Every), false
		}
		k.mu.Unlock()
		if due {
			k.begin(w)
		}
	}
	return wait
}

// First waits up to atMost for all checks to have a result.
func (k *Checker) First(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, w := range k.watched {
		k.mu.Lock()
		known := !w.last.At.IsZero()
		k.mu.Unlock()
		if known {
			continue
		}
		select {
		case <-k.begin(w):
		case <-ctx.Done():
		}
	}
}

// Admit returns an error if the host is not fit for tasks. It repeats the quick checks that lack a
// recent result.
func (k *Checker) Admit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, admitTakes)
	defer cancel()
	pending := map[string]<-chan struct{}{}
	for _, w := range k.watched {
		k.mu.Lock()
		old := time.Since(w.last.At) > fresh && w.last.Seconds <= cheap.Seconds() && w.last.Failed == ""
		k.mu.Unlock()
		if old {
			pending[w.Name] = k.begin(w)
		}
	}
	for _, name := range k.Names() {
		if pending[name] == nil {
			continue
		}
		select {
		case <-pending[name]:
		case <-ctx.Done():
			return fmt.Errorf("its check %s did not finish within %s", name, admitTakes)
		}
	}
	if failing := k.Failing(); len(failing) > 0 {
		return fmt.Errorf("its check %s fails: %s", failing[0].Check, failing[0].Reason)
	}
	return nil
}

// closed is a channel that is closed.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// begin starts a check unless it is running. The returned channel is closed when the result is
// known.
func (k *Checker) begin(w *watched) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case w.stuck, k.ctx.Err() != nil:
		return closed
	case w.known != nil:
		return w.known
	}
	known := make(chan struct{})
	w.known, w.next = known, time.Now().Add(k.Timeout+again)
	go k.await(w, known)
	return known
}

// await executes a check and records its result.
func (k *Checker) await(w *watched, known chan struct{}) {
	began := time.Now()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(k.ctx, k.Timeout)
		defer cancel()
		err := k.execute(ctx, w.Check)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errSlow(k.Timeout, err)
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		k.note(w, began, err, false)
		close(known)
	case <-time.After(k.Timeout + stuckAfter):
		k.note(w, began, fmt.Errorf("it did not finish within %s and cannot be killed: the kernel is waiting for a device or a disk", k.Timeout), true)
		close(known)
		err := <-ended
		k.note(w, began, err, false)
	}
}

// errSlow returns the error of a check that timed out, with the end of its output.
func errSlow(timeout time.Duration, err error) error {
	text := fmt.Sprintf("it did not finish within %s", timeout)
	if failed, ok := errors.AsType[*outputError](err); ok && failed.said != "" {
		text += ": " + failed.said
	}
	return errors.New(text)
}

// note records the result of an execution that started at began.
func (k *Checker) note(w *watched, began time.Time, err error, stuck bool) {
	if k.ctx.Err() != nil {
		return // the host worker is exiting
	}
	now := time.Now()
	r := fleet.CheckResult{Check: w.Name, At: now.UTC().Truncate(time.Millisecond), Seconds: now.Sub(began).Round(time.Millisecond).Seconds()}
	if err != nil {
		r.Failed = oneLine(err.Error())
	}
	k.mu.Lock()
	before := w.last
	w.last, w.stuck, w.next = r, stuck, now.Add(k.Every)
	if !stuck {
		w.known = nil
	}
	if r.Failed != "" {
		w.next = now.Add(min(again, k.Every))
	}
	flipped := before.At.IsZero() || (before.Failed == "") != (r.Failed == "")
	if flipped {
		w.since = r.At
	}
	k.mu.Unlock()
	post(k.noted)
	if !flipped {
		return
	}
	switch {
	case r.Failed != "":
		k.Log.Warn("a check on this host has failed; the host takes no new tasks until the check succeeds", zap.String("check", w.Name), zap.String("why", r.Failed))
	case !before.At.IsZero():
		k.Log.Info("a check on this host succeeds again", zap.String("check", w.Name))
	}
	post(k.changed)
}

// post sends to c unless an element is pending.
func post(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Failed returns the number of failing checks.
func (k *Checker) Failed() int { return len(k.Failing()) }
