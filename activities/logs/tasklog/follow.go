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
	// From returns a stream's starting offset, at the start of a line. If nil, the offset is 0.
	From func(Stream) int64
	// OnNext is called for each process of a task after the first followed one. It must not call
	// the follower.
	OnNext func(rank, attempt int)
	// OnError is called with an error about a file, once per file. Other files are still followed.
	// It must not call the follower.
	OnError func(error)
	// Hold limits the wait for the rest of an unfinished line at the end of a stream; with a
	// carriage return it is ten times that. The default is 1s.
	Hold time.Duration
	// As is the user who owns the files. The functions above and the sink are called on a thread
	// that acts as this user.
	As *hostuser.User
}

// Follower follows a run's present and future processes. The run's directory need not
// exist yet. All output is delivered, each stream in order, and a task's attempts in succession.
type Follower struct {
	dir  string
	sink func(Chunk)
	opts FollowOptions

	inserts chan func()
	ctx     context.Context // done once Stop is called
	stop    context.CancelFunc
	done    chan struct{}

	// Only the goroutine of run uses the fields below.

	processes map[processKey]*process
	newest    map[int]*process // by rank: the watched process
	ready     []*stream        // to be read
	reported  map[string]bool  // by path
	buf       []byte
	opened    int // files
}

const (
	// pollEvery is the minimum time between two checks of the files.
	pollEvery = 50 * time.Millisecond
	// At most 1/pollShare of the time is spent checking files.
	pollShare = 20
)

// Follow starts following the run with the given directory ([RunDir]). The sink is called from one
// goroutine, and may be slow; it must not call the follower.
func Follow(runDir string, sink func(Chunk), o FollowOptions) *Follower {
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
		dir: runDir, sink: sink, opts: o, inserts: make(chan func()), done: make(chan struct{}),
		processes: map[processKey]*process{}, newest: map[int]*process{},
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

// Stop delivers everything that is on disk, including unfinished lines, and stops. If the sink
// blocks until ctx is done, Stop returns ctx's error, and the follower stops later. Stop may be
// called again.
func (f *Follower) Stop(ctx context.Context) error {
	f.stop()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Insert delivers data that could not be written to its file, after all data that was written. It
// returns when the sink has received the data.
func (f *Follower) Insert(path string, data []byte) {
	inserted := make(chan struct{})
	insert := func() {
		defer close(inserted)
		f.insert(path, data)
	}
	select {
	case f.inserts <- insert:
		<-inserted
	case <-f.done:
	}
}

func (f *Follower) run() {
	defer close(f.done)
	defer f.closeFiles()
	for {
		began := time.Now()
		f.lookAtAll()
		more := len(f.ready) > 0 && f.readRound()
		pause := max(pollEvery, pollShare*time.Since(began))
		if more {
			pause = 0
		}
		select {
		case insert := <-f.inserts:
			insert()
		case <-f.ctx.Done():
			f.drain()
			return
		case <-time.After(pause):
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

// fail reports an error about a path, once.
func (f *Follower) fail(path string, err error) {
	if !f.reported[path] {
		f.reported[path] = true
		f.opts.OnError(err)
	}
}
