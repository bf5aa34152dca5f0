package activities

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// preflight checks the parts of a spec that depend on this host: the working directories, programs,
// variables with values on this host, limits and the log directory. It finds all problems of all
// tasks in one pass, before the first task starts.
func (c *checks) preflight(run runkey.Run, s *spec.RunSpec, user *hostuser.User, tasks []spec.Task) []spec.Problem {
	var problems []spec.Problem
	type wrong struct{ path, what string }
	of := map[wrong]int{} // index of each problem, to count its tasks
	count := map[wrong]int{}
	report := func(task, path, what, remedy string, exitCode int) {
		key := wrong{path, what}
		if count[key]++; count[key] == 1 {
			of[key] = len(problems)
			problems = append(problems, spec.Problem{Path: path, Remedy: remedy, Message: what + " (" + task, ExitCode: exitCode})
		}
	}
	variables, limits := c.variables(lent), map[string][]spec.Problem{} // by type
	envs := make([]map[string]string, len(tasks))
	for i, t := range tasks {
		env, missing := variables.of(t)
		if _, known := limits[t.Type]; !known {
			limits[t.Type] = c.checkLimits(s, t)
		}
		for _, p := range slices.Concat(missing, limits[t.Type]) {
			report(t.Name(), p.Path, p.Message, p.Remedy, 0)
		}
		envs[i] = env
	}
	root := s.Logs.Dir
	err := user.Do(func() error {
		for i, t := range tasks {
			c.checkProgram(t, c.ships.dirOf(run, s, t), envs[i], report)
		}
		if root != "" && root != spec.NullDir && c.LogsCopiedTo == "" {
			return usableLogDir(root)
		}
		return nil
	})
	for key, i := range of {
		if more := count[key] - 1; more > 0 {
			problems[i].Message += fmt.Sprintf(" and %d more", more)
		}
		problems[i].Message += ")"
	}
	if err == nil && len(problems) == 0 {
		err = c.makeRunDir(run, s, user)
	}
	if err != nil {
		remedy := "name a directory to which the host worker can write"
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			remedy = makeRoom
		}
		problems = append(problems, spec.Problem{Path: "logs.dir", Message: fmt.Sprintf("%s on host %s", err, c.Name), Remedy: remedy})
	}
	return problems
}

// makeRoom is the remedy for a full disk.
const makeRoom = "free some space there, or name another directory"

// checkProgram reports why a task could not be started in a directory.
func (c *checks) checkProgram(t spec.Task, dir string, env map[string]string, report func(task, path, what, remedy string, exitCode int)) {
	if info, err := os.Stat(dir); err != nil {
		report(t.Name(), "dir", fmt.Sprintf("working directory %s on host %s: %s", dir, c.Name, reasonOf(err)),
			"create the directory on that host, or name another one", 0)
		return
	} else if !info.IsDir() {
		report(t.Name(), "dir", fmt.Sprintf("%s on host %s is not a directory", dir, c.Name), "name a directory", 0)
		return
	} else if err := hostuser.Access(dir, unix.X_OK); err != nil {
		report(t.Name(), "dir", fmt.Sprintf("working directory %s on host %s: %s", dir, c.Name, err), "name a directory that the tasks can enter", 0)
		return
	}
	path := lookPath(t.Command[0], dir, slices.Concat(c.environ(), envList(env)))
	if err := executable(path); err != nil {
		exitCode := exitcode.NotExecutable
		if errors.Is(err, errNotFound) {
			exitCode = exitcode.NotFound
		}
		report(t.Name(), "command[0]", fmt.Sprintf("%s on host %s: %s", t.Command[0], c.Name, err), remedyOf(t.Command, err), exitCode)
	}
}

// checkStart runs the preflight for a task added to a live run.
func (c *checks) checkStart(p *plan, t spec.Task) error {
	signers, err := c.gate.admitStart(p, t, nil)
	if err != nil {
		c.gate.refused(p.Run, guard.Entry{Asked: "start", Task: t.Name(), Command: t.Command}, err.Error())
		return c.cannotStart(spec.Problem{Path: "signature", Message: fmt.Sprintf("host %s: %v", c.Name, err), Remedy: "sign the request again with --sign"})
	}
	if d := sameUser(c.Guard.Decide(c.gate.requestFor(p.Run, p.Spec, t, signers)), p.As); !d.Allowed {
		c.gate.refused(p.Run, guard.Entry{Asked: "start", Signers: signers, Task: t.Name(), Command: t.Command}, d.Reason)
		return c.cannotStart(c.gate.denial(t.Name(), signers, d.Reason))
	}
	problems := c.preflight(p.Run, p.Spec, p.User, []spec.Task{t})
	if len(problems) == 0 {
		more, err := c.checkResourcesOf(p, t)
		if err != nil {
			return err
		}
		problems = more
	}
	return c.cannotStart(problems...)
}

// checkAgain runs the preflight for tasks before they are restarted.
func (c *checks) checkAgain(p *plan, names []string) error {
	var tasks []spec.Task
	for _, name := range names {
		if t, ok := p.task(name); ok {
			tasks = append(tasks, t)
		}
	}
	return c.cannotStart(c.preflight(p.Run, p.Spec, p.User, tasks)...)
}

// cannotStart returns a non-retryable error with the problems, or nil without problems.
func (c *checks) cannotStart(problems ...spec.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(
		(&spec.InvalidRequestError{Problems: problems}).Error(), spec.ErrInvalidRequest, nil)
}

// usableLogDir creates a missing log directory, and checks that it is writable.
func usableLogDir(dir string) error {
	if err := tasklog.MakeDir(dir); err != nil {
		return err
	}
	if err := hostuser.Access(dir, unix.W_OK); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// lookPath finds a program as a shell would with the given directory and environment; os/exec would
// use our own PATH. If the program is not found, lookPath returns a path in the directory, so that
// starting it fails with a clear error.
func lookPath(name, dir string, env []string) string {
	if strings.Contains(name, "/") {
		return absolute(name, dir)
	}
	for _, d := range filepath.SplitList(lookup(env, "PATH")) {
		if path := absolute(filepath.Join(d, name), dir); executable(path) == nil {
			return path
		}
	}
	return filepath.Join(dir, name)
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func lookup(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

func envList(env map[string]string) []string {
	var out []string
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return out
}

// Why a file cannot be executed.
var (
	errNotFound      = errors.New("command not found")
	errIsDirectory   = errors.New("is a directory")
	errNoPermission  = errors.New("not executable")
	errNoInterpreter = errors.New("does not exist")
	errCarriage      = errors.New("its first line ends with a carriage return, as in Windows files")
)

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errNotFound
	case info.IsDir():
		return errIsDirectory
	case info.Mode()&0o111 == 0 || hostuser.Access(path, unix.X_OK) != nil:
		return errNoPermission
	}
	interpreter, carriage := fault.Interpreter(path)
	if carriage {
		return errCarriage
	}
	if filepath.IsAbs(interpreter) {
		if _, err := os.Stat(interpreter); err != nil {
			return fmt.Errorf("its interpreter %s %w", interpreter, errNoInterpreter)
		}
	}
	return nil
}

func remedyOf(command []string, err error) string {
	program := command[0]
	switch interpreter := fault.InterpreterFor(program); {
	case errors.Is(err, errCarriage):
		return `remove the carriage returns: sed -i 's/\r$//' ` + program
	case errors.Is(err, errNotFound) && isForShell(command):
		return "that requires a shell: sh -c '" + strings.ReplaceAll(strings.Join(command, " "), "'", `'\''`) + "'"
	case errors.Is(err, errNotFound):
		return "write its path, or name a program that is in the host's PATH"
	case interpreter != "":
		return fmt.Sprintf("run it with its interpreter: %s %s", interpreter, program)
	case errors.Is(err, errNoPermission):
		return "run chmod +x, or start it with its interpreter, such as `python3 PROGRAM`"
	case errors.Is(err, errNoInterpreter):
		return "install it, or name another interpreter, in the program's first line or in front of the program"
	}
	return "write its path, or name a program that is in the host's PATH"
}

// isForShell reports whether a command that was not found looks like a shell command line: it is a
// single word, or its program exists only as a shell builtin.
func isForShell(command []string) bool {
	return len(command) == 1 && strings.ContainsAny(command[0], " \t\n|&;<>()$`") || slices.Contains(builtins, command[0])
}

// builtins are shell commands that do not exist as programs.
var builtins = []string{
	".", ":", "alias", "bg", "cd", "declare", "eval", "exec", "exit", "export", "fg", "hash", "jobs", "local", "popd", "pushd",
	"read", "readonly", "return", "set", "shift", "shopt", "source", "times", "trap", "type", "typeset", "ulimit", "umask",
	"unalias", "unset", "wait",
}

// reasonOf returns an error's message without the path, which the caller has already named.
func reasonOf(err error) string {
	return reasonIn(err).Error()
}
