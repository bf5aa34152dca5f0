package remotecommand

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/pty"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// Variable is the environment variable with the ID of a command. Everything that the command
// starts inherits it.
const Variable = "CLUSTERRUN_EXEC"

// Command is a command to execute with the process of a task.
type Command struct {
	Path string // absolute
	Args []string
	Env  []string
	Dir  string
	User *hostuser.User
	// Task is the ID of the task's process.
	Task int
	// Limits are the limits of setrlimit(2). Limited reports whether the cgroup of the task has
	// limits, so that the command needs it.
	Limits  []fork.Rlimit
	Limited bool
}

// process is a command that was started.
type process struct {
	id     string // the value of Variable
	marker string // the file in the state directory
	cgroup string // empty if it has none
	pid    int
	ticks  uint64
	exited chan struct{} // closed when the leader has ended; it is reaped in finish

	terminal *os.File // nil with pipes
	stdin    io.WriteCloser
	outputs  map[stream]*os.File

	mu     sync.Mutex
	reaped bool
}

// start starts a command. The error is a [fault.Start].
func (e *Executor) start(c Command, terminal *Size) (*process, error) {
	p := &process{exited: make(chan struct{}), outputs: map[stream]*os.File{}}
	name, err := e.mark(p)
	if err != nil {
		return nil, fault.NotStarted(err.Error())
	}
	files, err := p.open(c.User, terminal)
	if err == nil {
		err = e.fork(p, c, files, "exec-"+name)
	}
	for _, f := range files {
		_ = f.Close()
	}
	if err != nil {
		p.close()
		_ = os.Remove(p.marker)
		return nil, err
	}
	go func() {
		defer close(p.exited)
		var info unix.Siginfo
		for errors.Is(unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
	}()
	return p, nil
}

// open opens the streams, and returns the ends for the command.
func (p *process) open(user *hostuser.User, terminal *Size) (files []*os.File, err error) {
	if terminal != nil {
		master, slave, err := pty.Open()
		if err != nil {
			return nil, fault.NotStarted(err.Error())
		}
		p.terminal, p.stdin, p.outputs[stdout] = master, master, master
		if user != nil {
			err = os.Chown(slave.Name(), int(user.UID), -1)
		}
		if err = errors.Join(err, pty.SetSize(master, terminal.Rows, terminal.Columns)); err != nil {
			err = fault.NotStarted(err.Error())
		}
		return []*os.File{slave, slave, slave}, err
	}
	for _, name := range []stream{stdin, stdout, stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return files, fault.NotStarted("opening pipes: " + fault.Reason(err))
		}
		if name == stdin {
			files, p.stdin = append(files, r), w
		} else {
			files, p.outputs[name] = append(files, w), r
		}
	}
	return files, nil
}

func (e *Executor) fork(p *process, c Command, files []*os.File, group string) error {
	attr := &syscall.ProcAttr{
		Dir: c.Dir, Env: append(c.Env[:len(c.Env):len(c.Env)], Variable+"="+p.id),
		Sys: &syscall.SysProcAttr{
			Setsid: true, Setctty: p.terminal != nil, Pdeathsig: syscall.SIGKILL, Credential: c.User.Credential(),
		},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	// The forker's thread has the CPUs of this process.
	how := fork.How{CPUs: cpusOf(c.Task), Login: c.User != nil, Limits: c.Limits}
	start := func() error {
		return e.forker().StartAs(how, c.Path, c.Args, attr, func(pid int) {
			stat, _ := proc.ReadStat(pid) // a child has a stat file until it is reaped
			p.pid, p.ticks = pid, stat.Ticks
		})
	}
	var err error = unix.ENOENT
	parent := cgroup.In(c.Task, e.instance)
	if parent != "" {
		err = p.enter(filepath.Join(parent, group), attr, start)
	}
	if err != nil && c.Limited && parent == "" {
		return fault.NotStarted("it would not have the limits of the task, which has no cgroup")
	}
	if err != nil && !c.Limited {
		// Either the cgroup or the program was refused. Try without the cgroup.
		attr.Sys.UseCgroupFD = false
		err = start()
	}
	if err != nil {
		return fault.Exec(c.Path, c.Args, c.Env, err)
	}
	return nil
}

// enter calls start in a new cgroup.
func (p *process) enter(dir string, attr *syscall.ProcAttr, start func() error) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, fd
		err = start()
	}
	if err != nil {
		cgroup.Remove(dir)
		return err
	}
	p.cgroup = dir
	return nil
}

// cpusOf returns the CPUs of a task, or nil if this process has the same.
func cpusOf(pid int) []int {
	task, own := unix.NewCPUSet(fork.MostCPUs), unix.NewCPUSet(fork.MostCPUs)
	if unix.SchedGetaffinityDynamic(pid, task) != nil || unix.SchedGetaffinityDynamic(os.Getpid(), own) != nil {
		return nil
	}
	var cpus []int
	same := true
	for n := range fork.MostCPUs {
		if task.IsSet(n) {
			cpus = append(cpus, n)
		}
		same = same && task.IsSet(n) == own.IsSet(n)
	}
	if same {
		return nil
	}
	return cpus
}

// signal sends a signal to the group of the command, or to the foreground group of its
// terminal.
func (p *process) signal(s unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	group := p.pid
	if p.terminal != nil {
		if foreground, err := pty.Foreground(p.terminal); err == nil && foreground > 0 {
			group = foreground
		}
	}
	_ = unix.Kill(-group, s)
}

const (
	// grace is the time between SIGHUP and SIGKILL.
	grace = 2 * time.Second
	// killTakes bounds the wait for the ends of killed processes.
	killTakes = 5 * time.Second
)

// finish ends everything that the command is or has started, and returns its exit code.
func (p *process) finish() int {
	if p.left() {
		p.signalAll(unix.SIGHUP)
		p.signalAll(unix.SIGCONT)
		p.await(grace, func() {})
	}
	p.await(killTakes, func() {
		if p.cgroup != "" {
			cgroup.Kill(p.cgroup)
		}
		p.signalAll(unix.SIGKILL)
	})
	if p.cgroup != "" {
		cgroup.Remove(p.cgroup)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	select {
	case <-p.exited:
	default:
		return exitcode.OfSignal(int(unix.SIGKILL)) // it cannot be killed now
	}
	_ = os.Remove(p.marker)
	var status syscall.WaitStatus
	for _, err := syscall.Wait4(p.pid, &status, 0, nil); errors.Is(err, syscall.EINTR); _, err = syscall.Wait4(p.pid, &status, 0, nil) {
	}
	if status.Signaled() {
		return exitcode.OfSignal(int(status.Signal()))
	}
	return status.ExitStatus()
}

// await waits until nothing is left, and calls each before each look that finds something.
func (p *process) await(atMost time.Duration, each func()) {
	pause := time.Millisecond
	for deadline := time.Now().Add(atMost); p.left() && time.Now().Before(deadline); {
		each()
		// They are not children of this process, so nothing tells of their ends.
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// left reports whether something of the command lives.
func (p *process) left() bool {
	select {
	case <-p.exited:
	default:
		return true
	}
	if p.cgroup != "" {
		return cgroup.Populated(p.cgroup)
	}
	return len(p.members()) > 0
}

func (p *process) signalAll(s unix.Signal) {
	for pid, ticks := range p.members() {
		proc.Signal(pid, ticks, s)
	}
}

// members returns the living processes of the command, with their start ticks.
func (p *process) members() map[int]uint64 {
	if p.cgroup != "" {
		return living(cgroup.PIDs(p.cgroup), func(int, proc.Stat) bool { return true })
	}
	pids, _ := proc.PIDs()
	return living(pids, func(pid int, stat proc.Stat) bool {
		return stat.Session == p.pid || stat.Ticks >= p.ticks && hasVariable(pid, p.id)
	})
}

// close closes the streams.
func (p *process) close() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	for _, f := range p.outputs {
		_ = f.Close()
	}
}
