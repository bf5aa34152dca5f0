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

	"github.com/clusterrun/clusterrun/activities/system/build"
)

// ProgramName is the name of the program's file.
const ProgramName = "clusterrun-supervisor"

// versionFlag makes the program print its build.
const versionFlag = "--version"

// settingsVar carries [Settings] to the program.
const settingsVar = "CLUSTERRUN_SUPERVISOR"

// Settings configure a supervisor. They travel as JSON in its environment.
type Settings struct {
	// StateDir is its state directory. Instance and Volatile are as in [supervisor.StateOptions].
	StateDir string `json:"state_dir"`
	Instance string `json:"instance,omitempty"`
	Volatile bool   `json:"volatile,omitempty"`
	// Side has the arguments of the side, after the name of this program, and SideEnv variables
	// for it, as NAME=VALUE.
	Side    []string `json:"side"`
	SideEnv []string `json:"side_env,omitempty"`
	// OrphanGrace and LongestGrace are as in [supervisor.Config].
	OrphanGrace  time.Duration `json:"orphan_grace,omitempty"`
	LongestGrace time.Duration `json:"longest_grace,omitempty"`
	// IdleExit is the time without a run after which the supervisor ends; see [Want]. 0 means
	// that it does not end.
	IdleExit time.Duration `json:"idle_exit,omitempty"`
	// Service is set for a host worker of its own, which ends by a signal.
	Service *Service `json:"service,omitempty"`
	// Debug logs more.
	Debug bool `json:"debug,omitempty"`

	// Files are the numbers of the files that it inherits; 0 means none.
	Files descriptors `json:"files"`
	// Build is the build of the program that starts it, and Starter the file of that.
	Build   string `json:"build"`
	Starter string `json:"starter"`
}

// Service is a host worker that is a service, or serves in the background.
type Service struct {
	// Program is the file of the program to which its side is upgraded on request, Check the
	// arguments with which that program says whether it can be, and Version the current version.
	Program string   `json:"program"`
	Check   []string `json:"check"`
	Version string   `json:"version"`
	// Record is a file that is there with Text while its queues are served, and Ready the number
	// of a file that gets Text once they are. Both may be missing.
	Record string `json:"record,omitempty"`
	Text   string `json:"text,omitempty"`
	Ready  int    `json:"ready,omitempty"`
}

// Files can be inherited by a supervisor. Each may be nil.
type Files struct {
	// Lifeline is a pipe that ends when the owner is gone, Side a socket to a side in
	// another process, and Link one to the owner. Without Side the supervisor starts a side.
	Lifeline, Side, Link *os.File
	// Stdin, Stdout and Stderr are for tasks; see [supervisor.Owner].
	Stdin, Stdout, Stderr *os.File
}

type descriptors struct {
	Program  int `json:"program"` // of the side
	Lifeline int `json:"lifeline,omitempty"`
	Side     int `json:"side,omitempty"`
	Link     int `json:"link,omitempty"`
	Stdin    int `json:"stdin,omitempty"`
	Stdout   int `json:"stdout,omitempty"`
	Stderr   int `json:"stderr,omitempty"`
}

// MissingError is returned if the program is not where it must be.
type MissingError struct {
	Beside string // this program
	Err    error
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s, the supervisor of processes, is not next to %s (%s); "+
		"install both from one release into the same directory, or build both with `make build`", ProgramName, e.Beside, e.Err)
}

func (e *MissingError) Unwrap() error { return e.Err }

// Program returns the path of the program, which is in the directory of this program, and that of this program.
func Program() (path, self string, err error) {
	if self, err = os.Executable(); err != nil {
		return "", "", fmt.Errorf("find our own executable: %w", err)
	}
	self = strings.TrimSuffix(self, " (deleted)") // another may have its name by now
	path = filepath.Join(filepath.Dir(self), ProgramName)
	if err := unix.Access(path, unix.X_OK); err != nil {
		return "", "", &MissingError{self, err}
	}
	return path, self, nil
}

// Command returns the command that executes the supervisor as a child, and the file that it
// inherits in addition, which the caller closes after the start.
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

// Exec makes this process the supervisor. It returns only if that fails.
func (s Settings) Exec() error {
	path, own, err := s.prepare()
	if err != nil {
		return err
	}
	defer own.Close()
	s.Files = descriptors{Program: int(own.Fd())}
	for _, fd := range []int{s.Files.Program, s.Service.Ready} {
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

// prepare finds the program and opens our own, which stays the same when the file is replaced.
func (s *Settings) prepare() (path string, own *os.File, err error) {
	if path, s.Starter, err = Program(); err != nil {
		return "", nil, err
	}
	s.Build = build.ID()
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("open our own executable: %w", err)
	}
	return path, os.NewFile(uintptr(fd), s.Starter), nil
}

// CheckProgram returns why this program could not start a supervisor.
func CheckProgram(ctx context.Context) error {
	path, self, err := Program()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, path, versionFlag).Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w; install it again", path, versionFlag, err)
	}
	return sameBuild(path, strings.TrimSpace(string(out)), self, build.ID())
}

// checkBuild returns an error unless the program that has started us is of our build.
func (s Settings) checkBuild() error {
	path, err := os.Executable()
	if err != nil {
		path = ProgramName
	}
	return sameBuild(path, build.ID(), s.Starter, s.Build)
}

// sameBuild returns an error unless a supervisor and the program that starts it are of one build.
func sameBuild(path, its, starter, starters string) error {
	if its == starters {
		return nil
	}
	return fmt.Errorf("%s is of another build (%s) than %s (%s); install both from one release, or build both with `make build`", path, its, starter, starters)
}
