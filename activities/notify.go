package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/notices"
	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Variables of a command that receives a notice.
const (
	noticeEvent = "CLUSTERRUN_NOTICE_EVENT"
	noticeText  = "CLUSTERRUN_NOTICE_TEXT"
	noticeRun   = "CLUSTERRUN_RUN"
)

// tellRestartFor is the time for which a host tries to tell the run of a restart.
const tellRestartFor = 10 * time.Minute

// Notify sends a notice about a run. The run may have ended, and this host need not have its plan.
func (h *Host) Notify(ctx context.Context, in hostapi.NotifyInput) (none hostapi.None, err error) {
	run := runkey.Run{Namespace: activity.GetInfo(ctx).Namespace, WorkflowID: in.Notice.Run, RunID: in.Notice.Execution}
	signers, err := h.gate.signersOfNotice(run, in)
	if err != nil {
		return none, h.refusedNotice(run, in.Notification, signers, err.Error())
	}
	to := h.gate.receiver(in.Notification, noticeDir(in.Dir), signers)
	if to.problem != nil {
		return none, h.refusedNotice(run, in.Notification, signers, to.problem.String())
	}
	entry := guard.Entry{
		What: "notify", Signers: signers, User: to.decision.User, Rule: to.decision.Rule,
		Run: run.WorkflowID, Execution: run.RunID, Command: in.Notification.Command,
	}
	if err := h.Guard.Log(entry); err != nil {
		return none, err
	}
	body, err := json.Marshal(in.Notice)
	if err != nil {
		return none, err
	}
	if in.Notification.IsWebhook() {
		err = notices.Post(ctx, to.address, in.Notice.ID, to.secret, body, h.now())
	} else {
		err = h.runNotice(ctx, in, to, body)
	}
	var refused *notices.RefusedError
	var later *notices.LaterError
	switch {
	case errors.As(err, &refused):
		return none, temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrNotify, nil)
	case errors.As(err, &later):
		return none, retryAt(err.Error(), spec.ErrNotify, later.After, nil)
	case err != nil:
		return none, temporal.NewApplicationError(bounded(err.Error()), spec.ErrNotify)
	}
	return none, nil
}

// refusedNotice logs that this host does not send a notice, and returns the error for that.
func (h *Host) refusedNotice(run runkey.Run, n spec.Notification, signers []string, why string) error {
	h.gate.refused(run, guard.Entry{Asked: "notify", Signers: signers, Command: n.Command}, why)
	return temporal.NewNonRetryableApplicationError(bounded(fmt.Sprintf("host %s: %s", h.Name, why)), spec.ErrNotify, nil)
}

// runNotice gives a notice to a command.
func (h *Host) runNotice(ctx context.Context, in hostapi.NotifyInput, to receiver, body []byte) error {
	user, err := h.reservations.userFor(ctx, to.decision.User)
	if err != nil {
		return err
	}
	env := taskenv.Clean(user.Environ(os.Environ()))
	return notices.Command{
		Path: to.program, Args: in.Notification.Command, Dir: noticeDir(in.Dir), User: user, Bound: hostapi.NotifyBound,
		Env: append(env, noticeEvent+"="+string(in.Notice.Event), noticeText+"="+in.Notice.Text, noticeRun+"="+in.Notice.Run),
	}.Run(ctx, body)
}

// noticeDir returns the working directory of a command: the run's, if this host has it.
func noticeDir(dir string) string {
	if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) {
		return dir
	}
	return "/"
}

// receiver is the receiver of notices as this host sees it.
type receiver struct {
	decision policy.Decision
	// address and secret are of a webhook, and program is the file of a command.
	address, secret, program string
	// problem says why this host sends it nothing.
	problem *spec.Problem
}

// receiver asks the policy about a receiver, and finds its program or its secrets.
func (g *gate) receiver(n spec.Notification, dir string, signers []string) receiver {
	to := g.judge(n, dir, signers)
	switch {
	case to.problem != nil:
	case n.IsWebhook():
		to.lookUp(n.Secret, "secret", &to.secret)
	default:
		if err := executable(to.program); err != nil {
			to.problem = &spec.Problem{Path: "command[0]", Message: n.Command[0] + ": " + err.Error(), Remedy: remedyOf(n.Command, err)}
		}
	}
	return to
}

// DecideNotice returns the decision of a policy about a notification of a run. An address that is
// a secret is looked up on this machine.
func DecideNotice(g *guard.Guard, s *spec.RunSpec, n spec.Notification, signers []string) policy.Decision {
	to := (&gate{core: &core{Config: Config{Guard: g}}}).judge(n, noticeDir(s.Dir), signers)
	d := to.decision
	if n.IsWebhook() {
		d.User = "" // no process is started
	}
	if d.Allowed && to.problem != nil {
		return policy.Decision{Reason: to.problem.String()}
	}
	return d
}

// judge asks the policy about a receiver.
func (g *gate) judge(n spec.Notification, dir string, signers []string) (to receiver) {
	request := policy.Request{Signers: signers}
	for _, from := range []spec.Source{n.Webhook.From, n.Secret} {
		if from.FromFile != "" {
			request.SecretFiles = append(request.SecretFiles, filepath.Clean(from.FromFile))
		}
		if from.FromEnv != "" {
			request.SecretEnv = append(request.SecretEnv, from.FromEnv)
		}
	}
	if !n.IsWebhook() {
		to.program = lookPath(n.Command[0], dir, os.Environ())
		if g.Guard.HasPolicy() {
			to.program = inRealDir(to.program)
		}
		request.Program, request.Directories = to.program, []string{resolved(dir)}
		request.Problem = goesUp(&spec.RunSpec{}, spec.Task{Command: n.Command})
		to.decide(g, request)
		return to
	}
	// The address may be a secret, so the policy is first asked about the secrets.
	request.Notice = true
	to.address = n.Webhook.Value
	if !to.decide(g, request) || !to.lookUp(n.Webhook.From, "webhook", &to.address) {
		return to
	}
	if err := spec.CheckWebhook(to.address); err != nil {
		to.problem = &spec.Problem{Path: "webhook", Message: err.Error()}
		return to
	}
	address, _ := url.Parse(to.address) // CheckWebhook has parsed it
	request.Webhook = address.Hostname()
	to.decide(g, request)
	return to
}

// decide asks the policy, and reports whether it allows the request.
func (to *receiver) decide(g *gate, r policy.Request) bool {
	if to.decision = g.Guard.Decide(r); !to.decision.Allowed {
		to.problem = &spec.Problem{Path: "policy", Message: "the notification, which " + by(r.Signers) + ": " + to.decision.Reason, Remedy: remedyOfDenial(r.Signers)}
	}
	return to.decision.Allowed
}

// lookUp sets value to the value of a secret of this host, and reports whether there is one. A
// source that is not given changes nothing.
func (to *receiver) lookUp(from spec.Source, path string, value *string) bool {
	if from == (spec.Source{}) {
		return true
	}
	text, problem := taskenv.Secret(os.Environ(), from, to.decision.Secrets)
	if problem != nil {
		problem.Path = path + "." + problem.Path
		to.problem = problem
		return false
	}
	*value = text
	return true
}

// signersOfNotice returns the signers of the run whose notice is sent. A notification that the
// signed spec does not have is unsigned.
func (g *gate) signersOfNotice(run runkey.Run, in hostapi.NotifyInput) ([]string, error) {
	if in.Spec == nil || !g.Guard.HasPolicy() {
		return nil, nil
	}
	if !slices.ContainsFunc(in.Spec.Notify, func(n spec.Notification) bool { return reflect.DeepEqual(n, in.Notification) }) || in.Dir != in.Spec.Dir {
		return nil, nil
	}
	signers, _, err := g.Guard.Signers(signatures.OfRun(run.WorkflowID, in.Spec), in.Spec.Signature, useOf(run))
	return signers, err
}

// admitNotices returns the problems of the notifications of a run. The host of rank 0 checks them
// before anything is started.
func (g *gate) admitNotices(in hostapi.ReserveInput, tasks []spec.Task, signers []string) (problems []spec.Problem) {
	if !slices.ContainsFunc(tasks, func(t spec.Task) bool { return t.Rank == 0 }) {
		return nil
	}
	for i, n := range in.Spec.Notify {
		if p := g.receiver(n, noticeDir(in.Spec.Dir), signers).problem; p != nil {
			path := fmt.Sprintf("notify[%d].", i)
			if p.Path == "policy" {
				path = ""
			}
			problems = append(problems, spec.Problem{Path: path + p.Path, Message: fmt.Sprintf("on host %s: %s", g.Name, p.Message), Remedy: p.Remedy, ExitCode: p.ExitCode})
		}
	}
	return problems
}

// tellRestart tells the run of a restart of the task, if the run has a notification of it. The
// restart does not wait for that.
func (l *taskLease) tellRestart(exit spec.Exit) {
	if l.Runs == nil || !l.plan.Spec.Notifies(spec.NotifyRestart) {
		return
	}
	n := l.restarts + 1
	update := taskservices.RunUpdate{
		ID:    fmt.Sprintf("%s/%d/%s/%d.%d", spec.UpdateRestarted.Name, l.key.Generation, l.key.Task, l.fence.Launch, n),
		Name:  spec.UpdateRestarted.Name,
		Input: spec.RestartedRequest{Task: l.key.Task, Host: l.Name, Restart: n, Why: l.whyRestart(exit), Generation: l.key.Generation},
	}
	l.group.Go(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, tellRestartFor)
		defer cancel()
		var answer spec.RequestAnswer
		_ = taskservices.Tell(ctx, l.Runs, l.key.Run, update, &answer)
	})
}
