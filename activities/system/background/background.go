// Package background runs goroutines: a [Group] stops its goroutines together with its owner, and
// [Each] runs calls with limited concurrency. A follower of a [Feed] sees every value after the one
// it holds even if it checks late and even if the value was replaced immediately.
package background

import (
	"context"
	"sync"
)

// Group is a set of goroutines that are stopped together.
type Group struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // prevents goroutines from starting while Close waits
	running sync.WaitGroup
}

// NewGroup returns an empty group.
func NewGroup() *Group {
	g := &Group{}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Context returns a context that is canceled when the group is closed.
func (g *Group) Context() context.Context { return g.ctx }

// Go calls f in a goroutine, unless the group is being closed.
func (g *Group) Go(f func(ctx context.Context)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() == nil {
		g.running.Go(func() { f(g.ctx) })
	}
}

// Close cancels the context and waits for all goroutines.
func (g *Group) Close() {
	g.mu.Lock()
	g.cancel()
	g.mu.Unlock()
	g.running.Wait()
}
