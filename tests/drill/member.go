package drill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
)

const (
	// roleVar contains a member's role, such as "step 40".
	roleVar = "DRILL_ROLE"
	// ledgerVar is the run's ledger directory.
	ledgerVar = "DRILL_LEDGER"
	// markVar is set in every process of a drill.
	markVar = "DRILL_MARK"
)

// Exit codes of failing members.
const (
	exitFlaky  = 3   // a failure required by the role
	exitDouble = 77  // another process of the task, or of another generation, is running
	exitWrong  = 78  // a member's request failed
	exitAsked  = 143 // it received SIGTERM
)

// pace is the step duration.
const pace = 50 * time.Millisecond

// IsMember reports whether this process is a run's program.
func IsMember() bool { return os.Getenv(roleVar) != "" }

// Member is the program of every task in a drill. It returns the exit code.
func Member() int {
	m, err := newMember()
	if err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		return exitWrong
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		m.note("asked")
		m.end(exitAsked)
	}()
	code, err := m.play(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		m.note("wrong %s", strconv.Quote(err.Error()))
	}
	m.end(code)
	return code
}

// member is one process of a task.
type member struct {
	dir, task  string
	generation int
	number     int
	page       *os.File
	locks      []*os.File
}

func newMember() (*member, error) {
	m := &member{dir: os.Getenv(ledgerVar), task: os.Getenv("CLUSTERRUN_TASK")}
	m.generation, _ = strconv.Atoi(os.Getenv("CLUSTERRUN_GENERATION"))
	m.number, _ = strconv.Atoi(os.Getenv("CLUSTERRUN_RESTART_COUNT"))
	page, err := os.OpenFile(filepath.Join(m.dir, pageName(m.task, os.Getpid())), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	m.page = page
	_, port, _ := net.SplitHostPort(os.Getenv("CLUSTERRUN_ADDRESS"))
	m.note("start %d %d %s %s %s", m.generation, m.number, os.Getenv("CLUSTERRUN_HOST"), os.Getenv("CLUSTERRUN_SOCKET"), port)
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		_, path, _ := strings.Cut("\n"+string(b), "\n0::") // of cgroups v2
		path, _, _ = strings.Cut(path, "\n")
		m.note("cgroup %s", path)
	}
	return m, m.alone()
}

// alone takes locks which prove that no other process of the task, of another generation, or with
// the same GPUs is running. The kernel releases them when this process dies.
func (m *member) alone() error {
	if !m.lock("task."+m.task, unix.F_WRLCK) {
		m.note("double %s", m.task)
	}
	mine := fmt.Sprintf("generation.%d", m.generation)
	if !m.lock(mine, unix.F_RDLCK) {
		m.note("double %s", mine)
	}
	if gpu := "gpus." + os.Getenv("CLUSTERRUN_HOST"); os.Getenv(gpuVar) != "" && !m.lock("../"+gpu, unix.F_WRLCK) {
		m.note("double %s", gpu)
	}
	others, err := filepath.Glob(filepath.Join(m.dir, "generation.*"))
	if err != nil {
		return err
	}
	for _, path := range others {
		if name := filepath.Base(path); name != mine && !m.free(name) {
			m.note("double %s", name)
		}
	}
	return nil
}

// lock takes a lock until the process exits, if it is free.
func (m *member) lock(name string, how int16) bool {
	f, err := m.open(name)
	if err != nil {
		return false
	}
	m.locks = append(m.locks, f)
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: how}) == nil
}

// free reports whether a lock is free. It does not take the lock, which another member could then
// find taken.
func (m *member) free(name string) bool {
	f, err := m.open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	held := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &held) == nil && held.Type == unix.F_UNLCK
}

func (m *member) open(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(m.dir, name), os.O_CREATE|os.O_RDWR, 0o600)
}

// note appends a line to this process's page, in one write.
func (m *member) note(format string, args ...any) {
	line := strconv.FormatInt(bootNanos(), 10) + " " + fmt.Sprintf(format, args...) + "\n"
	if _, err := m.page.WriteString(line); err != nil {
		fmt.Fprintln(os.Stderr, "drill: the ledger:", err)
	}
}

// end exits with code. Only the first call counts.
func (m *member) end(code int) {
	m.note("end %d", code)
	os.Exit(code)
}

// play plays the role.
func (m *member) play(ctx context.Context) (int, error) {
	var role string
	var n int
	if _, err := fmt.Sscanf(os.Getenv(roleVar), "%s %d", &role, &n); err != nil {
		return exitWrong, fmt.Errorf("%s: %w", roleVar, err)
	}
	t, err := task.Current()
	if err != nil {
		return exitWrong, err
	}
	switch role {
	case "sleep": // milliseconds
		time.Sleep(time.Duration(n) * time.Millisecond)
		return 0, nil
	case "step": // barriers
		return m.step(ctx, t, n)
	case "flaky": // failures before it succeeds
		time.Sleep(pace)
		if m.number < n {
			return exitFlaky, nil
		}
		return 0, nil
	case "lines":
		return 0, m.lines(n)
	case "train": // steps
		return m.train(ctx, t, n)
	case "serve": // processors
		return m.serve(ctx, t, n)
	}
	return exitWrong, fmt.Errorf("there is no role %q", role)
}

// step meets all members n times. The barrier returns the round, so that a restarted member can
// catch up.
func (m *member) step(ctx context.Context, t *task.Task, n int) (int, error) {
	for {
		m.note("arrive")
		r, err := t.Barrier(ctx, "step")
		var broken *task.BarrierError
		switch {
		case errors.As(err, &broken):
			m.note("broken %s", strconv.Quote(broken.Message))
			return exitFlaky, nil
		case err != nil:
			return exitWrong, err
		}
		m.note("pass %d", r.Round)
		if r.Round >= n {
			return 0, nil
		}
		time.Sleep(pace)
	}
}

// lines writes numbered lines, and records how many writes have returned.
func (m *member) lines(n int) error {
	for i := 1; i <= n; i++ {
		line := []byte(fmt.Sprintf("%s %d %d\n", m.task, m.number, i))
		for len(line) > 0 {
			written, err := os.Stdout.Write(line)
			line = line[written:]
			if errors.Is(err, unix.ENOSPC) {
				time.Sleep(pace) // the disk for the logs is temporarily full
				continue
			}
			if err != nil {
				return err
			}
		}
		if i%1000 == 0 || i == n {
			m.note("lines %d", i)
		}
		if i%200 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// serve serves the function that the drill's coordinator schedules.
func (m *member) serve(ctx context.Context, t *task.Task, slots int) (int, error) {
	functions := task.NewFunctions()
	if err := functions.Register("square", func(_ context.Context, n int) (int, error) { return n * n, nil }); err != nil {
		return exitWrong, err
	}
	if err := t.Serve(ctx, functions, task.Slots(slots)); err != nil {
		return exitWrong, err
	}
	return 0, nil
}

func bootNanos() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}
