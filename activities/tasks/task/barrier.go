package task

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// Release is the answer at a barrier: the round, counted from 1, the task's position among the
// participants, from 0, the number of participants, and their values, if any.
type Release = wire.Released

// BarrierError reports that a barrier broke. All its participants get the error.
type BarrierError struct {
	// Timeout reports whether a timeout expired; otherwise some or all participants have ended.
	Timeout bool
	Message string
	// Arrived and Missing list the participants that had and had not arrived. They are empty if
	// the host did not answer.
	Arrived, Missing []string
}

func (e *BarrierError) Error() string { return e.Message }

// Option changes an arrival at a barrier.
type Option func(*arrival)

type arrival struct {
	participants []string
	timeout      time.Duration
	local        bool
	value        string
}

// Timeout limits the wait. When it expires, the barrier breaks for all.
func Timeout(d time.Duration) Option { return func(a *arrival) { a.timeout = max(0, d) } }

// Participants lists tasks, such as "worker-0", or types for all their tasks. All participants
// must name the same ones. By default, all tasks of the spec take part.
func Participants(names ...string) Option {
	return func(a *arrival) { a.participants = append(a.participants, names...) }
}

// Local lets the host release the barrier on its own, within microseconds. All participants must
// be on it.
func Local() Option { return func(a *arrival) { a.local = true } }

// Value is a string of up to 64 KiB that all participants get with the release ([Release.Values]).
// All values together are limited to 1 MiB.
func Value(text string) Option { return func(a *arrival) { a.value = text } }

// answerSlack is the extra time after a barrier's timeout before a silent host counts as away.
const answerSlack = 5 * time.Second

// Barrier waits until all participants have arrived at the named barrier. A barrier can be reused,
// in rounds. If ctx is done first, the arrival is withdrawn; if the barrier was released in the
// meantime, Barrier returns the release. The error for a broken barrier is a [BarrierError].
func (t *Task) Barrier(ctx context.Context, name string, options ...Option) (Release, error) {
	if name == "" || len(name) > wire.MaxName {
		return Release{}, fmt.Errorf("a barrier's name must have 1 to %d bytes, not %d", wire.MaxName, len(name))
	}
	a := arrival{timeout: -1}
	for _, o := range options {
		o(&a)
	}
	key := newKey()
	waiting, deadline := ctx, time.Time{}
	if a.timeout >= 0 {
		deadline = time.Now().Add(a.timeout)
		var cancel context.CancelFunc
		waiting, cancel = context.WithDeadline(ctx, deadline.Add(answerSlack))
		defer cancel()
	}
	in := wire.Arrive{Key: key, Participants: a.participants, Local: a.local, Value: a.value}
	var out Release
	err := t.callWith(waiting, http.MethodPost, wire.PathBarriers+url.PathEscape(name), func() ([]byte, error) {
		if a.timeout >= 0 { // a retry has less time left
			in.Timeout = max(0, time.Until(deadline)).String()
		}
		return encode(in)
	}, &out)
	if waiting.Err() == nil || err == nil {
		return out, err
	}
	if released, ok := t.withdraw(name, key); ok {
		return released, nil
	}
	if ctx.Err() == nil {
		return out, &BarrierError{Timeout: true, Message: fmt.Sprintf("barrier %q: the host did not answer within %s: %v", name, a.timeout, err)}
	}
	return out, err
}

// withdrawPatience limits the wait for a withdrawal's answer.
const withdrawPatience = time.Second

// withdraw withdraws an arrival that its caller no longer waits for. Its timeout is short and
// separate, because the caller's context is done.
func (t *Task) withdraw(name, key string) (Release, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), withdrawPatience)
	defer cancel()
	var out wire.Withdrawn
	if err := t.call(ctx, http.MethodDelete, wire.PathBarriers+url.PathEscape(name)+"?key="+key, nil, &out); err != nil || out.Released == nil {
		return Release{}, false
	}
	return *out.Released, true
}

var (
	keyBase  = rand.Text()
	keyCount atomic.Uint64
)

// newKey returns a key unique to this arrival across processes.
func newKey() string { return keyBase + "." + strconv.FormatUint(keyCount.Add(1), 36) }

// asError converts a problem into an error.
func asError(p wire.Problem) error {
	switch p.Code {
	case wire.CodeBarrierTimeout, wire.CodeBarrierBroken, wire.CodeBarrierWithdrawn:
		e := &BarrierError{Timeout: p.Code == wire.CodeBarrierTimeout, Message: p.Message}
		if p.Barrier != nil {
			e.Arrived, e.Missing = p.Barrier.Arrived, p.Barrier.Missing
		}
		return e
	}
	return &APIError{Code: p.Code, Message: p.Message, Field: p.Field}
}
