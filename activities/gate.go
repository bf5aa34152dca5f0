package activities

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (p *plan) signersOf(task string) []string {
	if a, ok := p.Added[task]; ok {
		return a.Signers
	}
	return p.Signers
}

// decide consults the policy about a task's process, or about a request to it.
func (g *gate) decide(p *plan, t spec.Task, ask policy.Ask) policy.Decision {
	if g.Guard == nil {
		return g.Guard.Decide(policy.Request{}) // skips the lookups of requestFor
	}
	r := g.requestFor(p.Run, p.Spec, t, p.signersOf(t.Name()))
	r.Ask = ask
	return sameUser(g.Guard.Decide(r), p.As)
}

// denied logs a policy refusal and returns the error for it.
func (g *gate) denied(p *plan, e guard.Entry, why string) error {
	g.refused(p.Run, e, why)
	return fmt.Errorf("the policy of host %s does not allow it: %s", g.Name, why)
}

// refused logs a refusal. The refusal stands even if it cannot be logged.
func (g *gate) refused(run runkey.Run, e guard.Entry, why string) {
	e.What, e.Why, e.Run, e.Execution = "refused", why, run.WorkflowID, run.RunID
	if err := g.Guard.Log(e); err != nil {
		g.Log.Error("could not write a refusal to the audit log", zap.Error(err), zap.String("run", run.WorkflowID), zap.String("why", why))
	}
}

// allowedStart consults the policy at each process start, before anything is created for it.
func (l *taskLease) allowedStart(t spec.Task) (policy.Decision, error) {
	if l.Guard != nil {
		l.asked = l.gate.requestFor(l.plan.Run, l.plan.Spec, t, l.plan.signersOf(t.Name()))
	}
	d := sameUser(l.Guard.Decide(l.asked), l.plan.As)
	if !d.Allowed {
		return d, l.gate.denied(l.plan, guard.Entry{Asked: "start", Task: l.key.Task, Command: t.Command, Signers: l.plan.signersOf(l.key.Task)}, d.Reason)
	}
	return d, nil
}

// written logs a start to the audit log, after checking that the policy allowed this program.
func (l *taskLease) written(c supervisor.Command) error {
	if l.Guard == nil {
		return nil
	}
	if l.Guard.HasPolicy() {
		ships := l.ships.shipsTo(l.key.Run, l.plan.Spec)
		if got := known(ships, c.Path); got != l.asked.Program {
			return fmt.Errorf("the policy was checked for %s, but the program is now %s", l.asked.Program, got)
		}
		if got := known(ships, c.Dir); got != l.asked.Directories[0] {
			return fmt.Errorf("the policy was checked for the directory %s, but it is now %s", l.asked.Directories[0], got)
		}
	}
	return l.Guard.Log(guard.Entry{
		What: "start", Signers: l.plan.signersOf(l.key.Task), User: l.allowed.User, Rule: l.allowed.Rule,
		Run: l.key.Run.WorkflowID, Execution: l.key.Run.RunID, Task: l.key.Task, Command: c.Args, Dir: c.Dir,
	})
}

// audited records in the audit log that a run stops a task.
func (l *taskLease) audited(reason string) {
	err := l.Guard.Log(guard.Entry{
		What: "stop", Run: l.key.Run.WorkflowID, Execution: l.key.Run.RunID, Task: l.key.Task,
		Signers: l.plan.signersOf(l.key.Task), Why: reason,
	})
	if err != nil {
		l.Log.Error("could not write a stop to the audit log", zap.Error(err), zap.String("task", l.key.String()))
	}
}

// PolicyRequest returns the policy request for a task's process. ships is the directory of the
// run's unpacked archive, or empty if the run ships none.
func PolicyRequest(s *spec.RunSpec, t spec.Task, ships string, signers []string) policy.Request {
	dir := dirIn(ships, s, t)
	r := policy.Request{
		Signers: signers, Directories: []string{known(ships, resolved(dir))},
		Env: slices.Sorted(maps.Keys(t.Env)), Problem: goesUp(s, t),
	}
	base := os.Environ()
	for _, name := range r.Env {
		switch v := t.Env[name]; {
		case v.From.FromFile != "":
			r.SecretFiles = append(r.SecretFiles, filepath.Clean(v.From.FromFile))
		case v.From.FromEnv != "":
			r.SecretEnv = append(r.SecretEnv, v.From.FromEnv)
		default:
			base = append(base, name+"="+v.Value)
		}
	}
	if len(t.Command) > 0 {
		r.Program = known(ships, inRealDir(lookPath(t.Command[0], dir, base)))
	}
	if s.Logs.Dir != "" && s.Logs.Dir != spec.NullDir {
		r.Directories = append(r.Directories, resolved(s.Logs.Dir))
	}
	return r
}

func (g *gate) requestFor(run runkey.Run, s *spec.RunSpec, t spec.Task, signers []string) policy.Request {
	return PolicyRequest(s, t, g.ships.shipsTo(run, s), signers)
}

// goesUp returns a problem if a task's path contains a ".." element, which may lead elsewhere if it
// follows a link. Otherwise it returns an empty string.
func goesUp(s *spec.RunSpec, t spec.Task) string {
	paths := []struct{ field, path string }{{"dir", t.Dir}, {"logs.dir", s.Logs.Dir}}
	if len(t.Command) > 0 {
		paths = append(paths, struct{ field, path string }{"command[0]", t.Command[0]})
	}
	for _, p := range paths {
		if slices.Contains(strings.Split(p.path, "/"), "..") {
			return fmt.Sprintf("%s %s contains .., which policies do not allow; write the path without ..", p.field, p.path)
		}
	}
	return ""
}

// inRealDir resolves the links in a program's directory, but not the program itself.
func inRealDir(program string) string {
	program = filepath.Clean(program)
	return filepath.Join(resolved(filepath.Dir(program)), filepath.Base(program))
}

// resolved resolves the links in the existing part of a directory's path.
func resolved(dir string) string {
	dir = filepath.Clean(dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	if parent := filepath.Dir(dir); parent != dir {
		return filepath.Join(resolved(parent), filepath.Base(dir))
	}
	return dir
}

// known returns a path as policies write it, with ship:/ for the directory that the run ships.
func known(ships, path string) string {
	if ships == "" {
		return path
	}
	for _, root := range []string{ships, resolved(ships)} {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return policy.Shipped + strings.TrimPrefix(filepath.Clean("/"+rel), "/")
		}
	}
	return path
}
