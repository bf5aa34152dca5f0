package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// launch opens the files of a process and forks it.
func (s *supervisor) launch(p *process, c Command) error {
	limit := p.task.run.files
	limit <- struct{}{}
	var files []int
	var streams []*stream
	err := c.User.Do(func() (err error) {
		files, streams, err = s.openFiles(c)
		return err
	})
	<-limit
	if err != nil {
		return err
	}
	defer closeAll(files)
	if err := s.copyOutput(p, c, streams); err != nil {
		return err
	}
	attr := &syscall.ProcAttr{
		Dir:   c.Dir,
		Env:   withCookie(c.Env, p.cookie, s.outer),
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		// The user changes before the parent-death signal is set, which a change would clear,
		// and before the directory is entered.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: c.User.Credential()},
	}
	if c.Foreground {
		s.owner.lendTerminal(attr.Sys)
	}
	dir, dirFD := s.enterCgroup(p)
	if err := s.limitCgroup(dir, c.Limits); err != nil {
		if dirFD >= 0 {
			_ = unix.Close(dirFD)
			removeCgroup(dir)
		}
		return &startError{err.Error(), exitcode.NotExecutable}
	}
	if dirFD >= 0 {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, dirFD
		err = s.forkTask(p, dir, c, attr)
		_ = unix.Close(dirFD)
		if err == nil {
			return nil
		}
		removeCgroup(dir)
		if !mayBeCgroup(err) || c.Limits.Controllers() != nil {
			return execError(c, err)
		}
		// Either the cgroup or the program was refused. Try without the cgroup.
		attr.Sys.UseCgroupFD = false
		if err = s.forkTask(p, "", c, attr); err == nil {
			s.mu.Lock()
			s.noCgroup = true
			s.mu.Unlock()
			s.log.Info("Processes get no cgroups of their own here.")
		}
	} else {
		err = s.forkTask(p, "", c, attr)
	}
	if err != nil {
		return execError(c, err)
	}
	return nil
}

func (s *supervisor) forkTask(p *process, cgroup string, c Command, attr *syscall.ProcAttr) error {
	how := forking{cpus: c.CPUs, login: c.User != nil, limits: c.Limits.Rlimits}
	return s.fork.forkIn(how, c.Path, c.Args, attr, func(pid int) {
		// A child has a stat file until it is reaped.
		stat, _ := proc.ReadStat(pid)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.PID, p.ticks, p.cgroup = pid, stat.Ticks, cgroup
		p.sampled.at = time.Now()
		p.Started = p.sampled.at.UTC()
		p.phase = running
		s.living[pid] = p
		s.applyStop(p)
		s.watch(p)
		s.needGuard()
	})
}

func mayBeCgroup(err error) bool {
	for _, e := range []error{unix.EACCES, unix.EPERM, unix.ENOSYS, unix.EINVAL, unix.EBUSY, unix.EOPNOTSUPP, unix.ENODEV, unix.ENOENT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// enterCgroup creates the cgroup of a process and opens it; -1 if it gets none.
func (s *supervisor) enterCgroup(p *process) (string, int) {
	s.mu.Lock()
	no := s.noCgroup
	s.mu.Unlock()
	if s.cgroup == "" || no {
		return "", -1
	}
	dir := filepath.Join(s.cgroup, cgroupName(p.task.run.hash, p.Key, p.Number))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", -1 // an existing one may contain something unkillable
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = os.Remove(dir)
		return "", -1
	}
	return dir, fd
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// openFiles opens stdin, stdout and stderr of a process. They are closed on exec, since the
// fork duplicates them to 0, 1 and 2. Those that go to files are pipes, which must be copied.
func (s *supervisor) openFiles(c Command) (fds []int, streams []*stream, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
			closeStreams(streams)
		}
	}()
	if err := checkDir(c.Dir); err != nil {
		return nil, nil, err
	}
	logs, err := makeLogDir(c)
	if err != nil {
		return nil, nil, err
	}
	defer logs.close()
	if c.Foreground {
		return s.owner.foreground(c)
	}
	stdin, err := s.openStdin(c)
	if err != nil {
		return nil, nil, err
	}
	fds = append(fds, stdin)
	for i, path := range []string{c.Stdout, c.Stderr} {
		var fd int
		var copied *stream
		if path == OwnersOutput {
			if i == 1 && c.Stdout == OwnersOutput && s.owner.oneOutput() && len(streams) > 0 {
				// One pipe keeps the order of the two.
				fd, err = unix.FcntlInt(uintptr(fds[1]), unix.F_DUPFD_CLOEXEC, 0) //nolint:gosec // a descriptor
				streams[0].place = placeOf(c, c.StderrEnd)
			} else {
				fd, copied, err = s.owner.relayed(i, placeOf(c, []string{c.StdoutEnd, c.StderrEnd}[i]), false)
			}
		} else if fd, err = logs.openAt(cmp.Or(path, os.DevNull), appending); err == nil {
			fd, copied, err = throughPipe(fd, placeOf(c, path))
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

func (s *supervisor) openStdin(c Command) (int, error) {
	if c.Stdin == "" {
		return logDir{}.openAt(os.DevNull, unix.O_RDONLY)
	}
	return s.owner.input(c.Stdin)
}

// openAt is like open, with an error for the exit of the process.
func (l logDir) openAt(path string, flags int) (int, error) {
	fd, err := l.open(path, flags)
	if err != nil {
		return -1, &startError{fmt.Sprintf("opening %s: %s", path, reasonOf(err)), exitcode.NotExecutable}
	}
	return fd, nil
}

// throughPipe returns the write end of a pipe to a regular file, and the stream to be copied.
// Anything else than a regular file, such as /dev/null, is returned itself. It owns fd.
func throughPipe(fd int, at place) (int, *stream, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fd, nil, nil //nolint:nilerr // it can be written to all the same
	}
	r, w, err := newPipe()
	if err != nil {
		_ = unix.Close(fd)
		return -1, nil, &startError{"making a pipe for its output: " + reasonOf(err), exitcode.NotExecutable}
	}
	file := os.NewFile(uintptr(fd), at.path) //nolint:gosec // a descriptor
	return w, &stream{pipe: r, file: file, place: at, dev: st.Dev, ino: st.Ino}, nil
}
