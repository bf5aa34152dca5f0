package files

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/workflows/outcome"
)

// Options configures an [Output]. The zero value is valid.
type Options struct {
	Selection Selection
	// Select further limits the streams. It may be nil.
	Select func(tasklog.Stream) bool
	// Live reports whether the Output reads new output until [Output.Finish]. If false, it reads
	// only what exists.
	Live bool
	// WholeLines reports whether unfinished lines are held back; see [tasklog.WholeLines].
	WholeLines bool
	// LogDir is a log directory that may contain the run's logs although the run does not report
	// it.
	LogDir string
	// OnNext is called for each of a task's processes after the first followed one.
	OnNext func(rank, attempt int)
	// OnError is called with file errors. OnTrouble is called with an error when a host becomes
	// unreachable, and with nil when it is back.
	OnError   func(error)
	OnTrouble func(host string, err error)
}

// Output reads processes' output from this machine and from the hosts that serve it.
type Output struct {
	files *Files
	o     Options
	sink  func(tasklog.Chunk)
	dirs  []os.FileInfo
	local []*tasklog.Follower
	there map[int][]int

	mu      sync.Mutex
	sources map[process]any // the source that delivers a process's output
	latest  map[int]int     // the last process of a task that has started, by rank
}

// process is one process of a run.
type process struct{ rank, attempt int }

// Follow returns a reader that passes output to the sink. It does not read anything until
// [Output.Look] or [Output.ReadDir] is called. Calls of the sink for different processes may be
// concurrent.
func (f *Files) Follow(o Options, sink func(tasklog.Chunk)) *Output {
	if o.OnNext == nil {
		o.OnNext = func(int, int) {}
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.OnTrouble == nil {
		o.OnTrouble = func(string, error) {}
	}
	return &Output{files: f, o: o, sink: sink, there: map[int][]int{}, sources: map[process]any{}, latest: map[int]int{}}
}

// There returns the processes that have files at the places that are read; see
// [tasklog.Attempts].
func (w *Output) There() map[int][]int { return w.there }

// Look starts reading the places that the run's status names and that are not being read yet.
func (w *Output) Look(ctx context.Context, s *outcome.Status) {
	w.files.update(s)
	if w.someUnread() {
		w.files.learn(ctx)
	}
	hosts := w.files.elsewhere(ctx, w.o.Selection.Of(s, nil))
	for _, h := range hosts {
		w.found(h.attempts)
	}
	var added []string
	for _, dir := range w.runDirs() {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || slices.ContainsFunc(w.dirs, func(d os.FileInfo) bool { return os.SameFile(d, info) }) {
			continue
		}
		attempts, err := tasklog.Attempts(dir)
		if err != nil {
			w.o.OnError(err)
		}
		w.found(attempts)
		w.dirs, added = append(w.dirs, info), append(added, dir)
	}
	for _, dir := range added {
		w.ReadDir(dir)
	}
	for _, h := range hosts {
		h.reading = true
		h.follower = h.client.Follow(w.from(h), hostservice.FollowOptions{
			Selection: w.selection(), WholeLines: w.o.WholeLines, Live: w.o.Live && s.Open, OnError: w.o.OnError,
			OnTrouble: func(err error) { w.o.OnTrouble(h.name, err) },
		})
	}
}

func (w *Output) selection() tasklog.Selection { return w.o.Selection.Of(w.files.status, w.there) }

// someUnread reports whether a finished run may have output that is not on this machine. If its
// group has moved, earlier processes' places are on record at the hosts' services.
func (w *Output) someUnread() bool {
	return w.files.status.Generation > 0 || len(w.Missing()) > 0
}

// runDirs returns the directories on this machine that may contain logs of the run.
func (w *Output) runDirs() (dirs []string) {
	if s := w.files.status; w.o.LogDir != "" {
		dirs = append(dirs, tasklog.RunDir(w.o.LogDir, s.RunID, s.ExecutionID))
	}
	return append(dirs, w.files.Dirs()...)
}

// Dirs returns the directories on this machine that contain the run's logs, by what the run and
// its hosts have reported.
func (f *Files) Dirs() (dirs []string) {
	for _, p := range f.Processes() {
		if runDir, _, _, _ := tasklog.SplitProcessDir(p.Dir); !slices.Contains(dirs, runDir) && f.Here(p.Dir) == nil {
			dirs = append(dirs, runDir)
		}
	}
	for _, h := range f.hosts {
		if h.isHere && !slices.Contains(dirs, h.dir) {
			dirs = append(dirs, h.dir)
		}
	}
	return dirs
}

// ReadDir starts reading the run's directory on this machine, which need not exist yet.
func (w *Output) ReadDir(dir string) {
	selection := w.selection()
	o := tasklog.FollowOptions{
		Select:  func(st tasklog.Stream) bool { return selection.Has(st) && (w.o.Select == nil || w.o.Select(st)) },
		From:    selection.From(dir),
		OnNext:  w.next,
		OnError: w.o.OnError,
	}
	if w.o.WholeLines {
		o.Hold = tasklog.WholeLines
	}
	w.local = append(w.local, tasklog.Follow(dir, w.from(dir), o))
}

// Insert delivers data that was not written to its file, after all data that was. The file's
// directory must be the only one that is read.
func (w *Output) Insert(path string, data []byte) { w.local[0].Insert(path, data) }

// from returns a source's sink. If two sources offer the same process, for example a directory
// that is also served, the first to deliver output is used.
func (w *Output) from(source any) func(tasklog.Chunk) {
	_, elsewhere := source.(*host)
	return func(c tasklog.Chunk) {
		p := process{c.Rank, c.Attempt}
		w.mu.Lock()
		if w.sources[p] == nil {
			w.sources[p] = source
		}
		mine := w.sources[p] == source
		last, some := w.latest[c.Rank]
		w.latest[c.Rank] = max(last, c.Attempt)
		w.mu.Unlock()
		if !mine {
			return
		}
		if elsewhere && some && c.Attempt > last {
			w.o.OnNext(c.Rank, c.Attempt)
		}
		if !elsewhere || w.o.Select == nil || w.o.Select(c.Stream) {
			w.sink(c)
		}
	}
}

// next reports a process that was found in a directory, unless its output has already shown it.
func (w *Output) next(rank, attempt int) {
	w.mu.Lock()
	last, some := w.latest[rank]
	w.latest[rank] = max(last, attempt)
	w.mu.Unlock()
	if !some || attempt > last {
		w.o.OnNext(rank, attempt)
	}
}

// found records processes that have files.
func (w *Output) found(attempts map[int][]int) {
	for rank, n := range attempts {
		w.there[rank] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(w.there[rank], n))))
	}
}

// Close stops reading.
func (w *Output) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = w.Finish(ctx) // its error can only be that of ctx
}

// Finish reads the remaining output. It returns ctx's error; [Output.Missing] returns what could
// not be read.
func (w *Output) Finish(ctx context.Context) error {
	var all sync.WaitGroup
	for _, r := range w.local {
		all.Go(func() { _ = r.Stop(ctx) }) // fails only if ctx is done
	}
	for _, h := range w.files.hosts {
		if h.follower != nil {
			all.Go(func() {
				if h.err = h.follower.Stop(ctx); h.err == nil {
					h.read, h.attempts = true, h.follower.Attempts()
				}
			})
		}
	}
	all.Wait()
	return ctx.Err()
}
