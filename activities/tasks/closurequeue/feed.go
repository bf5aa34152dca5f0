package closurequeue

import (
	"context"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// A batch that reaches batchBytes or batchOutcomes takes no more.
	batchBytes    = closure.MaxBatchBytes
	batchOutcomes = 4 * closure.MaxBatch
)

func isEmpty(b *closure.Outcomes) bool { return len(b.Outcomes) == 0 && len(b.Cancelled) == 0 }

// feed returns the history of a queue piece by piece. The caller keeps its position, so it can
// continue with another feed. A feed reads only a little ahead, so its memory is bounded even
// if the caller is slow.
type feed struct {
	client *Client
	// gate holds an element while a call of Next is in progress.
	gate chan struct{}

	// The fields below belong to the holder of the gate.

	// before is the beginning of last, the batch that was returned last and may be needed
	// again.
	before string
	last   closure.Outcomes
	// ahead was read but has not been returned yet.
	ahead  *closure.Outcomes
	stop   context.CancelFunc // stops the reader
	news   chan closure.Outcomes
	reader *reading
}

// reading is the state of a reader. err is set once news is closed.
type reading struct{ err error }

func newFeed(c *Client) *feed { return &feed{client: c, gate: make(chan struct{}, 1)} }

// next returns the outcomes after a position. If there is nothing, it waits for that time or
// until ctx ends, and then returns an empty batch. If the caller asks again for the same
// position because the answer was lost, it gets the same batch. At the end of the history the
// error is [ErrRunEnded].
func (f *feed) next(ctx context.Context, after string, wait time.Duration) (closure.Outcomes, error) {
	select {
	case f.gate <- struct{}{}:
		defer func() { <-f.gate }()
	case <-ctx.Done():
		return closure.Outcomes{}, ctx.Err()
	}
	switch {
	case f.stop != nil && after == f.before && !isEmpty(&f.last):
		return f.last, nil
	case f.stop == nil || after != f.last.At:
		at, err := ParsePosition(after)
		if err != nil {
			return closure.Outcomes{}, &closure.RefusedError{Reason: err}
		}
		f.begin(at)
	}
	batch := closure.Outcomes{At: after}
	if err := f.first(ctx, &batch, wait); err != nil {
		return closure.Outcomes{}, err
	}
	for !isEmpty(&batch) && f.ahead == nil {
		select {
		case n, ok := <-f.news:
			if !ok {
				break
			}
			f.take(&batch, n)
			continue
		default:
		}
		break
	}
	f.before, f.last = after, batch
	return batch, nil
}

// begin starts a reader at a position.
func (f *feed) begin(at Position) {
	f.end()
	ctx, cancel := context.WithCancel(context.Background())
	news, r := make(chan closure.Outcomes), &reading{}
	f.stop, f.news, f.reader = cancel, news, r
	f.last = closure.Outcomes{At: at.String()}
	go func() {
		defer close(news)
		r.err = f.client.Follow(ctx, at, func(n closure.Outcomes) error {
			select {
			case news <- n:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
}

func (f *feed) end() {
	if f.stop != nil {
		f.stop()
	}
	f.stop, f.ahead, f.last = nil, nil, closure.Outcomes{}
}

// first waits for the beginning of a batch.
func (f *feed) first(ctx context.Context, b *closure.Outcomes, wait time.Duration) error {
	if n := f.ahead; n != nil {
		f.ahead = nil
		f.take(b, *n)
		return nil
	}
	patience := time.NewTimer(wait)
	defer patience.Stop()
	select {
	case n, ok := <-f.news:
		if !ok {
			err := f.reader.err
			f.end() // the next call starts a new reader
			return err
		}
		f.take(b, n)
	case <-patience.C:
	case <-ctx.Done():
	}
	return nil
}

// take adds news to a batch, or keeps them for the next one.
func (f *feed) take(b *closure.Outcomes, n closure.Outcomes) {
	if !isEmpty(b) && (isFull(b) || len(b.Cancelled) > 0 && len(n.Outcomes) > 0) {
		f.ahead = &n
		return
	}
	b.At = n.At
	b.Outcomes = append(b.Outcomes, n.Outcomes...)
	b.Cancelled = append(b.Cancelled, n.Cancelled...)
}

func isFull(b *closure.Outcomes) bool {
	bytes := 0
	for _, o := range b.Outcomes {
		bytes += len(o.Value)
		if o.Error != nil {
			bytes += len(o.Error.Message) + len(o.Error.Traceback)
		}
	}
	return len(b.Outcomes) >= batchOutcomes || bytes >= batchBytes
}

// feeds are the feeds of the processes of one host that follow the same queue, by name. A
// feed that is not used for a while is dropped. If its process asks again, a new feed begins
// at the position that the process gives.
type feeds struct {
	client *Client

	mu       sync.Mutex
	all      map[string]*kept
	sweeping *time.Timer
	closed   bool
}

type kept struct {
	*feed
	asked int // calls in progress
	used  time.Time
}

const (
	// maxFeeds bounds the feeds of a queue, each of which holds news that it has read ahead.
	maxFeeds = 64
	// idleFeed is the time for which an unused feed is kept.
	idleFeed = time.Minute
)

// next calls next of the feed with this name.
func (f *feeds) next(ctx context.Context, name, after string, wait time.Duration) (closure.Outcomes, error) {
	k := f.enter(name)
	defer f.leave(k)
	return k.next(ctx, after, wait)
}

func (f *feeds) enter(name string) *kept {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.all[name]
	if k == nil {
		for len(f.all) >= maxFeeds && f.dropOldest() {
		}
		k = &kept{feed: newFeed(f.client)}
		if f.all == nil {
			f.all = map[string]*kept{}
		}
		f.all[name] = k
	}
	k.asked++
	if f.sweeping == nil && !f.closed {
		f.sweeping = time.AfterFunc(idleFeed, f.sweep)
	}
	return k
}

func (f *feeds) leave(k *kept) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k.asked--
	k.used = time.Now()
	if f.closed && k.asked == 0 {
		k.end()
	}
}

// dropOldest drops the feed that has been idle longest. mu must be held, also for drop.
func (f *feeds) dropOldest() bool {
	oldest := ""
	for name, k := range f.all {
		if k.asked == 0 && (oldest == "" || k.used.Before(f.all[oldest].used)) {
			oldest = name
		}
	}
	if oldest != "" {
		f.drop(oldest)
	}
	return oldest != ""
}

func (f *feeds) drop(name string) {
	f.all[name].end()
	delete(f.all, name)
}

func (f *feeds) sweep() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, k := range f.all {
		if k.asked == 0 && time.Since(k.used) >= idleFeed {
			f.drop(name)
		}
	}
	if f.sweeping = nil; len(f.all) > 0 && !f.closed {
		f.sweeping = time.AfterFunc(idleFeed, f.sweep)
	}
}

// close drops all feeds.
func (f *feeds) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.sweeping != nil {
		f.sweeping.Stop()
	}
	for name, k := range f.all {
		if k.asked == 0 {
			f.drop(name)
		}
	}
}
