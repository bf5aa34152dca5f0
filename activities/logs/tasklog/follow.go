package tasklog

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
)

// FollowOptions configures a [Follower]. The zero value is valid.
type FollowOptions struct {
	// Select reports whether to follow a stream. If nil, all streams are followed.
	Select func(Stream) bool
	// From returns where to begin in a stream, at the start of a line. If nil, streams are
	// followed from their beginning.
	From func(Stream) int64
	// OnNext is called for each process of a task after the first that is followed. It must
	// not call the follower.
	OnNext func(rank, attempt int)
	// OnError is called with a problem of a file, once per file. The other files are still
	// followed. It must not call the follower.
	OnError func(error)
	// Hold is the time for which the unfinished end of a stream is held back to wait for the
	// rest of its line; with a carriage return it is a tenth of that. The default is 1s.
	Hold time.Duration
	// Poll, if not 0, is the interval of polling, which replaces inotify.
	Poll time.Duration
	// As is the user of the files. The functions above and the sink are called on a thread
	// that acts as that user.
	As *hostuser.User
}

// Follower follows the output of all present and future processes of a run. The run's
// directory need not exist yet. Everything is delivered from its beginning, each stream in
// order, and the attempts of a task one after the other.
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
	newest    map[int]*process // by rank: the watched process
	ready     []*stream        // to be read
	held      map[*stream]struct{}
	nextHold  time.Time       // when to check held; zero if it is empty
	reported  map[string]bool // by path
	buf       []byte
	opened    int // files
}

type drain struct {
	ranks []int
	done  chan struct{}
}

const (
	// quiet is the time between two rounds of reading. It combines many small writes of a
	// process into one read, and is too short to be noticed.
	quiet = 2 * time.Millisecond
	// pollEvery is the interval of polling if inotify is not available.
	pollEvery = 100 * time.Millisecond
)

// Follow starts to follow the run with that directory ([RunDir]). The sink is called from one
// goroutine, and may be slow; it must not call the follower.
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
	o.Hold = cmp.Or(o.Hold, time.Second)
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
		if err != nil { // Do failed before run
			o.OnError(err)
			close(f.done)
		}
	}()
	return f
}

// Drain delivers everything that is on disk when it is called, unfinished lines too, for the
// tasks with these ranks, or for all tasks. If the sink blocks it for longer than ctx, it
// returns ctx's error.
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

// Stop drains everything and ends. If the sink blocks it for longer than ctx, it returns
// ctx's error, and ends later. It may be called again.
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
	defer f.closeFiles()
	f.attach()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	now := time.Now()
	nextRound, nextPoll := now, now
	for {
		// Wait for news, but no longer than until the next task is due.
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

func (f *Follower) closeFiles() {
	for _, p := range f.processes {
		for _, s := range p.streams {
			f.closeFile(s)
		}
	}
}

// fail reports a problem of a path, once.
func (f *Follower) fail(path string, err error) {
	if !f.reported[path] {
		f.reported[path] = true
		f.opts.OnError(err)
	}
}
