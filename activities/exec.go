package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
	"github.com/clusterrun/clusterrun/activities/process/supervisor/remotecommand"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// mostExecs bounds the commands that are executed on a host at the same time.
	mostExecs = 16
	// execWithin is the time for which a permission is good.
	execWithin = 30 * time.Second
)

// AllowExec allows a client to execute a command with a task here. Whether the policy allows the
// command is decided when it is known; see [Host.Exec].
func (h *Host) AllowExec(ctx context.Context, in spec.HostRequest[spec.ExecRequest]) (spec.RequestAnswer, error) {
	refuse := func(err error) (spec.RequestAnswer, error) {
		return spec.RequestAnswer{}, temporal.NewNonRetryableApplicationError(bounded(err.Error()), spec.ErrInvalidRequest, nil)
	}
	p, err := h.planOf(ctx, in.Group)
	if err != nil {
		return spec.RequestAnswer{}, err
	}
	if p == nil {
		return refuse(fmt.Errorf("host %s does not know this run any longer", h.Name))
	}
	if _, err := h.execs.processOf(ctx, p, in.Request.Task); err != nil {
		return refuse(err)
	}
	service := h.Files
	if service == nil {
		if service, err = h.ServeHere(); err == nil && service == nil {
			err = errAway
		}
		if err != nil {
			return spec.RequestAnswer{}, err
		}
	}
	return spec.RequestAnswer{Tasks: []string{in.Request.Task}, Through: service.Through, Service: service.DescribeExec(p.Run, hostservice.Exec{
		Task: in.Request.Task, Generation: p.Generation, Key: in.Request.Key, Until: h.now().Add(execWithin),
	})}, nil
}

// processOf returns the living process of a task.
func (x *execs) processOf(ctx context.Context, p *plan, task string) (supervisor.Process, error) {
	all, err := x.Supervisor.Processes(ctx, p.Run)
	if err != nil {
		return supervisor.Process{}, err
	}
	for _, q := range notEnded(all.Processes) {
		if q.Key.Generation == p.Generation && q.Key.Task == task && q.PID > 0 {
			return q, nil
		}
	}
	return supervisor.Process{}, fmt.Errorf("%s has no process on host %s now; try again after its restart", task, x.Name)
}

// Exec executes a command with a task, for a client of the host service.
func (h *Host) Exec(ctx context.Context, run runkey.Run, e hostservice.Exec, s *remotecommand.Session) remotecommand.End {
	x := h.execs
	select {
	case x.room <- struct{}{}:
		defer func() { <-x.room }()
	default:
		return remotecommand.End{Code: exitcode.Machinery, Why: fmt.Sprintf("host %s executes %d commands already, and allows no more; end one of them", h.Name, mostExecs)}
	}
	c, err := x.command(ctx, run, e, s)
	if err != nil {
		end := remotecommand.End{Code: exitcode.Machinery, Why: err.Error()}
		if failed := (*fault.Start)(nil); errors.As(err, &failed) {
			end.Code = failed.Code
		}
		return end
	}
	return x.executor.Run(ctx, s, c)
}

// command returns the command that a client wants, once the policy has allowed it and the audit
// log has it.
func (x *execs) command(ctx context.Context, run runkey.Run, e hostservice.Exec, s *remotecommand.Session) (c remotecommand.Command, err error) {
	p, err := x.plans.get(run)
	if err == nil && (p.Released || p.Generation != e.Generation) {
		err = errNoPlan
	}
	if err != nil {
		return c, err
	}
	q, err := x.processOf(ctx, p, e.Task)
	if err != nil {
		return c, err
	}
	t, ok := p.task(e.Task)
	if !ok {
		return c, fmt.Errorf("the run has no task %s", e.Task)
	}
	env, err := environOf(q)
	if err != nil {
		return c, err
	}
	c.Dir, c.User, c.Task = x.ships.dirOf(p.Run, p.Spec, t), p.User, q.PID
	limits := limitsOf(p.Spec, t)
	c.Limits, c.Limited = limits.Rlimits, limits.Controllers() != nil
	term := s.Term
	if s.Terminal == nil {
		term = ""
	}
	c.Env = taskenv.ForCommand(env, c.Dir, term)
	c.Args = s.Command
	if len(c.Args) == 0 {
		c.Args = []string{x.shellOf(p, env)}
	}
	err = p.User.Do(func() error {
		c.Path = lookPath(c.Args[0], c.Dir, env)
		if !strings.Contains(c.Args[0], "/") && errors.Is(executable(c.Path), errNotFound) {
			return &fault.Start{Text: fmt.Sprintf("%s: command not found on host %s", c.Args[0], x.Name), Code: exitcode.NotFound}
		}
		return supervisor.CheckDir(c.Dir)
	})
	if err != nil {
		return c, err
	}
	t.Command, t.Signed = c.Args, nil
	return c, x.admit(p, t, e, s, &c)
}

// admit asks the policy about a command, as for a start of the task with it, and notes it in the audit log.
func (x *execs) admit(p *plan, t spec.Task, e hostservice.Exec, s *remotecommand.Session, c *remotecommand.Command) error {
	g := x.gate
	if g.Guard == nil {
		return nil
	}
	entry := guard.Entry{What: "exec", Run: p.Run.WorkflowID, Execution: p.Run.RunID, Task: t.Name(), Command: c.Args, Dir: c.Dir}
	var d policy.Decision
	var err error
	entry.Signers, _, err = g.Guard.Signers(signatures.OfExec(p.Run.WorkflowID, t.Name(), e.Key, s.Command), s.Signature, guard.Use{})
	if err == nil {
		r := g.requestFor(p.Run, p.Spec, t, entry.Signers)
		r.Ask = policy.AskExec
		d = sameUser(g.Guard.Decide(r), p.As)
		if g.Guard.HasPolicy() {
			c.Path, c.Dir = inRealDir(c.Path), resolved(c.Dir)
			if ships := g.ships.shipsTo(p.Run, p.Spec); d.Allowed && (known(ships, c.Path) != r.Program || known(ships, c.Dir) != r.Directories[0]) {
				d = policy.Decision{Reason: fmt.Sprintf("the task finds %s where the host worker finds %s", c.Path, r.Program)}
			}
		}
		if !d.Allowed {
			err = errors.New(d.Reason)
		}
	}
	if err != nil {
		entry.Asked = entry.What
		return g.denied(p, entry, err.Error())
	}
	entry.User, entry.Rule = d.User, d.Rule
	return g.Guard.Log(entry)
}

// shellOf returns the shell of the user of a run.
func (x *execs) shellOf(p *plan, env []string) string {
	shell := lookup(env, "SHELL")
	if p.User != nil {
		shell = p.User.Shell
	}
	const usual = "/bin/sh"
	if shell = cmp.Or(shell, usual); executable(shell) != nil {
		return usual
	}
	return shell
}

// environOf returns the environment with which a process was started.
func environOf(q supervisor.Process) ([]string, error) {
	env, err := proc.Environ(q.PID)
	if err != nil {
		return nil, fmt.Errorf("the variables of %s cannot be read: %s", q.Key.Task, fault.Reason(err))
	}
	if lookup(env, supervisor.CookieVar) == "" {
		return nil, fmt.Errorf("the variables of %s cannot be read: the program has overwritten them, as setproctitle does; start it with SPT_NOENV=1", q.Key.Task)
	}
	return env, nil
}
