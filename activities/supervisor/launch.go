package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launch opens the files of a process and forks it.
func (s *supervisor) launch(p *process, c Command) error {
	limit := p.task.run.files
	limit <- struct{}{}
	var files []int
	err := c.User.Do(func() (err error) {
		files, err = s.openFiles(c)
		return err
	})
	<-limit
	if err != nil {
		return err
	}
	defer closeAll(files)
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
	if c.LogQuota > 0 {
		if err := s.watchOutput(p, c, files[1:]); err != nil {
			return err
		}
	}
	dir, dirFD := s.enterCgroup(p)
	if err := s.limitCgroup(dir, c.Limits); err != nil {
		if dirFD >= 0 {
			_ = unix.Close(dirFD)
			removeCgroup(dir)
		}
		return &startError{err.Error(), exitNotExecutable}
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
		stat, _ := readStat(pid)
		s.mu.Lock()
		defer s.mu.Unlock()
		p.PID, p.ticks, p.cgroup = pid, stat.ticks, cgroup
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

// openFiles opens stdin, stdout and stderr. They are closed on exec, since the fork
// duplicates them to 0, 1 and 2.
func (s *supervisor) openFiles(c Command) (fds []int, err error) {
	defer func() {
		if err != nil {
			closeAll(fds)
		}
	}()
	if err := checkDir(c.Dir); err != nil {
		return nil, err
	}
	logs, err := makeLogDir(c)
	if err != nil {
		return nil, err
	}
	defer logs.close()
	if c.Foreground {
		return s.owner.standard()
	}
	open := func(path string, flags int) error {
		fd, err := logs.open(path, flags)
		if err != nil {
			return &startError{fmt.Sprintf("opening %s: %s", path, reasonOf(err)), exitNotExecutable}
		}
		fds = append(fds, fd)
		return nil
	}
	if c.Stdin == "" {
		err = open(os.DevNull, unix.O_RDONLY)
	} else {
		var fd int
		if fd, err = s.owner.input(c.Stdin); err == nil {
			fds = append(fds, fd)
		}
	}
	if err != nil {
		return fds, err
	}
	for i, path := range []string{c.Stdout, c.Stderr} {
		switch path {
		case "":
			path = os.DevNull
		case OwnersOutput:
			fd, err := duplicate([]*os.File{s.owner.Stdout, s.owner.Stderr}[i])
			if err != nil {
				return fds, err
			}
			fds = append(fds, fd)
			continue
		}
		if err := open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT); err != nil {
			return fds, err
		}
	}
	return fds, nil
}
