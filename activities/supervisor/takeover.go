package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/supervisor/internal/early"
	"github.com/clusterrun/clusterrun/activities/tcpstore"
)

// handedFD is the descriptor of the record; 0 if this program did not take over.
var handedFD int

// mainThread has functions for the main goroutine, which [Main] calls. A program that takes
// over forks on its main thread, because the children of the previous program were forked by
// the thread that executed this one, which is now the main thread. The next takeover must use
// the same thread, or the parent-death signals of the children are sent.
var mainThread chan func()

func init() {
	// The descriptor of a [handover], and the signals that were ignored when the first program was started.
	number, ignored, _ := strings.Cut(os.Getenv(early.Handover), " ")
	fd, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	ignoreAgain(ignored)
	_ = os.Unsetenv(early.Handover)
	unix.CloseOnExec(fd)
	handedFD = fd
	// Restore the name: the kernel has named the process after the descriptor.
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
	runtime.LockOSThread()
	mainThread = make(chan func())
}

// TakesOver reports whether this program was executed by a supervisor in its own process.
func TakesOver() bool { return handedFD != 0 }

// Main calls main and returns its exit code. The function main of a program with a supervisor
// must call it, on the main goroutine.
func Main(main func() int) int {
	if mainThread == nil {
		return main()
	}
	go func() { os.Exit(main()) }()
	for f := range mainThread {
		f()
	}
	return 0
}

// Inherit returns the state of the supervisor that this program takes over from, and the
// message of the previous program ([Upgrade.Program]).
func Inherit() (*State, json.RawMessage, error) {
	f := os.NewFile(uintptr(handedFD), "handover") //nolint:gosec // a descriptor
	defer f.Close()
	h, err := readHandover(f)
	if err == nil {
		err = h.open()
	}
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range h.files() {
		unix.CloseOnExec(fd)
	}
	s, err := h.state(func(fd int, name string) *os.File { return os.NewFile(uintptr(fd), name) }) //nolint:gosec // a descriptor
	if err != nil {
		return nil, nil, err
	}
	return s, h.Program, nil
}

// state builds the state that the record describes. open opens descriptors.
func (h *handover) state(open func(fd int, name string) *os.File) (*State, error) {
	s := &State{dir: h.Dir, instance: h.Instance, boot: h.Boot, pruned: h.Pruned, runs: make(map[string]*run), handed: h}
	s.lock = open(h.Lock, lockFile)
	for _, handed := range h.Runs {
		r, err := handed.run(s, open)
		if err != nil {
			return nil, err
		}
		s.runs[r.hash] = r
	}
	for _, o := range h.Orphans {
		if o.Owner != nil && s.process(*o.Owner) == nil {
			return nil, fmt.Errorf("the owner of process %d is not among the processes", o.PID)
		}
	}
	return s, nil
}

func (s *State) process(ref ProcessRef) *process {
	r := s.runs[runHash(ref.Key.Run)]
	if r == nil {
		return nil
	}
	return r.find(ref)
}

func (r *run) find(ref ProcessRef) *process {
	t := r.tasks[taskID{ref.Key.Generation, ref.Key.Task}]
	if t == nil {
		return nil
	}
	return t.process(ref.Number)
}

func (h *handedRun) run(s *State, open func(fd int, name string) *os.File) (*run, error) {
	if runHash(h.Key) != h.Hash {
		return nil, fmt.Errorf("the run %s does not have the hash %s", h.Key.WorkflowID, h.Hash)
	}
	r := newRun(h.Hash, h.Key)
	r.newest, r.releasing, r.damaged, r.touched = h.Newest, h.Releasing, h.Damaged, h.Touched
	switch {
	case h.Released:
		r.released = closedChan
	case h.Releasing:
		r.released = make(chan struct{}) // see takeOver
	}
	for _, handed := range h.Tasks {
		t := r.task(taskID{handed.Generation, handed.Name})
		t.fence, t.next = handed.Fence, handed.Next
		for _, p := range handed.Processes {
			made, err := p.process(t)
			if err != nil {
				return nil, err
			}
			t.processes = append(t.processes, made)
		}
	}
	j := h.Journal
	r.journal = &journal{
		path: s.journalPath(h.Hash), head: j.Head, size: j.Size, torn: j.Torn, backlog: j.Backlog, compactAt: j.CompactAt, closed: j.Closed,
	}
	if j.File != 0 {
		r.journal.f = open(j.File, r.journal.path)
	}
	for _, l := range h.Ports.Leased {
		r.ports.remember(portLeaseKey{l.Generation, l.Group}, portLease{l.Any, l.Fixed, l.Store})
	}
	r.ports.held = h.Ports.Held
	for _, p := range h.Ports.Pins {
		if r.ports.pins == nil {
			r.ports.pins = make(map[int]pin)
		}
		r.ports.pins[p.Port] = pin{p.Task, p.Generation, p.Socket}
	}
	if err := h.Output.outputs(r, open); err != nil {
		return nil, err
	}
	return r, nil
}

func (h *handedProcess) process(t *task) (*process, error) {
	p := newProcess(t, h.Process.Number, h.Process.Launch)
	p.Process = h.Process
	p.phase = starting
	for phase, name := range phases {
		if name == h.Phase {
			p.phase = phase
		}
	}
	if p.phase == starting || (p.phase == ended || p.phase == abandoned) != (p.Exit != nil) {
		return nil, fmt.Errorf("process %d of %s is in a phase in which it cannot be handed over: %q", p.Number, t.key(), h.Phase)
	}
	close(p.settled)
	if p.Exit != nil {
		close(p.done)
	}
	p.ticks, p.boot, p.cookie, p.killAt, p.contact = h.Ticks, h.Boot, h.Cookie, h.KillAt, h.Contact
	p.cgroup, p.limits, p.stop = h.Cgroup, h.Limits, h.Stop
	p.reason, p.detail, p.failed, p.signals = h.Reason, h.Detail, h.Failed, h.Signals
	p.deadline, p.killed = fromBoot(h.Deadline), fromBoot(h.Killed)
	p.endedAt, p.endedBoot, p.overdue, p.cutOff = h.EndedAt, h.EndedBoot, h.Overdue, h.CutOff
	u := h.Sampled
	p.sampled = sampled{fromBoot(u.At), u.CPU, u.Ended, u.MaxRSS, u.GPUTime, u.MaxGPUMemory}
	return p, nil
}

// takeOver makes a new supervisor continue with what the previous program held.
func (s *supervisor) takeOver(h *handover) {
	s.cgroup, s.noCgroup, s.controllers, s.upgrades = h.Cgroup, h.NoCgroup, h.Controllers, h.Tries
	s.fork.score = oomScore{file: oomFile}
	if h.OOMScore != nil {
		s.fork.score.protected, s.fork.score.children = true, *h.OOMScore
	}
	s.reaper = newReaper(s)
	for _, pid := range h.Foreign {
		s.reaper.foreign[pid] = true
	}
	if h.Guard != 0 { // a guard of this program follows, which reads what this one writes
		s.reaper.foreign[h.Guard] = true
		_ = unix.Kill(h.Guard, unix.SIGKILL)
	}
	for _, o := range h.Orphans {
		orphan := &orphan{ticks: o.Ticks, ours: o.Ours, unknown: o.Unknown, asked: o.Asked}
		if o.Owner != nil {
			orphan.owner = s.state.process(*o.Owner)
		}
		s.reaper.orphans[o.PID] = orphan
	}
	s.mu.Lock()
	for i := range h.Runs {
		s.resume(s.runs[h.Runs[i].Hash], &h.Runs[i])
	}
	s.mu.Unlock()
	s.reaper.start()
	s.reaper.wake() // for what has ended meanwhile
}

// resume resumes the timers, the stores and the release of a run. s.mu must be held.
func (s *supervisor) resume(r *run, h *handedRun) {
	now := time.Now()
	r.each(func(p *process) {
		if p.phase == ended {
			return
		}
		s.living[p.PID] = p
		s.needGuard()
		if p.phase == running || p.phase == ending {
			if !p.deadline.IsZero() && p.killed.IsZero() {
				s.armKill(p, now)
			}
			s.watch(p)
		}
		if !p.killed.IsZero() && p.bound == nil {
			p.bound = time.AfterFunc(time.Until(p.killed.Add(s.cfg.KillBound)), s.reaper.wake)
		}
	})
	for _, handed := range h.Ports.Stores {
		server, err := tcpstore.Resume(handed.Server, s.log.With(zap.String("run", r.key.WorkflowID)))
		if err != nil {
			s.log.Error("The store of a run is no longer served.", zap.String("run", r.key.WorkflowID), zap.Error(err))
			continue
		}
		if r.ports.stores == nil {
			r.ports.stores = make(map[int]store)
		}
		r.ports.stores[handed.Port] = store{portLeaseKey{handed.Generation, handed.Group}, handed.Address, server}
	}
	if h.Ports.Lapses {
		s.lapseLater(r)
	}
	if err := r.output.resume(s.stopLoud); err != nil {
		s.log.Error("Some output is no longer copied to its files.", zap.String("run", r.key.WorkflowID), zap.Error(err))
	}
	r.journal.resume()
	if r.releasing && !h.Released {
		var all []*process
		r.each(func(p *process) { all = append(all, p) })
		go s.release(r, all)
	}
}

// resume schedules the writes and syncs that are still outstanding.
func (j *journal) resume() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.f != nil {
		j.syncSoonLocked()
	}
	if len(j.backlog) > 0 {
		j.retryLocked()
	}
}
