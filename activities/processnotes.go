package activities

import (
	"errors"
	"io/fs"
	"strings"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// noteStart records how a process was started, in its output directory.
func (l *taskLease) noteStart(c supervisor.Command) {
	t, ok := l.plan.task(l.key.Task)
	if c.LogDir == "" || !ok {
		return
	}
	user := l.plan.User
	base := l.environ()
	lent := valuesLent(t.Env, base, c.Env)
	err := user.Do(func() error {
		s := tasklog.Start{Version: spec.Version, Dir: c.Dir, Files: tasklog.FilesOf(c.Path, t.Command[1:], c.Dir)}
		s.Variables(c.Env, taskenv.Clean(user.Environ(base)), func(value string) bool { return lent[value] })
		return s.Write(c.LogDir)
	})
	// If the directory is missing, the process could not be started, and its exit explains why.
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.Log.Warn("could not record the start of a process", zap.String("task", l.key.String()), zap.Error(err))
	}
}

// valuesLent returns the values that a process receives by reference. The host worker's environment
// may contain the same values under other names, which the process inherits.
func valuesLent(variables spec.Env, environments ...[]string) map[string]bool {
	names := map[string]bool{}
	for name, v := range variables {
		if v.IsReference() {
			names[name], names[v.From.FromEnv] = true, true
		}
	}
	values := map[string]bool{}
	for _, env := range environments {
		for _, kv := range env {
			if name, value, _ := strings.Cut(kv, "="); names[name] && value != "" {
				values[value] = true
			}
		}
	}
	return values
}

// LastExits returns how the tasks' last processes ended, by task, from the journal of an owner's
// supervisor that has exited. It omits tasks without an exit in the journal.
func LastExits(stateDir string) (map[string]spec.Exit, error) {
	processes, err := supervisor.Journalled(stateDir)
	if err != nil {
		return nil, err
	}
	exits := map[string]spec.Exit{}
	for _, p := range processes { // a task's last process comes last
		delete(exits, p.Key.Task)
		if _, err := (*plan)(nil).userOf(p); err != nil && p.Exit != nil {
			exits[p.Key.Task] = unread(exitOf(p, true), err)
		} else if p.Exit != nil {
			exits[p.Key.Task], _ = describeExit("", p, true)
		}
	}
	return exits, nil
}
