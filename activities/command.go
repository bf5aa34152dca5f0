package activities

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// command returns the command for process number n of the task.
func (l *taskLease) command(n int) (supervisor.Command, error) {
	t, ok := l.plan.task(l.key.Task)
	if !ok {
		return supervisor.Command{}, fmt.Errorf("the run has no task %s", l.key.Task)
	}
	cluster := l.plan.clusterFor(t.Name())
	m, err := cluster.Member(t.Name())
	if err == nil {
		l.allowed, err = l.allowedStart(t)
	}
	if err != nil {
		return supervisor.Command{}, err
	}
	n += l.plan.Firsts[l.key.Generation]
	files := l.files(t, n)
	maxRestarts := 0
	if l.plan.Spec.MaxRestarts != nil {
		maxRestarts = *l.plan.Spec.MaxRestarts
	}
	variables, problems := l.checks.variables(l.allowed.Secrets).of(t)
	if len(problems) > 0 {
		return supervisor.Command{}, errors.New(problems[0].String())
	}
	process := taskenv.Process{
		Cluster: cluster, Task: t.Name(),
		WorkflowID: l.key.Run.WorkflowID, RunID: l.key.Run.RunID,
		Restart: l.plan.restartCount(l.key.Generation, n), MaxRestarts: maxRestarts, Generation: l.key.Generation,
		LogDir: files.dir, ResultFile: files.path(tasklog.ResultFile), ErrorFile: files.path(tasklog.ErrorFile),
		TraceFile: files.path(tasklog.TracePrefix),
		Dir:       l.ships.dirOf(l.key.Run, l.plan.Spec, t),
		Env:       variables, Unset: l.plan.Spec.UnsetEnv,
	}
	if process.Socket, err = l.listen(l.plan, l.key, process.Restart, process.LogDir); err != nil {
		return supervisor.Command{}, err
	}
	if hook := l.plan.Spec.PythonStacks; hook == nil || *hook {
		process.PythonHook = l.pythonHook()
	}
	stop, err := l.plan.stopOf(t.Name(), "", nil)
	if err != nil {
		return supervisor.Command{}, err
	}
	cpus, err := l.resources(t, &process)
	if err != nil {
		return supervisor.Command{}, err
	}
	user := l.plan.User
	env, err := taskenv.Environ(user.Environ(l.environ()), process)
	if err != nil {
		return supervisor.Command{}, err
	}
	dir := process.Dir
	looksIn := env
	if user != nil {
		// The policy checked the program found with the host worker's environment.
		looksIn = slices.Concat(l.environ(), envList(variables))
	}
	program := lookPath(t.Command[0], dir, looksIn)
	if l.Guard.HasPolicy() {
		// Resolve the same way as for the policy, because a link may have changed since.
		program, dir = inRealDir(program), resolved(dir)
	}
	args := t.Command
	if slices.Contains(process.Cluster.Profiles, spec.EnvMPI) {
		if program, args, err = asRank(program, args); err != nil {
			return supervisor.Command{}, err
		}
	}
	seen := t
	seen.Index, seen.Rank = m.Index, m.Rank
	streams := l.plan.Spec.StreamsOf(seen, m.LocalRank)
	return supervisor.Command{
		Path: program, Args: args, Env: env, Dir: dir, User: user,
		LogDir: files.dir, LogRoot: l.plan.keptIn(), LogMode: l.plan.logMode(),
		Stdout:     l.output(streams, spec.StdOut, files.path(tasklog.StdoutFile)),
		Stderr:     l.output(streams, spec.StdErr, files.path(tasklog.StderrFile)),
		StdoutEnd:  files.path(tasklog.StdoutFile),
		StderrEnd:  files.path(tasklog.StderrFile),
		Foreground: t.Name() == l.Foreground,
		Stdin:      t.Name() == l.Stdin,
		CPUs:       cpus,
		Limits:     limitsOf(l.plan.Spec, t),
		LogQuota:   l.plan.Spec.Logs.QuotaBytes(),
		LogDrop:    l.plan.Spec.Logs.OnFull == spec.OnFullDrop,
		Stop:       stop,
		StopGroup:  l.plan.Spec.StopScopeOf(t) == spec.StopScopeGroup,
		OOMFails:   l.plan.Spec.OnOOM == spec.OnOOMFail,
		KillAt:     l.plan.killAt(),
	}, nil
}

// asRank returns the command that starts a program as an MPI rank.
func asRank(program string, args []string) (string, []string, error) {
	self, err := ownProgram()
	if err != nil {
		return "", nil, err
	}
	return self, append([]string{self, "task", "mpi", "--", program}, args[1:]...), nil
}

// ownProgram returns the path of the clusterrun executable. If the executable was replaced since
// this program started, the new one also works.
func ownProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program clusterrun: %w", err)
	}
	return strings.TrimSuffix(self, " (deleted)"), nil
}

// restartCount returns the restart count of a task's process n. If the restart scope is "group",
// all tasks of a generation get the same count.
func (p *plan) restartCount(generation, n int) int {
	if p.Spec.RestartScope == spec.RestartScopeGroup {
		return generation
	}
	return n
}

// processFiles locates a process's files.
type processFiles struct{ dir string }

// path returns the path of a process file, or an empty string if the run does not keep files.
func (f processFiles) path(name string) string {
	if f.dir == "" {
		return ""
	}
	return filepath.Join(f.dir, name)
}

// files returns the files of a task's process n, and removes the oldest attempts.
func (l *taskLease) files(t spec.Task, n int) processFiles {
	runDir := l.plan.runDir()
	if runDir == "" {
		return processFiles{}
	}
	// Prune before the new attempt, so that at most KeepAttempts old attempts and the new one
	// exist.
	err := l.plan.User.Do(func() error { return tasklog.Prune(runDir, t.Rank, tasklog.KeepAttempts) })
	if err != nil {
		l.Log.Warn("logs of old restarts could not be removed", zap.String("task", l.key.String()), zap.Error(err))
	}
	return processFiles{tasklog.ProcessDir(runDir, n, t.Rank)}
}

// output returns a stream's destination: its file, the owner's output if any, or nothing.
func (l *taskLease) output(s spec.Streams, stream spec.Std, file string) string {
	switch {
	case s.File&stream != 0:
		return file
	case s.Console&stream != 0 && l.LogsCopiedTo != "":
		return file
	case s.Console&stream != 0 && l.OwnersOutput:
		return supervisor.OwnersOutput
	}
	return os.DevNull
}

// installHook returns the directory that contains the hook for tasks' Python programs. If the hook
// cannot be written, tasks start without it.
func installHook(c Config) string {
	self, err := ownProgram()
	if err != nil {
		c.Log.Warn("Python programs will not find the clusterrun package automatically", zap.Error(err))
	}
	dir, err := python.InstallHook(cmp.Or(c.HookDir, c.StateDir), self)
	if err != nil {
		c.Log.Warn("stacks will not show lines of Python programs", zap.Error(err))
		return ""
	}
	return dir
}

// variables looks up the values of task variables, including values known only to this host. They
// are read on demand and never stored, so a restarted process gets the current values.
type variables struct {
	host    string
	allowed policy.Secrets
	// base is the host worker's environment, and own is [Config.Env].
	base, own []string
	// known caches the values for callers that look up many tasks.
	known map[spec.Source]answer
}

type answer struct {
	value   string
	problem *spec.Problem
}

func (c *checks) variables(allowed policy.Secrets) variables {
	return variables{c.Name, allowed, c.environ(), c.Env, map[spec.Source]answer{}}
}

// lent contains the secrets that runs may use on a host worker without a policy: the secrets that
// tasks could read themselves.
var lent = (*policy.Policy)(nil).Decide(policy.Request{}).Secrets

// of returns a task's variables, and a problem for each variable without a value on this host.
func (v variables) of(t spec.Task) (map[string]string, []spec.Problem) {
	values := make(map[string]string, len(v.own)+len(t.Env))
	for _, kv := range v.own {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	var problems []spec.Problem
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		variable := t.Env[name]
		if !variable.IsReference() {
			values[name] = variable.Value
			continue
		}
		a, ok := v.known[variable.From]
		if !ok {
			a.value, a.problem = taskenv.Secret(v.base, variable.From, v.allowed)
			v.known[variable.From] = a
		}
		if p := a.problem; p != nil {
			problems = append(problems, spec.Problem{
				Path: "env." + name + "." + p.Path, Remedy: p.Remedy,
				Message: fmt.Sprintf("on host %s: %s", v.host, p.Message),
			})
			continue
		}
		values[name] = a.value
	}
	return values, problems
}
