package tasklog

import (
	"context"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/activities/hostuser"
)

// FollowOptions changes how a [Follower] works. The zero value is good.
type FollowOptions struct {
	// Select says which streams to follow. None: all.
	Select func(Stream) bool
	// From says where to begin in a stream, at the start of a line. None: at its
	// beginning.
	From func(Stream) int64
	// OnNext is told of each process of a task after the first that is followed. It
	// must not call the follower.
	OnNext func(rank, attempt int)
	// OnError is told what is wrong with a file, once per file. The other files
	// are followed on. It must not call the follower.
	OnError func(error)
	// Hold is how long the unfinished end of a stream is held back, in the hope
	// of the rest of its line; where that has a carriage return, a tenth of it.
	// Default 1s.
	Hold time.Duration
	// Poll, when set, is how often to look, instead of being told by inotify.
	Poll time.Duration
	// As is whose files they are. The functions above and the sink are called by a thread
	// that acts as that user.
	As *hostuser.User
}

// Follower follows the output of all processes of a run: those that are there,
// and those that will be. The run's directory need not exist yet. Everything is
// delivered from its beginning, each stream in order, and the attempts of a task
// one after the other.
type Follower struct {
	dir  string
	sink func(Chunk)
	opts FollowOptions

	drains chan drain
	ctx    context.Context // ends when Stop is called
	stop   context.CancelFunc
	done   chan struct{}

	// The rest belongs to the goroutine of run.

	watch     *watcher
	processes map[processKey]*process
	newest    map[int]*process // by rank: the one that is watched
	ready     []*stream        // to be read
	held      map[*stream]struct{}
	nextHold  time.Time       // when to look at held; zero: there is none
	reported  map[string]bool // by path
	buf       []byte
}

type drain struct {
	ranks []int
	done  chan struct{}
}

const (
	// quiet is the time between two rounds of reading. It makes one read of what
	// a process writes in many small pieces, and is too short to be noticed.
	quiet = 2 * time.Millisecond
	// pollEvery is used where inotify cannot be.
	pollEvery = 100 * time.Millisecond
)

// Follow starts to follow the run whose directory that is ([RunDir]). The sink
// is called from one goroutine, and may take its time; it must not call the
// follower.
func Follow(runDir string, sink func(Chunk), o FollowOptions) *Follower {
	return follow(runDir, sink, o, newWatcher(o.Poll))
}

func follow(runDir string, sink func(Chunk), o FollowOptions, w *watcher) *Follower {
	if abs, err := filepath.Abs(runDir); err == nil {
		runDir = abs
	}
	if o.Select == nil {
		o.Select = func(Stream) bool { return true }
	}
	if o.From == nil {
		o.From = func(Stream) int64 { return 0 }
	}
	if o.OnNext == nil {
		o.OnNext = func(int, int) {}
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.Hold == 0 {
		o.Hold = time.Second
	}
	f := &Follower{
		dir: runDir, sink: sink, opts: o, watch: w,
		drains: make(chan drain), done: make(chan struct{}),
		processes: map[processKey]*process{}, newest: map[int]*process{}, held: map[*stream]struct{}{},
		reported: map[string]bool{}, buf: make([]byte, readSize),
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	go func() {
		err := o.As.Do(func() error {
			f.run()
			return nil
		})
		if err != nil { // and it has not run
			o.OnError(err)
			close(f.done)
		}
	}()
	return f
}

// Drain delivers all that is on disk when it is called, unfinished lines too,
// of the tasks with these ranks, or of all tasks. When the sink keeps it waiting
// for longer than ctx, it returns ctx's error.
func (f *Follower) Drain(ctx context.Context, ranks ...int) error {
	d := drain{ranks, make(chan struct{})}
	select {
	case f.drains <- d:
	case <-f.done: // Stop has drained everything
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop drains everything and ends. When the sink keeps it waiting for longer
// than ctx, it returns ctx's error, and ends later. It may be called again.
func (f *Follower) Stop(ctx context.Context) error {
	f.stop()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Follower) run() {
	defer close(f.done)
	defer f.watch.close()
	f.attach()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	now := time.Now()
	nextRound, nextPoll := now, now
	for {
		// Wait for news, but no longer than until there is something to do.
		wake := f.nextHold
		if len(f.ready) > 0 {
			wake = nextRound
		}
		if f.watch.poll > 0 && (wake.IsZero() || nextPoll.Before(wake)) {
			wake = nextPoll
		}
		var alarmed <-chan time.Time
		if !wake.IsZero() {
			alarm.Reset(time.Until(wake))
			alarmed = alarm.C
		}
		select {
		case e, ok := <-f.watch.events:
			if ok {
				f.handle(e)
			} else {
				f.watch.events, f.watch.poll = nil, pollEvery // inotify has failed
			}
		case err := <-f.watch.errors:
			f.lostTrack(err)
		case d := <-f.drains:
			f.drain(d.ranks)
			close(d.done)
		case <-f.ctx.Done():
			f.drain(nil)
			return
		case <-alarmed:
		}
		now = time.Now()
		if f.watch.poll > 0 && !now.Before(nextPoll) {
			f.lookAtAll()
			nextPoll = time.Now().Add(f.watch.poll)
		}
		f.expireHolds(now)
		if len(f.ready) > 0 && !now.Before(nextRound) {
			if more := f.readRound(); !more {
				nextRound = time.Now().Add(quiet)
			}
		}
	}
}

// fail reports what is wrong with a path, once.
func (f *Follower) fail(path string, err error) {
	if !f.reported[path] {
		f.reported[path] = true
		f.opts.OnError(err)
	}
}
