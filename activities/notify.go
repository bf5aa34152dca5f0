package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/activities/trust/signatures"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Notify sends a notice about a run. Its processes may have ended, and no plan is required.
func (h *Host) Notify(ctx context.Context, in hostapi.NotifyInput) (none hostapi.None, err error) {
	run := runkey.Run{Namespace: activity.GetInfo(ctx).Namespace, WorkflowID: in.Notice.Run, RunID: in.Notice.Execution}
	signers, err := h.gate.signersOfNotice(run, in)
	if err != nil {
		return none, h.refusedNotice(run, signers, err.Error())
	}
	to := h.gate.receiver(in.Notification, signers)
	if to.problem != nil {
		return none, h.refusedNotice(run, signers, to.problem.String())
	}
	entry := guard.Entry{What: "notify", Signers: signers, User: to.decision.User, Rule: to.decision.Rule, Run: run.WorkflowID, Execution: run.RunID}
	if err := h.Guard.Log(entry); err != nil {
		return none, err
	}
	body, err := json.Marshal(in.Notice)
	if err != nil {
		return none, err
	}
	err = postNotice(ctx, to.address, in.Notice.ID, to.secret, body, h.now())
	var refused *hookRefusedError
	switch {
	case errors.As(err, &refused):
		return none, temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrNotify, nil)
	case err != nil:
		return none, temporal.NewApplicationError(bounded(err.Error()), spec.ErrNotify)
	}
	return none, nil
}

// refusedNotice logs that this host refuses to send a notice, and returns the error.
func (h *Host) refusedNotice(run runkey.Run, signers []string, why string) error {
	h.gate.refused(run, guard.Entry{Asked: "notify", Signers: signers}, why)
	return temporal.NewNonRetryableApplicationError(bounded(fmt.Sprintf("host %s: %s", h.Name, why)), spec.ErrNotify, nil)
}

// receiver is the receiver of notices as seen from this host.
type receiver struct {
	decision        policy.Decision
	address, secret string
	// problem is the reason why this host does not send it notices.
	problem *spec.Problem
}

// receiver consults the policy about a webhook, and finds its secrets.
func (g *gate) receiver(n spec.Notification, signers []string) receiver {
	to := g.judge(n, signers)
	if to.problem == nil {
		to.lookUp(g.environ(), n.Secret, "secret", &to.secret)
	}
	return to
}

// DecideNotice returns a policy's decision about a run's webhook. An address that is a secret is
// looked up on this machine.
func DecideNotice(g *guard.Guard, n spec.Notification, signers []string) policy.Decision {
	to := (&gate{core: &core{Config: Config{Guard: g}}}).judge(n, signers)
	if to.decision.Allowed && to.problem != nil {
		return policy.Decision{Reason: to.problem.String()}
	}
	to.decision.User = "" // no process is started
	return to.decision
}

// judge consults the policy about a webhook.
func (g *gate) judge(n spec.Notification, signers []string) (to receiver) {
	request := policy.Request{Signers: signers, Notice: true}
	for _, from := range []spec.Source{n.Webhook.From, n.Secret} {
		if from.FromFile != "" {
			request.SecretFiles = append(request.SecretFiles, filepath.Clean(from.FromFile))
		}
		if from.FromEnv != "" {
			request.SecretEnv = append(request.SecretEnv, from.FromEnv)
		}
	}
	// The address may be a secret, so the policy is first asked about the secrets.
	to.address = n.Webhook.Value
	if !to.decide(g, request) || !to.lookUp(g.environ(), n.Webhook.From, "webhook", &to.address) {
		return to
	}
	if err := spec.CheckWebhook(to.address); err != nil {
		to.problem = &spec.Problem{Path: "webhook", Message: err.Error()}
		return to
	}
	address, _ := url.Parse(to.address) // already parsed by CheckWebhook
	request.Webhook = address.Hostname()
	to.decide(g, request)
	return to
}

// decide consults the policy, and reports whether it allows the request.
func (to *receiver) decide(g *gate, r policy.Request) bool {
	if to.decision = g.Guard.Decide(r); !to.decision.Allowed {
		to.problem = &spec.Problem{Path: "policy", Message: "the notification, which " + by(r.Signers) + ": " + to.decision.Reason, Remedy: remedyOfDenial(r.Signers)}
	}
	return to.decision.Allowed
}

// lookUp sets value to the value of this host's secret, and reports whether it exists. An empty
// source changes nothing.
func (to *receiver) lookUp(environ []string, from spec.Source, path string, value *string) bool {
	if from == (spec.Source{}) {
		return true
	}
	text, problem := taskenv.Secret(environ, from, to.decision.Secrets)
	if problem != nil {
		problem.Path = path + "." + problem.Path
		to.problem = problem
		return false
	}
	*value = text
	return true
}

// signersOfNotice returns the signers of the run that the notice is about. A notification that is
// not in the signed spec is unsigned.
func (g *gate) signersOfNotice(run runkey.Run, in hostapi.NotifyInput) ([]string, error) {
	if in.Spec == nil || !g.Guard.HasPolicy() || in.Spec.Notify != in.Notification {
		return nil, nil
	}
	signers, _, err := g.Guard.Signers(signatures.OfRun(run.WorkflowID, in.Spec), in.Spec.Signature, useOf(run))
	return signers, err
}

// admitNotices returns the reasons why a run's notices cannot be sent. The host of rank 0 checks
// this before anything is started.
func (g *gate) admitNotices(in hostapi.ReserveInput, tasks []spec.Task, signers []string) []spec.Problem {
	if in.Spec.Notify == (spec.Notification{}) || !slices.ContainsFunc(tasks, func(t spec.Task) bool { return t.Rank == 0 }) {
		return nil
	}
	p := g.receiver(in.Spec.Notify, signers).problem
	if p == nil {
		return nil
	}
	path := "notify." + p.Path
	if p.Path == "policy" {
		path = p.Path
	}
	return []spec.Problem{{Path: path, Message: fmt.Sprintf("on host %s: %s", g.Name, p.Message), Remedy: p.Remedy, ExitCode: p.ExitCode}}
}
