package supervise

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/remedy"
)

// ProgramName is the program's file name.
const ProgramName = "clusterrun-supervisor"

// versionFlag makes the program print its build.
const versionFlag = "--version"

// settingsVar carries [Settings] to the program.
const settingsVar = "CLUSTERRUN_SUPERVISOR"

// Settings configure a supervisor. They are passed as JSON in its environment.
type Settings struct {
	// StateDir is the state directory. Instance and Volatile are as in [supervisor.StateOptions].
	StateDir string `json:"state_dir"`
	Instance string `json:"instance,omitempty"`
	Volatile bool   `json:"volatile,omitempty"`
	// SoleRun is as in [supervisor.Config].
	SoleRun bool `json:"sole_run,omitempty"`
	// Side lists the side's arguments after the program's name, and SideEnv its variables, as
	// NAME=VALUE.
	Side    []string `json:"side"`
	SideEnv []string `json:"side_env,omitempty"`
	// SidePID is the process with the other end of [Files.Side].
	SidePID int `json:"side_pid,omitempty"`
	// OrphanGrace and LongestGrace are as in [supervisor.Config].
	OrphanGrace  time.Duration `json:"orphan_grace,omitempty"`
	LongestGrace time.Duration `json:"longest_grace,omitempty"`
	// Service is set for an independent host worker, which runs until a signal.
	Service *Service `json:"service,omitempty"`
	// Debug increases what is logged.
	Debug bool `json:"debug,omitempty"`

	// Files are the numbers of inherited files; 0 means none.
	Files descriptors `json:"files"`
	// Build is the starting program's build, and Starter its file.
	Build   string `json:"build"`
	Starter string `json:"starter"`
}

// Service is a host worker that runs as a service.
type Service struct {
	// Program is the program file that becomes the side on an upgrade. Version is the current
	// version.
	Program string `json:"program"`
	Version string `json:"version"`
}

// Files can be inherited by a supervisor. Each may be nil.
type Files struct {
	// Lifeline is a pipe that closes when the owner is gone. Side is a socket to a side in another
	// process, and Link a socket to the owner. If Side is nil, the supervisor starts a side.
	Lifeline, Side, Link *os.File
	// Ready is a pipe that is written to when a side first serves.
	Ready *os.File
	// Stdin, Stdout and Stderr are the files for tasks; see [supervisor.Owner].
	Stdin, Stdout, Stderr *os.File
}

type descriptors struct {
	Program  int `json:"program"` // of the side
	Lifeline int `json:"lifeline,omitempty"`
	Side     int `json:"side,omitempty"`
	Link     int `json:"link,omitempty"`
	Ready    int `json:"ready,omitempty"`
	Stdin    int `json:"stdin,omitempty"`
	Stdout   int `json:"stdout,omitempty"`
	Stderr   int `json:"stderr,omitempty"`
}

// MissingError reports that the supervisor program is missing.
type MissingError struct {
	Beside string // this program
	Err    error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s, the process supervisor, is not next to %s (%s)", ProgramName, e.Beside, e.Err)
}

func (e *MissingError) Unwrap() error { return e.Err }

// Program returns the paths of the supervisor program and of this program, which are in the same
// directory.
func Program() (path, self string, err error) {
	if self, err = os.Executable(); err != nil {
		return "", "", fmt.Errorf("find our own executable: %w", err)
	}
	self = strings.TrimSuffix(self, " (deleted)") // another file may now have its name
	path = filepath.Join(filepath.Dir(self), ProgramName)
	if err := unix.Access(path, unix.X_OK); err != nil {
		return "", "", remedy.With(&MissingError{self, err}, "install both from one release into the same directory, or build both with `make build`")
	}
	return path, self, nil
}

// Command returns the command that runs the supervisor as a child, and a file that it also
// inherits, which the caller closes after the start.
func (s Settings) Command(f Files) (*exec.Cmd, *os.File, error) {
	path, own, err := s.prepare()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(path)
	s.Files = descriptors{}
	const first = 3
	for _, pass := range []struct {
		file   *os.File
		number *int
	}{
		{own, &s.Files.Program},
		{f.Lifeline, &s.Files.Lifeline},
		{f.Side, &s.Files.Side},
		{f.Link, &s.Files.Link},
		{f.Ready, &s.Files.Ready},
		{f.Stdin, &s.Files.Stdin},
		{f.Stdout, &s.Files.Stdout},
		{f.Stderr, &s.Files.Stderr},
	} {
		if pass.file != nil {
			*pass.number = first + len(cmd.ExtraFiles)
			cmd.ExtraFiles = append(cmd.ExtraFiles, pass.file)
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		own.Close()
		return nil, nil, err
	}
	cmd.Env = append(os.Environ(), settingsVar+"="+string(text))
	return cmd, own, nil
}

// Exec turns this process into the supervisor. ready numbers the file Ready in [Files], or is 0.
// Exec returns only on failure.
func (s Settings) Exec(ready int) error {
	path, own, err := s.prepare()
	if err != nil {
		return err
	}
	defer own.Close()
	s.Files = descriptors{Program: int(own.Fd()), Ready: ready}
	for _, fd := range []int{s.Files.Program, s.Files.Ready} {
		if fd == 0 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("pass on file %d: %w", fd, err)
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	err = syscall.Exec(path, []string{path}, append(os.Environ(), settingsVar+"="+string(text)))
	return fmt.Errorf("execute %s: %w", path, err)
}

// prepare finds the supervisor program, and opens the file of this program, so that a replacement
// of the file does not matter.
func (s *Settings) prepare() (path string, own *os.File, err error) {
	if path, s.Starter, err = Program(); err != nil {
		return "", nil, err
	}
	s.Build = BuildID()
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open our own executable: %w", err)
	}
	return path, os.NewFile(uintptr(fd), s.Starter), nil
}

// CheckProgram returns an error if this program could not start a supervisor.
func CheckProgram(ctx context.Context) error {
	path, self, err := Program()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, path, versionFlag).Output()
	if err != nil {
		return remedy.With(fmt.Errorf("%s %s: %w", path, versionFlag, err), "reinstall it")
	}
	return sameBuild(path, strings.TrimSpace(string(out)), self, BuildID())
}

// checkBuild returns an error unless the program that started us is from the same build.
func (s Settings) checkBuild() error {
	path, err := os.Executable()
	if err != nil {
		path = ProgramName
	}
	return sameBuild(path, BuildID(), s.Starter, s.Build)
}

// sameBuild returns an error unless a supervisor and the program that starts it are from the same
// build.
func sameBuild(path, its, starter, starters string) error {
	if its == starters {
		return nil
	}
	return remedy.With(fmt.Errorf("%s is from another build (%s) than %s (%s)", path, its, starter, starters), "install both from one release, or build both with `make build`")
}
