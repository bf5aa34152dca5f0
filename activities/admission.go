package activities

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// leave is the permission for a run to use this host.
type leave struct {
	signers []string
	as      string // the user of its tasks
	// statement is the ID of the spec, or empty without a policy on this host.
	statement string
}

// sameSpec returns an error if the run's directory, logs and processes on this host belong to a
// different spec, which another user may have written.
func (g *gate) sameSpec(p *plan, l leave) error {
	if !g.Guard.HasPolicy() || p.Statement == l.statement {
		return nil
	}
	why := "this host already has the run, with a different spec or different signers"
	g.refused(p.Run, guard.Entry{Asked: "reserve", Signers: l.signers}, why)
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %s; start it under another ID", g.Name, why), spec.ErrPlacement, nil)
}

// unsignedStatement returns the ID of an unsigned spec. All parts of an elastic run share one ID.
func unsignedStatement(s *spec.RunSpec) string {
	whole := s.AsSigned()
	if whole.IsElastic() && len(whole.Tasks) > 0 {
		whole.Tasks[len(whole.Tasks)-1].Count = nil
	}
	b, err := json.Marshal(whole)
	if err != nil {
		return "" // cannot happen: the spec was decoded from JSON
	}
	sum := sha256.Sum256(b)
	return policy.Unsigned + " " + hex.EncodeToString(sum[:])
}

// admit returns the permission for tasks of a run, or the problems that forbid it. It runs before
// anything is fetched, reserved or started.
func (g *gate) admit(run runkey.Run, in hostapi.ReserveInput, tasks []spec.Task) (l leave, problems []spec.Problem) {
	if g.Guard == nil {
		return l, g.admitNotices(in, tasks, nil)
	}
	signers, statement, err := g.Guard.Signers(signatures.OfRun(run.WorkflowID, in.Spec), in.Spec.Signature, useOf(run))
	if err != nil {
		g.refused(run, guard.Entry{Asked: "reserve"}, err.Error())
		return l, []spec.Problem{{Path: "signature", Message: fmt.Sprintf("host %s: %v", g.Name, err), Remedy: "sign the run again with `clusterrun submit --sign`"}}
	}
	l.signers = signers
	if l.statement = statement; statement == "" && g.Guard.HasPolicy() {
		l.statement = unsignedStatement(in.Spec)
	}
	said := map[string]bool{}
	found := false
	for _, t := range tasks {
		d := g.Guard.Decide(g.requestFor(run, in.Spec, t, signers))
		if d.Allowed && !found {
			l.as, found = d.User, true
		}
		d = sameUser(d, l.as)
		if d.Allowed || said[d.Reason] {
			continue
		}
		said[d.Reason] = true
		g.refused(run, guard.Entry{Asked: "reserve", Signers: signers, Task: t.Name(), Command: t.Command}, d.Reason)
		problems = append(problems, g.denial(t.Name(), signers, d.Reason))
	}
	return l, append(problems, g.admitNotices(in, tasks, signers)...)
}

// sameUser denies a request that the policy allows only as a user other than the run's current
// user. That user owns the run's files and sockets, and a signer who may start processes as one
// user must not use another user's run.
func sameUser(d policy.Decision, as string) policy.Decision {
	if !d.Allowed || d.User == as {
		return d
	}
	name := func(user string) string { return cmp.Or(user, "the host worker") }
	return policy.Decision{Rule: d.Rule, Reason: fmt.Sprintf("rule %d runs it as %s, but on this host the run's user is %s", d.Rule, name(d.User), name(as))}
}

// denial returns the problem that explains why the policy does not allow a task.
func (g *gate) denial(task string, signers []string, why string) spec.Problem {
	return spec.Problem{
		Path: "policy", Message: fmt.Sprintf("%s, which %s, on host %s: %s", task, by(signers), g.Name, why), Remedy: remedyOfDenial(signers),
	}
}

func by(signers []string) string {
	if len(signers) == 0 {
		return "is unsigned"
	}
	return "was signed by " + strings.Join(signers, ", ")
}

func remedyOfDenial(signers []string) string {
	if len(signers) == 0 {
		return "sign it with `clusterrun submit --sign`, or ask the host's owner"
	}
	return "ask the host's owner"
}

// useOf returns a run's use of a signature.
func useOf(run runkey.Run) guard.Use {
	return guard.Use{Namespace: run.Namespace, Workflow: run.WorkflowID, Run: run.RunID}
}

// admitAdded returns the signers of a task to add to a plan, or an error if the task must not be
// added. It is called before addTask replaces the existing task.
func (g *gate) admitAdded(p *plan, in hostapi.RunTaskInput) ([]string, error) {
	t := *in.Added
	if before, ok := p.Added[t.Name()]; ok && before.Launch == in.Launch && reflect.DeepEqual(before.Task, t) {
		return before.Signers, nil // another attempt, whose process may still be alive
	}
	signers, err := g.admitStart(p, t, &in)
	if err == nil && g.Guard != nil {
		if d := sameUser(g.Guard.Decide(g.requestFor(p.Run, p.Spec, t, signers)), p.As); !d.Allowed {
			err = errors.New(d.Reason)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCommand, g.denied(p, guard.Entry{Asked: "start", Signers: signers, Task: t.Name(), Command: t.Command}, err.Error()))
	}
	return signers, nil
}

// admitStart returns the signers of a task that is missing from the spec or differs from it. A task
// identical to its spec is signed with the spec. If launch is nil, nothing is started yet.
func (g *gate) admitStart(p *plan, t spec.Task, launch *hostapi.RunTaskInput) ([]string, error) {
	if g.Guard == nil {
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
		return nil, errors.New("the task differs from the one in the signed request")
	}
	var use guard.Use
	if launch != nil {
		use = useOf(p.Run)
		use.Generation, use.Launch = launch.Generation, launch.Launch
	}
	signers, _, err := g.Guard.Signers(signatures.OfStart(p.Run.WorkflowID, *t.Signed), t.Signed.Signature, use)
	return signers, err
}

// sameTask reports whether two tasks start the same process.
func sameTask(a, b spec.Task) bool {
	return a.Address == b.Address && a.Dir == b.Dir && slices.Equal(a.Command, b.Command) && maps.Equal(a.Env, b.Env)
}

var errCluster = temporal.NewNonRetryableApplicationError("the cluster differs from the run's spec", spec.ErrPlacement, nil)

// checkCluster returns an error if a cluster differs from the run's cluster. A workflow adds only
// hosts, addresses and ports to the spec.
func (g *gate) checkCluster(p *plan, c hostapi.Cluster) error {
	if !g.Guard.HasPolicy() {
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
	if c.MasterAddr != spec.HostPart(c.Members[0].Address) {
		return errCluster
	}
	return nil
}

// forgetSignatures removes records of signatures that are no longer needed.
func (g *gate) forgetSignatures() {
	err := g.Guard.Forget(func(u guard.Use) bool {
		_, err := g.plans.get(runkey.Run{Namespace: u.Namespace, WorkflowID: u.Workflow, RunID: u.Run})
		return err == nil
	})
	if err != nil {
		g.Log.Warn("records of expired signatures could not be removed", zap.Error(err))
	}
}
