package web

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// least and most limit the interval between two questions about the same thing.
	least, most = 2 * time.Second, 15 * time.Second
	// load is the ratio of the pause after a question to the question's duration. A question is
	// thus in flight at most 1/load of the time.
	load = 25
	// askedFor limits how long a question may take.
	askedFor = 15 * time.Second
	// patience limits how long a page waits for a newer answer than the one it has.
	patience = 100 * time.Millisecond
	// keep is how long facts are kept if no page asks for them.
	keep = 5 * time.Minute
	// long is the interval between questions about things that do not change.
	long = time.Minute
)

// errPending reports that the first answer is still missing.
var errPending = errors.New("the server has not answered yet")

// facts caches the answers to questions, so that several pages and reloads share them. A
// question outlives the page that asked it. A page that cannot wait shows the last answer.
type facts[V any] struct {
	// lasts reports whether a value will not change. It may be nil.
	lasts func(V) bool

	mu    sync.Mutex
	known map[string]*fact[V]
}

// fact is the last answer to a question. The mutex of its facts guards it.
type fact[V any] struct {
	value V
	err   error
	at    time.Time
	next  time.Time     // when to ask again
	asked chan struct{} // closed with the next answer, or nil if no question is in flight

	used time.Time
}

// If the last answer for a key is recent, get returns it and its time. Otherwise get asks;
// concurrent callers share the question. It waits no longer than wait, or [patience] if there is an
// earlier answer. If there is still no answer after that, get returns errPending.
func (f *facts[V]) get(ctx context.Context, key string, wait time.Duration, ask func(context.Context) (V, error)) (V, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.entry(key)
	if time.Now().Before(e.next) {
		return e.value, e.at, e.err
	}
	if e.asked == nil {
		e.asked = make(chan struct{})
		go f.ask(context.WithoutCancel(ctx), e, ask)
	}
	if !e.at.IsZero() {
		wait = min(wait, patience)
	}
	asked, timer := e.asked, time.NewTimer(wait)
	defer timer.Stop()
	f.mu.Unlock()
	select {
	case <-asked:
	case <-timer.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	if e.at.IsZero() {
		return e.value, time.Now(), errors.Join(errPending, ctx.Err())
	}
	return e.value, e.at, e.err
}

// ask asks and keeps the answer.
func (f *facts[V]) ask(ctx context.Context, e *fact[V], ask func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	began := time.Now()
	value, err := ask(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	e.value, e.err, e.at, e.next = value, err, now, now.Add(pause(now.Sub(began)))
	if err == nil && f.lasts != nil && f.lasts(value) {
		e.next = now.Add(long)
	}
	close(e.asked)
	e.asked = nil
}

// pause returns how long to wait before repeating a question that took the given time.
func pause(took time.Duration) time.Duration { return min(most, max(least, load*took)) }

// entry returns the fact for a key. f.mu must be held.
func (f *facts[V]) entry(key string) *fact[V] {
	now := time.Now()
	for k, e := range f.known {
		if now.Sub(e.used) > keep {
			delete(f.known, k)
		}
	}
	if f.known == nil {
		f.known = map[string]*fact[V]{}
	}
	if f.known[key] == nil {
		f.known[key] = &fact[V]{}
	}
	f.known[key].used = now
	return f.known[key]
}

// last returns the last value for a key, or the zero value.
func (f *facts[V]) last(key string) (v V) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.known[key]; e != nil {
		e.used, v = time.Now(), e.value
	}
	return v
}

// put sets the value for a key without a question.
func (f *facts[V]) put(key string, value V) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entry(key).value = value
}

// forget makes the next caller ask.
func (f *facts[V]) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, key)
}
