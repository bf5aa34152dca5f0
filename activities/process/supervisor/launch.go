package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/cgroup"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/output"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// launcher starts programs and copies their output.
type launcher struct {
	table  *table
	log    *slog.Logger
	fork   *fork.Forker
	groups *cgroups
	outer  string        // cookies of a supervisor that runs us
	bound  time.Duration // see [Config.KillBound]
	owner  owner
	relays [2]output.Outputs // to the owner's stdout and stderr; see relayOf
	// started is called with each newly forked process, while the table is locked, and excess with
	// each that wrote too much.
	started, excess func(*process)
}

// launch opens a process's files and forks it.
func (l *launcher) launch(p *process, c Command) error {
	limit := p.task.run.files
	limit <- struct{}{}
	defer func() { <-limit }()
	var files []int
	var streams []*output.Stream
	err := c.User.Do(func() (err error) {
		files, streams, err = l.openFiles(c)
		return err
	})
	if err != nil {
		return err
	}
	defer closeAll(files)
	if err := l.copyOutput(p, c, streams); err != nil {
		return err
	}
	attr := &syscall.ProcAttr{
		Dir:   c.Dir,
		Env:   withCookie(c.Env, p.cookie, l.outer),
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		// The child changes its user before it enters the directory, and before it sets the
		// parent-death signal, which the change would clear.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: c.User.Credential()},
	}
	if c.Foreground {
		l.owner.lendTerminal(attr.Sys)
	}
	dir, dirFD := l.groups.enter(p)
	if err := l.groups.limit(dir, c.Limits); err != nil {
		if dirFD >= 0 {
			_ = unix.Close(dirFD)
			cgroup.Remove(dir)
		}
		return fault.NotStarted(err.Error())
	}
	if dirFD >= 0 {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, dirFD
		err = l.forkTask(p, dir, c, attr)
		_ = unix.Close(dirFD)
		if err == nil {
			return nil
		}
		cgroup.Remove(dir)
		if !mayBeCgroup(err) || c.Limits.Controllers() != nil {
			return fault.Exec(c.Path, c.Args, c.Env, err)
		}
		// The kernel has refused either the cgroup or the program. Retry without the cgroup.
		attr.Sys.UseCgroupFD = false
		if err = l.forkTask(p, "", c, attr); err == nil {
			l.groups.refused.Store(true)
			l.log.Info("Processes do not get their own cgroups on this host.")
		}
	} else {
		err = l.forkTask(p, "", c, attr)
	}
	if err != nil {
		return fault.Exec(c.Path, c.Args, c.Env, err)
	}
	return nil
}

func (l *launcher) forkTask(p *process, cgroup string, c Command, attr *syscall.ProcAttr) error {
	oomBefore := l.groups.oomCount()
	how := fork.How{CPUs: c.CPUs, Login: c.User != nil, Limits: c.Limits.Rlimits}
	return l.fork.StartAs(how, c.Path, c.Args, attr, func(pid int) {
		// A child has a stat file until it is reaped.
		stat, _ := proc.ReadStat(pid)
		l.table.mu.Lock()
		defer l.table.mu.Unlock()
		p.PID, p.ticks, p.cgroup, p.oomBefore = pid, stat.Ticks, cgroup, oomBefore
		p.sampled.at = time.Now()
		p.Started = p.sampled.at.UTC()
		p.phase = running
		l.table.living[pid] = p
		l.started(p)
	})
}

func mayBeCgroup(err error) bool {
	all := []error{unix.EACCES, unix.EPERM, unix.ENOSYS, unix.EINVAL, unix.EBUSY, unix.EOPNOTSUPP, unix.ENODEV, unix.ENOENT}
	return slices.ContainsFunc(all, func(e error) bool { return errors.Is(err, e) })
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// openFiles opens a process's stdin, stdout and stderr. They are closed on exec, because the fork
// duplicates them to 0, 1 and 2. Output to files goes through pipes, which must be copied.
func (l *launcher) openFiles(c Command) (fds []int, streams []*output.Stream, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
			output.CloseStreams(streams)
		}
	}()
	if err := CheckDir(c.Dir); err != nil {
		return nil, nil, err
	}
	logs, err := c.files().Make()
	if err != nil {
		return nil, nil, err
	}
	defer logs.Close()
	if c.Foreground {
		return l.owner.foreground(c)
	}
	stdin, err := l.openStdin(c)
	if err != nil {
		return nil, nil, err
	}
	fds = append(fds, stdin)
	for i, path := range []string{c.Stdout, c.Stderr} {
		var fd int
		var copied *output.Stream
		if path == OwnersOutput {
			if i == 1 && c.Stdout == OwnersOutput && l.owner.oneOutput() && len(streams) > 0 {
				// A single pipe preserves the order of both outputs.
				fd, err = unix.FcntlInt(uintptr(fds[1]), unix.F_DUPFD_CLOEXEC, 0) //nolint:gosec // a descriptor
				streams[0].KeepEnd(placeOf(c, c.StderrEnd))
			} else {
				fd, copied, err = l.owner.relayed(i, placeOf(c, []string{c.StdoutEnd, c.StderrEnd}[i]), false)
			}
		} else if fd, err = openAt(logs, cmp.Or(path, os.DevNull), output.Appending); err == nil {
			fd, copied, err = output.Through(fd, path)
		}
		if err != nil {
			return fds, streams, err
		}
		fds = append(fds, fd)
		if copied != nil {
			streams = append(streams, copied)
		}
	}
	return fds, streams, nil
}

func (l *launcher) openStdin(c Command) (int, error) {
	if c.Stdin {
		return lent(l.owner.Stdin)
	}
	return openAt(output.Dir{}, os.DevNull, unix.O_RDONLY)
}

// openAt opens a process's file. An error is suitable for the process's exit.
func openAt(dir output.Dir, path string, flags int) (int, error) {
	fd, err := dir.Open(path, flags)
	if err != nil {
		return -1, fault.Failed("opening "+path, err)
	}
	return fd, nil
}

// CheckDir returns an error for an unusable working directory. The kernel's errors do not show
// whether the program or the directory is at fault.
func CheckDir(dir string) error {
	if dir == "" {
		return nil
	}
	wrong := func(why string) error {
		return fault.NotStarted(fmt.Sprintf("working directory %s: %s", dir, why))
	}
	if info, err := os.Stat(dir); err != nil {
		return wrong(fault.Reason(err))
	} else if !info.IsDir() {
		return wrong("not a directory")
	}
	if err := hostuser.Access(dir, unix.X_OK); err != nil {
		return wrong(fault.Reason(err))
	}
	return nil
}

// files returns where the process's files are created.
func (c Command) files() output.Files {
	return output.Files{User: c.User, Dir: c.LogDir, Root: c.LogRoot, Mode: c.LogMode}
}

func placeOf(c Command, path string) output.Place { return output.Place{Path: path, Files: c.files()} }
