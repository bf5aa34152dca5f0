package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

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

// checkSpec returns what is wrong with a spec, before its tasks are listed: whoever can write
// to the namespace can ask for anything, so nothing that a workflow has checked counts.
func (h *Host) checkSpec(s *spec.RunSpec) []spec.Problem {
	var invalid *spec.InvalidSpecError
	if !errors.As(s.Validate(), &invalid) {
		return nil
	}
	return slices.DeleteFunc(invalid.Problems, func(p spec.Problem) bool {
		if h.Guard == nil {
			return p.Path != "tasks" // but their number is bounded for all
		}
		// Of an elastic run this may be a part, whose tasks are too few for its hosts.
		return s.IsElastic() && p.Path == "hosts.count"
	})
}

// leave is what a host knows of a run whose tasks it takes.
type leave struct {
	signers []string
	as      string // whom its tasks run as
	// statement is the ID of its spec; empty: there is no policy.
	statement string
}

// sameSpec returns why a run must not go on with a spec: its directory, its log and its user's
// processes here are of another one, which others may have written.
func (h *Host) sameSpec(p *plan, l leave) error {
	if !h.Guard.HasPolicy() || p.Statement == l.statement {
		return nil
	}
	why := "the run has another spec here, or other signers"
	h.refused(p.Run, guard.Entry{Asked: "reserve", Signers: l.signers}, why)
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %s; start it under another ID", h.Name, why), spec.ErrPlacement, nil)
}

// unsignedStatement returns the ID of a spec that nobody has signed. A part of an elastic run
// has that of the whole.
func unsignedStatement(s *spec.RunSpec) string {
	whole := s.AsSigned()
	if whole.IsElastic() && len(whole.Tasks) > 0 {
		whole.Tasks[len(whole.Tasks)-1].Count = nil
	}
	b, err := json.Marshal(whole)
	if err != nil {
		return "" // it has come as JSON
	}
	sum := sha256.Sum256(b)
	return policy.Unsigned + " " + hex.EncodeToString(sum[:])
}

// admit returns by whose leave this host takes tasks of a run, and why it does not: before
// anything is fetched, reserved or started.
func (h *Host) admit(run supervisor.RunKey, in ReserveInput, tasks []spec.Task) (l leave, problems []spec.Problem) {
	if h.Guard == nil {
		return l, nil
	}
	signers, statement, err := h.Guard.Signers(signatures.OfRun(run.WorkflowID, in.Spec), in.Spec.Signature, useOf(run))
	if err != nil {
		h.refused(run, guard.Entry{Asked: "reserve"}, err.Error())
		return l, []spec.Problem{{Path: "signature", Message: fmt.Sprintf("host %s: %v", h.Name, err), Remedy: "sign the run again with `clusterrun submit --sign`"}}
	}
	l.signers = signers
	if l.statement = statement; statement == "" && h.Guard.HasPolicy() {
		l.statement = unsignedStatement(in.Spec)
	}
	said := map[string]bool{}
	found := false
	for _, t := range tasks {
		d := h.Guard.Decide(h.requestFor(run, in.Spec, t, signers))
		if d.Allowed && !found {
			l.as, found = d.User, true
		}
		d = sameUser(d, l.as)
		if d.Allowed || said[d.Reason] {
			continue
		}
		said[d.Reason] = true
		h.refused(run, guard.Entry{Asked: "reserve", Signers: signers, Task: t.Name(), Command: t.Command}, d.Reason)
		problems = append(problems, spec.Problem{
			Path: "policy", Message: fmt.Sprintf("%s, which %s, on host %s: %s", t.Name(), by(signers), h.Name, d.Reason), Remedy: remedyOfDenial(signers),
		})
	}
	return l, problems
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

func (h *Host) requestFor(run supervisor.RunKey, s *spec.RunSpec, t spec.Task, signers []string) policy.Request {
	return PolicyRequest(s, t, h.shipsTo(run, s), signers)
}

// goesUp returns which path of a task has an element .., which is not what it seems to be
// where it follows a link; empty: none has.
func goesUp(s *spec.RunSpec, t spec.Task) string {
	paths := []struct{ field, path string }{{"dir", t.Dir}, {"logs.dir", s.Logs.Dir}}
	if len(t.Command) > 0 {
		paths = append(paths, struct{ field, path string }{"command[0]", t.Command[0]})
	}
	for _, p := range paths {
		if slices.Contains(strings.Split(p.path, "/"), "..") {
			return fmt.Sprintf("%s %s has .., which a policy does not follow; write the path without", p.field, p.path)
		}
	}
	return ""
}

// inRealDir returns the path of a program without links in the way to it. It may be one itself.
func inRealDir(program string) string {
	program = filepath.Clean(program)
	return filepath.Join(resolved(filepath.Dir(program)), filepath.Base(program))
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
	signers, _, err := h.Guard.Signers(signatures.OfStart(p.Run.WorkflowID, *t.Signed), t.Signed.Signature, use)
	return signers, err
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
func (h *Host) checkRequest(ctx context.Context, p *plan, in ControlInput) error {
	ask, known := asks[in.Op]
	if h.Guard == nil || !known {
		return nil
	}
	names := in.Tasks
	if len(names) == 0 {
		names = slices.Concat(p.Tasks, slices.Collect(maps.Keys(p.Added)))
		if ask != "" {
			// It reaches every process of the run, also of a task that the plan has lost.
			all, err := h.Supervisor.Processes(ctx, p.Run)
			if err != nil {
				return err
			}
			names = append(names, tasksOf(notEnded(all.Processes))...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
	}
	var entries []guard.Entry
	for _, name := range names {
		t, ok := p.task(name)
		e := guard.Entry{What: string(in.Op), Task: name, Run: p.Run.WorkflowID, Execution: p.Run.RunID, Signers: p.signersOf(name)}
		if ask != "" {
			d := h.decide(p, t, ask)
			if !ok && h.Guard.HasPolicy() {
				d = policy.Decision{Reason: fmt.Sprintf("the run has no task %s here", name)}
			}
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
	lifecycle.ControlSeal:      "",
}

// noted writes down what is asked of a run as a whole. The policy is not asked about that.
func (h *Host) noted(run supervisor.RunKey, in ControlInput) {
	err := h.Guard.Log(guard.Entry{What: string(in.Op), Run: run.WorkflowID, Execution: run.RunID})
	if err != nil {
		h.Log.Error("a request is not in the audit log", zap.Error(err), zap.String("run", run.WorkflowID))
	}
}

// notEnded returns those of processes that have not ended.
func notEnded(processes []supervisor.Process) []supervisor.Process {
	return slices.DeleteFunc(slices.Clone(processes), func(q supervisor.Process) bool { return q.Exit != nil })
}

// checkLeft returns why a run has not left this host: a process that the policy let start must
// stay known while it lives.
func (h *Host) checkLeft(ctx context.Context, run supervisor.RunKey, generation int) error {
	if !h.Guard.HasPolicy() {
		return nil
	}
	all, err := h.Supervisor.Processes(ctx, run)
	if err != nil {
		return err
	}
	for _, q := range notEnded(all.Processes) {
		if q.Key.Generation <= generation {
			return temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %s still runs here", h.Name, q.Key.Task), spec.ErrInvalidRequest, nil)
		}
	}
	return nil
}

// mayStop returns what of the signal and the grace that a request names counts for a task.
// A signal is one like any other, and a long grace has a task outlive its stop.
func (h *Host) mayStop(p *plan, task string, in ControlInput) (string, *time.Duration) {
	if !h.Guard.HasPolicy() || in.Signal == "" && in.Grace == nil {
		return in.Signal, in.Grace
	}
	t, ok := p.task(task)
	if ok && h.decide(p, t, policy.AskSignal).Allowed {
		return in.Signal, in.Grace
	}
	if _, most := p.Spec.StopOf(t); in.Grace != nil && *in.Grace > most {
		return "", nil
	}
	return "", in.Grace
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
	if l.Guard != nil {
		l.asked = l.requestFor(l.plan.Run, l.plan.Spec, t, l.plan.signersOf(t.Name()))
	}
	d := sameUser(l.Guard.Decide(l.asked), l.plan.As)
	if !d.Allowed {
		return d, l.denied(l.plan, guard.Entry{Asked: "start", Task: l.key.Task, Command: t.Command, Signers: l.plan.signersOf(l.key.Task)}, d.Reason)
	}
	return d, nil
}

// written writes a start down, of the program that was decided on.
func (l *lease) written(c supervisor.Command) error {
	if l.Guard == nil {
		return nil
	}
	if l.Guard.HasPolicy() {
		ships := l.shipsTo(l.key.Run, l.plan.Spec)
		if got := known(ships, c.Path); got != l.asked.Program {
			return fmt.Errorf("the policy was asked about %s, and the program is %s", l.asked.Program, got)
		}
		if got := known(ships, c.Dir); got != l.asked.Directories[0] {
			return fmt.Errorf("the policy was asked about the directory %s, and it is %s now", l.asked.Directories[0], got)
		}
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
