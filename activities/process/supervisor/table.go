package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
)

// run is one run on this host. supervisor.mu guards it, except for the ports, which have their own
// lock.
type run struct {
	hash    string
	key     runkey.Run
	journal *journal
	tasks   map[taskID]*task
	// newest is the newest generation that has started a process.
	newest int
	// releasing reports whether Release was requested; nothing is started after that.
	releasing bool
	// released is closed once the release is done.
	released chan struct{}
	// damaged is the path of a journal that could not be read, or empty.
	damaged string
	// touched is when the journal last grew.
	touched time.Time

	ports ports.Ports
	// outputs copies the processes' output to files.
	outputs output.Outputs
	// files limits how many of the run's processes start at the same time, because a process needs
	// more open files before its fork than after it. Also, each start may block a thread while it
	// creates files, and the runtime never terminates threads. The limit is per run, because one
	// run's files may be on a server that is gone.
	files chan struct{}
}

const filesAtOnce = 8

// FilesFor returns how many files the supervisor opens for a run with the given number of tasks, in
// addition to their ports. inFiles reports whether the tasks' output is written to files.
func FilesFor(tasks int, inFiles bool) int {
	const whileStarting, ofOutput = 6, 4
	files := whileStarting * min(tasks, filesAtOnce)
	if inFiles {
		files += ofOutput * tasks
	}
	return files
}

type taskID struct {
	generation int
	name       string
}

type task struct {
	run       *run
	id        taskID
	fence     Fence
	processes []*process // ordered by number; see omit
	next      int        // number of the next process
}

type phase int

const (
	// starting means that the start is journalled or about to be, but no OS process exists yet.
	starting phase = iota
	// running means that the leader was alive at the last check.
	running
	// ending means that the leader is a zombie, which is kept until the rest of the process is
	// gone, perhaps after a grace.
	ending
	// ended means that the exit is journalled or being journalled.
	ended
	// abandoned means that the process was reported as unkillable and is still alive.
	abandoned
)

// process is one process of a task, guarded by supervisor.mu.
type process struct {
	Process
	task      *task
	phase     phase
	ticks     uint64
	boot      string
	cookie    string
	killAt    int64
	contact   Contact
	cgroup    string // directory, or empty
	limits    Limits
	oomBefore int  // the oomCount at its start
	oomFails  bool // see [Command.OOMFails]
	outputs   []*output.Output
	unkept    []output.Place // see [owner.unkept]
	stop      Stop           // see [Command.Stop]
	// toGroup reports whether stop signals go to its group. If its command does not require this
	// from the start, it is set when the leader has exited or the grace is nearly over.
	toGroup bool

	// settled is closed once the process runs or could not be started. In the latter case, notMade
	// is the reason.
	settled chan struct{}
	notMade error
	// done is closed once the exit can be read.
	done chan struct{}

	reason    Reason
	detail    string    // see [StopRequest.Detail]
	failed    bool      // see [StopRequest.Failed]
	swept     int       // see [Exit.Swept]
	killedOf  int       // see [Exit.Killed]
	signals   []int     // stop signals, which are sent once it runs
	sent      []int     // signals of [SignalRequest]s
	askedAt   time.Time // when the first signal was requested
	deadline  time.Time
	killTimer *time.Timer
	// killed is when SIGKILL was first sent. When the timer bound expires, the process is given up.
	killed time.Time
	bound  *time.Timer
	// endedAt and endedBoot are when the leader was found dead.
	endedAt   time.Time
	endedBoot int64
	toldRest  bool // see tellRest
	// overdue and cutOff report whether the process was stopped because its time was up or because
	// its contact expired.
	overdue, cutOff bool
	sampled         sampled
}

func newProcess(t *task, number, launch int) *process {
	return &process{
		Process: Process{Key: t.key(), Number: number, Launch: launch},
		task:    t,
		settled: make(chan struct{}),
		done:    make(chan struct{}),
	}
}

func (t *task) key() runkey.Task {
	return runkey.Task{Run: t.run.key, Generation: t.id.generation, Task: t.id.name}
}

// process returns a process by its number, or nil if unknown.
func (t *task) process(number int) *process {
	for _, p := range slices.Backward(t.processes) {
		if p.Number == number {
			return p
		}
	}
	return nil
}

func (t *task) enter(p *process) {
	t.processes = append(t.processes, p)
	t.next = p.Number + 1
	t.omit()
}

// takeBack removes the newest process.
func (t *task) takeBack(p *process) {
	t.processes = t.processes[:len(t.processes)-1]
	t.next = p.Number
}

// KeepProcesses is the number of a task's processes that are kept in addition to the first of each
// launch, and the number of a run's generations that are kept in addition to the first. They are
// limited because a task may restart every few seconds for as long as its run lives.
const KeepProcesses = ports.KeepGenerations

// omit drops the processes that are not kept.
func (t *task) omit() {
	for i := 1; i < len(t.processes)-KeepProcesses; {
		p := t.processes[i]
		if p.Exit == nil || p.phase != ended || p.Launch != t.processes[i-1].Launch {
			i++
			continue
		}
		t.processes = slices.Delete(t.processes, i, i+1)
	}
}

// begin records that a generation starts a process, and drops the generations that are not kept.
func (r *run) begin(generation int) {
	if generation <= r.newest {
		return
	}
	r.newest = generation
	for id, t := range r.tasks {
		if r.isOmitted(id.generation) && !slices.ContainsFunc(t.processes, func(p *process) bool { return p.Exit == nil || p.phase != ended }) {
			delete(r.tasks, id)
		}
	}
}

// isOmitted reports whether a generation is not kept.
func (r *run) isOmitted(generation int) bool {
	return generation > 0 && generation < r.newest-KeepProcesses
}

func (r *run) task(id taskID) *task {
	t := r.tasks[id]
	if t == nil {
		t = &task{run: r, id: id}
		r.tasks[id] = t
	}
	return t
}

func newRun(hash string, key runkey.Run) *run {
	return &run{hash: hash, key: key, tasks: make(map[taskID]*task), touched: time.Now(), files: make(chan struct{}, filesAtOnce)}
}

// view returns the process in the form used in replies.
func (p *process) view() Process {
	v := p.Process
	v.Key.Run = p.task.run.key
	if v.Exit != nil {
		e := *v.Exit
		v.Exit = &e
	}
	return v
}

// alive reports whether the process is running or starting.
func (p *process) alive() bool { return p.phase == starting || p.phase == running }

// each calls f for every process of the run, in unspecified order.
func (r *run) each(f func(*process)) {
	for _, t := range r.tasks {
		for _, p := range t.processes {
			f(p)
		}
	}
}

func (r *run) views() []Process {
	var out []Process
	r.each(func(p *process) { out = append(out, p.view()) })
	sortProcesses(out)
	return out
}

func sortProcesses(ps []Process) {
	slices.SortFunc(ps, func(a, b Process) int {
		return cmp.Or(
			cmp.Compare(a.Key.Run.Namespace, b.Key.Run.Namespace),
			cmp.Compare(a.Key.Run.WorkflowID, b.Key.Run.WorkflowID),
			cmp.Compare(a.Key.Run.RunID, b.Key.Run.RunID),
			cmp.Compare(a.Key.Task, b.Key.Task),
			cmp.Compare(a.Key.Generation, b.Key.Generation),
			cmp.Compare(a.Number, b.Number),
		)
	})
}

func (r *run) damageError() error {
	return fault.Refuse(ErrDamaged, fmt.Sprintf("the journal of run %s was damaged (see %s); its tasks count as lost with the host", r.key.WorkflowID, r.damaged))
}
