package web

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// least and most bound the time between two questions about the same thing.
	least, most = 2 * time.Second, 15 * time.Second
	// load is the part of the time for which questions about one thing may keep others busy:
	// one in so many.
	load = 25
	// askedFor bounds a question.
	askedFor = 15 * time.Second
	// patience is the longest time for which a page waits for a newer answer than the one it has.
	patience = 100 * time.Millisecond
	// keep is the time for which facts are kept if no page asks for them.
	keep = 5 * time.Minute
	// long is the time between questions about things that do not change.
	long = time.Minute
)

// errPending reports that the first answer is still missing.
var errPending = errors.New("the server has not answered yet")

// facts keeps the answers to questions, so that several pages and reloads share them. A question
// does not end with the page that asked it. A page that cannot wait shows the last answer.
type facts[V any] struct {
	// lasts reports whether a value will not change. It may be nil.
	lasts func(V) bool

	mu    sync.Mutex
	known map[string]*fact[V]
}

// fact is the last answer to a question. It is guarded by the mutex of its facts.
type fact[V any] struct {
	value V
	err   error
	at    time.Time
	next  time.Time     // when to ask again
	asked chan struct{} // closed with the next answer, or nil if the question is not asked now

	used time.Time
}

// get returns the last answer under a key, and its time, if that was a short time ago. Otherwise
// it asks; several callers ask once. It waits for at most the given time, or [patience] if it
// knows an earlier answer. It returns errPending if it knows no answer then.
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

// pause returns the time before the next repetition of a question that took that long.
func pause(took time.Duration) time.Duration { return min(most, max(least, load*took)) }

// entry returns the fact under a key. f.mu must be held.
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

// forget makes the next caller ask.
func (f *facts[V]) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, key)
}
