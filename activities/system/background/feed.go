package background

import (
	"sync"
	"sync/atomic"
)

// Feed is a value that changes over time. Its first value is the zero value.
type Feed[T any] struct {
	mu     sync.Mutex // held during changes
	latest atomic.Pointer[Item[T]]
}

// Item is one value of a [Feed].
type Item[T any] struct {
	Value T
	later chan struct{}
	next  *Item[T]
}

// Later is closed once there is a later value.
func (i *Item[T]) Later() <-chan struct{} { return i.later }

// Next returns the value that follows this one. It blocks until Later is closed.
func (i *Item[T]) Next() *Item[T] {
	<-i.later
	return i.next
}

// Latest returns the newest value.
func (f *Feed[T]) Latest() *Item[T] {
	if i := f.latest.Load(); i != nil {
		return i
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now()
}

func (f *Feed[T]) now() *Item[T] {
	i := f.latest.Load()
	if i == nil {
		i = &Item[T]{later: make(chan struct{})}
		f.latest.Store(i)
	}
	return i
}

// Add appends a value to the feed if accept returns true for the current one.
func (f *Feed[T]) Add(value T, accept func(now T) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if !accept(now.Value) {
		return
	}
	i := &Item[T]{Value: value, later: make(chan struct{})}
	f.latest.Store(i)
	now.next = i
	close(now.later)
}
