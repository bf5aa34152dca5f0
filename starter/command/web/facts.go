package web

import (
	"context"
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
	// keep is the time for which facts are kept if no page asks for them.
	keep = 5 * time.Minute
	// long is the time between questions about things that do not change.
	long = time.Minute
)

// facts keeps what was asked, so that several pages and reloads share it.
type facts[V any] struct {
	// lasts reports whether a value will not change. It may be nil.
	lasts func(V) bool

	mu    sync.Mutex
	known map[string]*fact[V]
}

type fact[V any] struct {
	mu    sync.Mutex // held while somebody asks
	value V
	err   error
	at    time.Time
	next  time.Time // when to ask again

	used time.Time // guarded by the mutex of facts
}

// get returns what ask returned last under a key, if that was a short time ago, and the time of
// that. Otherwise it asks; several callers ask once.
func (f *facts[V]) get(ctx context.Context, key string, ask func(context.Context) (V, error)) (V, time.Time, error) {
	e := f.entry(key)
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.next) {
		return e.value, e.at, e.err
	}
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	began := time.Now()
	value, err := ask(ctx)
	if err != nil && ctx.Err() != nil {
		return value, began, err // the browser may have left, which is no fact
	}
	now := time.Now()
	e.value, e.err, e.at, e.next = value, err, now, now.Add(pause(now.Sub(began)))
	if err == nil && f.lasts != nil && f.lasts(value) {
		e.next = now.Add(long)
	}
	return e.value, e.at, e.err
}

// pause returns the time after which to ask again something that took so long.
func pause(took time.Duration) time.Duration { return min(most, max(least, load*took)) }

func (f *facts[V]) entry(key string) *fact[V] {
	f.mu.Lock()
	defer f.mu.Unlock()
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
