package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/hostuser"
	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/activities/tcpstore"
)

// The versions of [handover] that this program writes, oldest and newest; the newest is also
// the newest that it reads, and it reads all earlier ones. They are variables for the
// linker's -X. A new field makes a new version, and a program writes the previous version as
// well if that can express everything that it holds.
var (
	handoverVersion = "1"
	handoverOldest  = "1"
)

// handover is everything that a supervisor holds, for another program that is executed in its
// process. It is written as JSON to a memfd, whose number is in [early.Handover]; descriptors
// stay open under their numbers. A reader refuses an unknown field, because it would lose its
// content. Times that must continue are nanoseconds of CLOCK_BOOTTIME.
type handover struct {
	Version int `json:"version"`
	// From is the version of the writing program, and Program its message to the next one,
	// which the supervisor passes on unread.
	From    string          `json:"from"`
	Program json.RawMessage `json:"program"`
	Tries   int             `json:"tries"`

	Dir      string    `json:"dir"`
	Instance string    `json:"instance"`
	Boot     string    `json:"boot"`
	Lock     int       `json:"lock"` // descriptor
	Pruned   time.Time `json:"pruned"`

	Cgroup      string           `json:"cgroup,omitempty"`
	NoCgroup    bool             `json:"no_cgroup,omitempty"`
	Controllers ControllersReply `json:"controllers"`
	// OOMScore is the score of children if the supervisor's own is lower.
	OOMScore *int `json:"oom_score,omitempty"`

	Guard   int            `json:"guard,omitempty"` // process ID
	Foreign []int          `json:"foreign,omitempty"`
	Orphans []handedOrphan `json:"orphans,omitempty"`
	Runs    []handedRun    `json:"runs,omitempty"`
}

type handedOrphan struct {
	PID     int         `json:"pid"`
	Ticks   uint64      `json:"ticks"`
	Owner   *ProcessRef `json:"owner,omitempty"`
	Ours    bool        `json:"ours,omitempty"`
	Unknown bool        `json:"unknown,omitempty"`
	Asked   bool        `json:"asked,omitempty"`
}

type handedRun struct {
	Hash   string       `json:"hash"`
	Key    runkey.Run   `json:"key"`
	Newest int          `json:"newest,omitempty"`
	Tasks  []handedTask `json:"tasks,omitempty"`
	// Releasing and Released report whether a release was requested, and whether it is over.
	Releasing bool          `json:"releasing,omitempty"`
	Released  bool          `json:"released,omitempty"`
	Damaged   string        `json:"damaged,omitempty"`
	Touched   time.Time     `json:"touched"`
	Journal   handedJournal `json:"journal"`
	Ports     handedPorts   `json:"ports"`
	Output    handedOutputs `json:"output"`
}

type handedTask struct {
	Generation int             `json:"generation"`
	Name       string          `json:"name"`
	Fence      Fence           `json:"fence"`
	Next       int             `json:"next"`
	Processes  []handedProcess `json:"processes,omitempty"`
}

type handedProcess struct {
	Process Process `json:"process"`
	Phase   string  `json:"phase"`
	Ticks   uint64  `json:"ticks,omitempty"`
	Boot    string  `json:"boot,omitempty"`
	Cookie  string  `json:"cookie,omitempty"`
	KillAt  int64   `json:"kill_at,omitempty"`
	Contact Contact `json:"contact,omitzero"`
	Cgroup  string  `json:"cgroup,omitempty"`
	Limits  Limits  `json:"limits,omitzero"`
	Stop    Stop    `json:"stop,omitzero"`

	Reason    Reason    `json:"reason,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	Failed    bool      `json:"failed,omitempty"`
	Signals   []int     `json:"signals,omitempty"`
	Deadline  int64     `json:"deadline,omitempty"`
	Killed    int64     `json:"killed,omitempty"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	EndedBoot int64     `json:"ended_boot,omitempty"`
	Overdue   bool      `json:"overdue,omitempty"`
	CutOff    bool      `json:"cut_off,omitempty"`

	Sampled handedSample `json:"sampled,omitzero"`
}

// handedSample is the last sample of a process.
type handedSample struct {
	At           int64         `json:"at"`
	CPU          time.Duration `json:"cpu"`
	Ended        Usage         `json:"ended"`
	MaxRSS       int64         `json:"max_rss"`
	GPUTime      time.Duration `json:"gpu_time"`
	MaxGPUMemory int64         `json:"max_gpu_memory"`
}

type handedJournal struct {
	Head      record   `json:"head"`
	File      int      `json:"file,omitempty"` // descriptor; 0: none
	Size      int64    `json:"size"`
	Torn      bool     `json:"torn,omitempty"`
	Backlog   [][]byte `json:"backlog,omitempty"`
	CompactAt int64    `json:"compact_at,omitempty"`
	Closed    bool     `json:"closed,omitempty"`
}

type handedPorts struct {
	Leased []handedPortLease `json:"leased,omitempty"`
	Held   map[int]int       `json:"held,omitempty"` // descriptors by port
	Pins   []handedPin       `json:"pins,omitempty"`
	Stores []handedStore     `json:"stores,omitempty"`
	Lapses bool              `json:"lapses,omitempty"`
}

type handedPortLease struct {
	Generation int    `json:"generation"`
	Group      int    `json:"group"`
	Any        []int  `json:"any,omitempty"`
	Fixed      []int  `json:"fixed,omitempty"`
	Store      string `json:"store,omitempty"`
}

type handedPin struct {
	Port       int    `json:"port"`
	Task       string `json:"task"`
	Generation int    `json:"generation"`
	Socket     int    `json:"socket"` // descriptor; -1: none
}

type handedStore struct {
	Port       int               `json:"port"`
	Generation int               `json:"generation"`
	Group      int               `json:"group"`
	Address    string            `json:"address"`
	Server     tcpstore.Handover `json:"server"`
}

// handedOutputs is an [outputs].
type handedOutputs struct {
	Quota   int64          `json:"quota,omitempty"`
	Drop    bool           `json:"drop,omitempty"`
	Written int64          `json:"written,omitempty"`
	Outputs []handedOutput `json:"outputs,omitempty"`
}

type handedOutput struct {
	// Process is nil if it has ended.
	Process *ProcessRef    `json:"process,omitempty"`
	Written int64          `json:"written,omitempty"`
	Dropped int64          `json:"dropped,omitempty"`
	Stopped bool           `json:"stopped,omitempty"`
	Streams []handedStream `json:"streams,omitempty"`
}

type handedStream struct {
	Pipe    int            `json:"pipe"` // descriptor
	File    int            `json:"file"` // descriptor
	Path    string         `json:"path"`
	User    *hostuser.User `json:"user,omitempty"`
	LogDir  string         `json:"log_dir,omitempty"`
	LogRoot string         `json:"log_root,omitempty"`
	LogMode fs.FileMode    `json:"log_mode,omitempty"`
	Midline bool           `json:"midline,omitempty"`
	Lost    int64          `json:"lost,omitempty"`
	Why     string         `json:"why,omitempty"`
	Cut     int64          `json:"cut,omitempty"`
	Ended   bool           `json:"ended,omitempty"`
}

// phases has the names of the phases in which a process can be handed over. A process that is
// being started cannot.
var phases = map[phase]string{running: "running", ending: "ending", ended: "ended", abandoned: "abandoned"}

// held is a summary of a record, which its reader and its writer compare.
type held struct {
	Runs   int `json:"runs"`
	Living int `json:"living"`
	Ended  int `json:"ended"`
	Files  int `json:"files"`
}

func (h *handover) held() held {
	n := held{Runs: len(h.Runs), Files: len(h.files())}
	for _, r := range h.Runs {
		for _, t := range r.Tasks {
			for _, p := range t.Processes {
				if p.Phase == phases[ended] {
					n.Ended++
				} else {
					n.Living++
				}
			}
		}
	}
	return n
}

// files returns all descriptors of the record.
func (h *handover) files() []int {
	files := []int{h.Lock}
	for _, r := range h.Runs {
		if r.Journal.File != 0 {
			files = append(files, r.Journal.File)
		}
		files = slices.AppendSeq(files, maps.Values(r.Ports.Held))
		for _, p := range r.Ports.Pins {
			if p.Socket >= 0 {
				files = append(files, p.Socket)
			}
		}
		for _, s := range r.Ports.Stores {
			files = append(files, s.Server.Files()...)
		}
		for _, o := range r.Output.Outputs {
			for _, s := range o.Streams {
				files = append(files, s.Pipe, s.File)
			}
		}
	}
	return files
}

// check returns an error for an inconsistent record.
func (h *handover) check() error {
	seen := make(map[int]bool)
	for _, fd := range h.files() {
		if fd <= 2 || seen[fd] {
			return fmt.Errorf("the descriptor %d is named twice, or cannot be handed over", fd)
		}
		seen[fd] = true
	}
	return nil
}

// open returns an error if a descriptor of the record is not open.
func (h *handover) open() error {
	for _, fd := range h.files() {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil { //nolint:gosec // a descriptor
			return fmt.Errorf("the descriptor %d is not open: %w", fd, err)
		}
	}
	return nil
}

// readHandover reads a record from its beginning.
func readHandover(f *os.File) (*handover, error) {
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<40))
	if err != nil {
		return nil, fmt.Errorf("reading what is handed over: %w", err)
	}
	return decodeHandover(raw)
}

func decodeHandover(raw []byte) (*handover, error) {
	var v struct {
		Version int    `json:"version"`
		From    string `json:"from"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("what is handed over is not understood: %w", err)
	}
	if newest := versionOf(handoverVersion); v.Version < 1 || v.Version > newest {
		return nil, fmt.Errorf("clusterrun %s hands over a record of version %d, and this program reads versions up to %d", v.From, v.Version, newest)
	}
	h := new(handover)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(h); err != nil {
		return nil, fmt.Errorf("what clusterrun %s hands over is not understood: %w", v.From, err)
	}
	return h, h.check()
}

func versionOf(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // a mistake in linking
	}
	return n
}

var errStarting = errors.New("a process is being started")

// describe returns what the supervisor holds as a record of that version. It must be frozen.
func (s *supervisor) describe(version int) (*handover, error) {
	h := &handover{
		Version: version, From: s.cfg.Upgrade.Version, Program: s.cfg.Upgrade.Program, Tries: s.upgrades,
		Dir: s.state.dir, Instance: s.state.instance, Boot: s.state.boot, Lock: int(s.state.lock.Fd()), Pruned: s.state.pruned,
		Cgroup: s.cgroup, NoCgroup: s.noCgroup, Controllers: s.controllers,
		Guard: s.guard.pid, Foreign: s.foreign(),
	}
	if s.fork.score.protected {
		h.OOMScore = &s.fork.score.children
	}
	for pid, o := range s.reaper.orphans {
		handed := handedOrphan{PID: pid, Ticks: o.ticks, Ours: o.ours, Unknown: o.unknown, Asked: o.asked}
		if o.owner != nil {
			handed.Owner = &ProcessRef{o.owner.task.key(), o.owner.Number}
		}
		h.Orphans = append(h.Orphans, handed)
	}
	living := 0
	for _, hash := range slices.Sorted(maps.Keys(s.runs)) {
		r := s.runs[hash]
		handed, err := r.describe()
		if err != nil {
			return nil, err
		}
		h.Runs = append(h.Runs, handed)
		r.each(func(p *process) {
			if s.living[p.PID] == p {
				living++
			}
		})
	}
	if living != len(s.living) {
		return nil, fmt.Errorf("%d processes live, and the runs have %d", len(s.living), living)
	}
	return h, nil
}

// foreign returns the children that belong to no task. The threads that have started them,
// for other parts of this program such as a server, are then gone, so they become children of
// the main thread, like orphans. After that the two could not be told apart.
func (s *supervisor) foreign() []int {
	orphans := s.reaper.children.read()
	pids := slices.Collect(maps.Keys(s.reaper.foreign))
	for _, pid := range s.reaper.children.scan() {
		if s.living[pid] == nil && !slices.Contains(orphans, pid) && !s.reaper.foreign[pid] {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

func (r *run) describe() (handedRun, error) {
	h := handedRun{
		Hash: r.hash, Key: r.key, Newest: r.newest, Releasing: r.releasing, Damaged: r.damaged, Touched: r.touched,
		Journal: r.journal.describe(), Ports: r.ports.describe(), Output: r.output.describe(),
	}
	if r.released != nil {
		select {
		case <-r.released:
			h.Released = true
		default:
		}
	}
	var err error
	if h.Ports.Stores, err = r.ports.describeStores(); err != nil {
		return h, err
	}
	for id, t := range r.tasks {
		task := handedTask{Generation: id.generation, Name: id.name, Fence: t.fence, Next: t.next}
		for _, p := range t.processes {
			if p.phase == starting {
				return h, errStarting
			}
			task.Processes = append(task.Processes, p.describe())
		}
		h.Tasks = append(h.Tasks, task)
	}
	return h, nil
}

func (p *process) describe() handedProcess {
	return handedProcess{
		Process: p.view(), Phase: phases[p.phase], Ticks: p.ticks, Boot: p.boot, Cookie: p.cookie, KillAt: p.killAt,
		Contact: p.contact, Cgroup: p.cgroup, Limits: p.limits, Stop: p.stop, Reason: p.reason, Detail: p.detail, Failed: p.failed, Signals: p.signals,
		Deadline: toBoot(p.deadline), Killed: toBoot(p.killed), EndedAt: p.endedAt, EndedBoot: p.endedBoot,
		Overdue: p.overdue, CutOff: p.cutOff,
		Sampled: handedSample{toBoot(p.sampled.at), p.sampled.cpu, p.sampled.ended, p.sampled.maxRSS, p.sampled.gpuTime, p.sampled.maxGPUMemory},
	}
}

// toBoot converts a time to CLOCK_BOOTTIME, and fromBoot converts it back; 0 is no time.
func toBoot(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return BootNanos() + time.Until(t).Nanoseconds()
}

func fromBoot(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(at - BootNanos()))
}

func (j *journal) describe() handedJournal {
	h := handedJournal{Head: j.head, Size: j.size, Torn: j.torn, Backlog: j.backlog, CompactAt: j.compactAt, Closed: j.closed}
	if j.f != nil {
		h.File = int(j.f.Fd())
	}
	return h
}

func (p *runPorts) describe() handedPorts {
	h := handedPorts{Held: p.held, Lapses: p.lapse != nil}
	for key, l := range p.leased {
		h.Leased = append(h.Leased, handedPortLease{key.generation, key.group, l.any, l.fixed, l.store})
	}
	for port, pin := range p.pins {
		h.Pins = append(h.Pins, handedPin{port, pin.task, pin.generation, pin.fd})
	}
	return h
}

func (p *runPorts) describeStores() (all []handedStore, err error) {
	for port, store := range p.stores {
		server, err := store.server.Handover()
		if err != nil {
			return nil, err
		}
		all = append(all, handedStore{port, store.of.generation, store.of.group, store.address, server})
	}
	return all, nil
}

func (o *outputs) describe() handedOutputs {
	h := handedOutputs{Quota: o.bytes, Drop: o.drop, Written: o.written}
	streams := make(map[*output][]handedStream)
	for i := range o.copiers {
		// The streams of processes that have ended may still be open.
		for _, s := range o.copiers[i].streams {
			streams[s.output] = append(streams[s.output], s.describe())
		}
	}
	handed := func(out *output) handedOutput {
		all := streams[out]
		delete(streams, out)
		return handedOutput{Written: out.written, Dropped: out.dropped, Stopped: out.stopped, Streams: all}
	}
	for p, out := range o.of {
		of := handed(out)
		of.Process = &ProcessRef{p.task.key(), p.Number}
		h.Outputs = append(h.Outputs, of)
	}
	for out := range streams {
		h.Outputs = append(h.Outputs, handed(out))
	}
	return h
}

func (s *stream) describe() handedStream {
	c := s.place.c
	return handedStream{
		Pipe: s.pipe, File: int(s.file.Fd()),
		Path: s.place.path, User: c.User, LogDir: c.LogDir, LogRoot: c.LogRoot, LogMode: c.LogMode,
		Midline: s.midline, Lost: s.lost, Why: s.why, Cut: s.cut, Ended: s.ended,
	}
}

// outputs restores the [outputs] of a run, which is not copying yet; see resume.
func (h handedOutputs) outputs(r *run, open func(fd int, name string) *os.File) error {
	o := &r.output
	o.bytes, o.drop, o.written = h.Quota, h.Drop, h.Written
	o.of = make(map[*process]*output)
	for _, of := range h.Outputs {
		out := &output{written: of.Written, dropped: of.Dropped, stopped: of.Stopped}
		for _, s := range of.Streams {
			out.streams = append(out.streams, &stream{
				pipe: s.Pipe, file: open(s.File, s.Path),
				place:   place{s.Path, Command{User: s.User, LogDir: s.LogDir, LogRoot: s.LogRoot, LogMode: s.LogMode}},
				midline: s.Midline, lost: s.Lost, why: s.Why, cut: s.Cut, ended: s.Ended,
			})
		}
		o.handed = append(o.handed, o.enterLocked(out))
		if of.Process == nil {
			continue
		}
		p := r.find(*of.Process)
		if p == nil {
			return fmt.Errorf("the output of %s belongs to no process", of.Process.Key)
		}
		o.of[p] = out
	}
	return nil
}

// resume goes on with the streams that were handed over.
func (o *outputs) resume(stop func(*process)) (err error) {
	o.mu.Lock()
	handed := o.handed
	o.handed, o.stop = nil, stop
	o.mu.Unlock()
	for _, out := range handed {
		for _, s := range out.streams {
			s.identify()
		}
		err = errors.Join(err, out.copier.add(out.streams))
	}
	return err
}
