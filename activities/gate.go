package activities

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/guard"
	"github.com/clusterrun/clusterrun/activities/policy"
	"github.com/clusterrun/clusterrun/activities/signatures"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskenv"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// admit returns who has signed the run, whom its tasks run as, and why this host does not
// take tasks of it: before anything is fetched, reserved or started. Whoever can write to the
// namespace can ask for anything, under any run ID, so nothing that a workflow has checked
// counts.
func (h *Host) admit(run supervisor.RunKey, in ReserveInput, tasks []spec.Task) (signers []string, as string, problems []spec.Problem) {
	if h.Guard == nil {
		return nil, "", nil
	}
	var invalid *spec.InvalidSpecError
	if errors.As(in.Spec.Validate(), &invalid) {
		problems = slices.DeleteFunc(invalid.Problems, func(p spec.Problem) bool {
			// Of an elastic run this may be a part, whose tasks are too few for its hosts.
			return in.Spec.IsElastic() && p.Path == "hosts.count"
		})
		if len(problems) > 0 {
			return nil, "", problems
		}
	}
	signers, err := h.Guard.Signers(signatures.OfRun(run.WorkflowID, in.Spec), in.Spec.Signature, useOf(run))
	if err != nil {
		h.refused(run, guard.Entry{Asked: "reserve"}, err.Error())
		return nil, "", []spec.Problem{{Path: "signature", Message: fmt.Sprintf("host %s: %v", h.Name, err), Remedy: "sign the run again with `clusterrun submit --sign`"}}
	}
	said := map[string]bool{}
	found := false
	for _, t := range tasks {
		d := h.Guard.Decide(h.requestFor(run, in.Spec, t, signers))
		if d.Allowed && !found {
			as, found = d.User, true
		}
		d = sameUser(d, as)
		if d.Allowed || said[d.Reason] {
			continue
		}
		said[d.Reason] = true
		h.refused(run, guard.Entry{Asked: "reserve", Signers: signers, Task: t.Name(), Command: t.Command}, d.Reason)
		problems = append(problems, spec.Problem{
			Path: "policy", Message: fmt.Sprintf("%s, which %s, on host %s: %s", t.Name(), by(signers), h.Name, d.Reason), Remedy: remedyOfDenial(signers),
		})
	}
	return signers, as, problems
}

// sameUser denies what is allowed as another user than the one the run has here: its files
// and sockets are that user's, and whoever may start something as one user must not by a run
// of another's.
func sameUser(d policy.Decision, as string) policy.Decision {
	if !d.Allowed || d.User == as {
		return d
	}
	name := func(user string) string { return cmp.Or(user, "the host worker") }
	return policy.Decision{Rule: d.Rule, Reason: fmt.Sprintf("rule %d has it run as %s, and the run runs as %s here", d.Rule, name(d.User), name(as))}
}

func by(signers []string) string {
	if len(signers) == 0 {
		return "nobody has signed"
	}
	return "was signed by " + strings.Join(signers, ", ")
}

func remedyOfDenial(signers []string) string {
	if len(signers) == 0 {
		return "sign it with `clusterrun submit --sign`, or ask the owner of the host"
	}
	return "ask the owner of the host"
}

// useOf is the use of a signature by a run.
func useOf(run supervisor.RunKey) guard.Use {
	return guard.Use{Namespace: run.Namespace, Workflow: run.WorkflowID, Run: run.RunID}
}

// PolicyRequest is what the policy is asked about the process of a task. ships is the directory
// of what the run ships.
func PolicyRequest(s *spec.RunSpec, t spec.Task, ships string, signers []string) policy.Request {
	dir := dirIn(ships, s, t)
	r := policy.Request{Signers: signers, Directories: []string{known(ships, resolved(dir))}, Env: slices.Sorted(maps.Keys(t.Env))}
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
		r.Program = known(ships, filepath.Clean(lookPath(t.Command[0], dir, base)))
	}
	if s.Logs.Dir != "" && s.Logs.Dir != spec.NullDir {
		r.Directories = append(r.Directories, resolved(s.Logs.Dir))
	}
	return r
}

func (h *Host) requestFor(run supervisor.RunKey, s *spec.RunSpec, t spec.Task, signers []string) policy.Request {
	return PolicyRequest(s, t, h.shipsTo(run, s), signers)
}

// resolved returns a directory without links in the way, as far as it is there.
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

// known returns a path as a policy knows it: what the run ships is at one place on each host.
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

// admitAdded returns who has signed a task that is to be added to a plan, and why it must not
// be: before that, since it would take the place of the one that is there.
func (h *Host) admitAdded(p *plan, in RunTaskInput) ([]string, error) {
	t := *in.Added
	if before, ok := p.Added[t.Name()]; ok && before.Launch == in.Launch && reflect.DeepEqual(before.Task, t) {
		return before.Signers, nil // another attempt, which may find the process alive
	}
	signers, err := h.admitStart(p, t, &in)
	if err == nil && h.Guard != nil {
		if d := sameUser(h.Guard.Decide(h.requestFor(p.Run, p.Spec, t, signers)), p.As); !d.Allowed {
			err = errors.New(d.Reason)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCommand, h.denied(p, guard.Entry{Asked: "start", Signers: signers, Task: t.Name(), Command: t.Command}, err.Error()))
	}
	return signers, nil
}

// admitStart returns who has signed a task that is outside the spec, or differs from it. A
// task that is as in the spec is signed with it. With launch nil nothing is started yet.
func (h *Host) admitStart(p *plan, t spec.Task, launch *RunTaskInput) ([]string, error) {
	if h.Guard == nil {
		return nil, nil
	}
	if own, ok := p.Spec.Task(t.Name()); ok && t.Signed == nil && reflect.DeepEqual(own, t) {
		return p.Signers, nil
	}
	if t.Signed == nil {
		return nil, nil
	}
	made, err := p.Spec.AddedTask(*t.Signed)
	made.Rank = t.Rank
	if err != nil || made.Name() != t.Name() || !sameTask(made, t) {
		return nil, errors.New("the task is not the one that the signed request makes of the spec")
	}
	var use guard.Use
	if launch != nil {
		use = useOf(p.Run)
		use.Generation, use.Launch = launch.Generation, launch.Launch
	}
	return h.Guard.Signers(signatures.OfStart(p.Run.WorkflowID, *t.Signed), t.Signed.Signature, use)
}

// sameTask reports whether two tasks start the same process.
func sameTask(a, b spec.Task) bool {
	return a.Address == b.Address && a.Dir == b.Dir && slices.Equal(a.Command, b.Command) && maps.Equal(a.Env, b.Env)
}

// signersOf returns who has signed a task of the run.
func (p *plan) signersOf(task string) []string {
	if a, ok := p.Added[task]; ok {
		return a.Signers
	}
	return p.Signers
}

// decide asks the policy about the process of a task, or what somebody asks of it.
func (h *Host) decide(p *plan, t spec.Task, ask policy.Ask) policy.Decision {
	if h.Guard == nil {
		return h.Guard.Decide(policy.Request{}) // nothing is looked up for that
	}
	r := h.requestFor(p.Run, p.Spec, t, p.signersOf(t.Name()))
	r.Ask = ask
	return sameUser(h.Guard.Decide(r), p.As)
}

// denied is the error of what the policy does not allow.
func (h *Host) denied(p *plan, e guard.Entry, why string) error {
	h.refused(p.Run, e, why)
	return fmt.Errorf("the policy of host %s does not allow it: %s", h.Name, why)
}

// refused notes a refusal. That it cannot be written changes nothing.
func (h *Host) refused(run supervisor.RunKey, e guard.Entry, why string) {
	e.What, e.Why, e.Run, e.Execution = "refused", why, run.WorkflowID, run.RunID
	if err := h.Guard.Log(e); err != nil {
		h.Log.Error("a refusal is not in the audit log", zap.Error(err), zap.String("run", run.WorkflowID), zap.String("why", why))
	}
}

// checkRequest holds a request to the tasks of a run against the policy, and writes it down.
// What ends processes is done in any case: whoever can ask for it can also end the run.
func (h *Host) checkRequest(p *plan, in ControlInput) error {
	ask, known := asks[in.Op]
	if h.Guard == nil || !known {
		return nil
	}
	names := in.Tasks
	if len(names) == 0 {
		names = slices.Concat(p.Tasks, slices.Sorted(maps.Keys(p.Added)))
	}
	var entries []guard.Entry
	for _, name := range names {
		t, ok := p.task(name)
		if !ok {
			continue
		}
		e := guard.Entry{What: string(in.Op), Task: name, Run: p.Run.WorkflowID, Execution: p.Run.RunID, Signers: p.signersOf(name)}
		if ask != "" {
			d := h.decide(p, t, ask)
			if !d.Allowed {
				e.Asked = string(in.Op)
				return temporal.NewNonRetryableApplicationError(bounded(h.denied(p, e, d.Reason).Error()), spec.ErrInvalidRequest, nil)
			}
			e.Rule, e.User = d.Rule, d.User
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		if err := h.Guard.Log(e); err != nil {
			if ask != "" {
				return err
			}
			h.Log.Error("a request is not in the audit log", zap.Error(err), zap.String("task", e.Task))
		}
	}
	return nil
}

// asks are the requests that are written down, and what the policy is asked about them.
var asks = map[lifecycle.ControlOp]policy.Ask{
	lifecycle.ControlRestart:   policy.AskRestart,
	lifecycle.ControlSignal:    policy.AskSignal,
	lifecycle.ControlStacks:    policy.AskStacks,
	lifecycle.ControlTerminate: "",
	lifecycle.ControlTell:      "",
}

// mayServe returns why the tasks of a run must not be given closures.
func (h *Host) mayServe(run supervisor.RunKey, task string) error {
	if !h.Guard.HasPolicy() {
		return nil
	}
	p, err := h.plans.get(run)
	if err != nil {
		return err
	}
	t, ok := p.task(task)
	if !ok {
		return fmt.Errorf("the run has no task %s", task)
	}
	if d := h.decide(p, t, policy.AskClosures); !d.Allowed {
		return h.denied(p, guard.Entry{Asked: "closures", Task: task, Signers: p.signersOf(task)}, d.Reason)
	}
	return nil
}

// checkCluster returns why a cluster is not that of the run: what a workflow adds to the spec
// are hosts, addresses and ports.
func (h *Host) checkCluster(p *plan, c taskenv.Cluster) error {
	if !h.Guard.HasPolicy() {
		return nil
	}
	tasks := p.Spec.TaskList()
	if len(c.Members) != len(tasks) || c.RPCLayer != p.Spec.RPCLayer || !slices.Equal(c.Profiles, p.Spec.EnvProfiles) {
		return errCluster
	}
	for i, m := range c.Members {
		host, port, err := spec.SplitAddress(m.Address)
		if t := tasks[i]; m.Type != t.Type || m.Index != t.Index || m.Rank != t.Rank || err != nil || host == "" || port == 0 {
			return errCluster
		}
	}
	if c.MasterAddr != HostPart(c.Members[0].Address) {
		return errCluster
	}
	return nil
}

var errCluster = temporal.NewNonRetryableApplicationError("the cluster is not that of the run's spec", spec.ErrPlacement, nil)

// allowedStart is asked at each start of a process, before anything of it is made.
func (l *lease) allowedStart(t spec.Task) (policy.Decision, error) {
	d := l.decide(l.plan, t, "")
	if !d.Allowed {
		return d, l.denied(l.plan, guard.Entry{Asked: "start", Task: l.key.Task, Command: t.Command, Signers: l.plan.signersOf(l.key.Task)}, d.Reason)
	}
	return d, nil
}

// written writes a start down, of the program that was decided on.
func (l *lease) written(c supervisor.Command) error {
	t, ok := l.plan.task(l.key.Task)
	if l.Guard == nil || !ok {
		return nil
	}
	now := l.requestFor(l.key.Run, l.plan.Spec, t, nil)
	if got := known(l.shipsTo(l.key.Run, l.plan.Spec), filepath.Clean(c.Path)); got != now.Program {
		return fmt.Errorf("the policy was asked about %s, and the program is %s", now.Program, got)
	}
	return l.Guard.Log(guard.Entry{
		What: "start", Signers: l.plan.signersOf(l.key.Task), User: l.allowed.User, Rule: l.allowed.Rule,
		Run: l.key.Run.WorkflowID, Execution: l.key.Run.RunID, Task: l.key.Task, Command: c.Args, Dir: c.Dir,
	})
}

// audited notes that a run stops a task.
func (l *lease) audited(reason string) {
	err := l.Guard.Log(guard.Entry{
		What: "stop", Run: l.key.Run.WorkflowID, Execution: l.key.Run.RunID, Task: l.key.Task,
		Signers: l.plan.signersOf(l.key.Task), Why: reason,
	})
	if err != nil {
		l.Log.Error("a stop is not in the audit log", zap.Error(err), zap.String("task", l.key.String()))
	}
}

// forgetSignatures removes what nobody has to know any more of signatures.
func (h *Host) forgetSignatures() {
	err := h.Guard.Forget(func(u guard.Use) bool {
		_, err := h.plans.get(supervisor.RunKey{Namespace: u.Namespace, WorkflowID: u.Workflow, RunID: u.Run})
		return err == nil
	})
	if err != nil {
		h.Log.Warn("notes of signatures stay", zap.Error(err))
	}
}
