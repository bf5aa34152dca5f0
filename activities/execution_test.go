package activities

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

func execution(id, first string, status enumspb.WorkflowExecutionStatus, events int64) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{RunId: id}, FirstRunId: first, Status: status, HistoryLength: events,
	}}
}

const running = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING

// An execution that continues a run does not list tasks before its first workflow task, which the
// server may delay. Until then, nothing is stopped.
func TestTasksAreNotStoppedBeforeTheyAreTakenOver(t *testing.T) {
	s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 0)}}}
	server := &describes{}
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
	p := &plan{Run: servedRun, Spec: (&spec.RunSpec{}).WithDefaults()}
	scheduled := execution("next", servedRun.RunID, running, 5)
	scheduled.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{}
	for _, last := range []*workflowservice.DescribeWorkflowExecutionResponse{execution("next", servedRun.RunID, running, 1), scheduled} {
		server.run = last
		require.NoError(t, h.watch.reconcile(t.Context(), p))
		require.Empty(t, s.stops)
	}
	server.run = execution("next", servedRun.RunID, running, 9)
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	require.Len(t, s.stops, 1, "it has taken over what it wants")
	assert.Empty(t, s.released)
}

// oneAnswer is a server that gives every heartbeat the same answer.
type oneAnswer struct {
	Server
	err error
}

func (s oneAnswer) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return s.err }

// A server may push a cancellation when it closes an execution that another execution continues.
// The attempt's heartbeat answer distinguishes the two cases.
func TestAPushedCancellationIsConfirmed(t *testing.T) {
	pushed := temporal.NewCanceledError()
	for _, c := range []struct{ answer, want error }{
		{nil, pushed},
		{temporal.NewCanceledError(), pushed},
		{errors.New("away"), pushed},
		{serviceerror.NewNotFound("workflow execution already completed"), serviceerror.NewNotFound("workflow execution already completed")},
	} {
		h := assemble(&core{Config: Config{Name: "host-a", Server: oneAnswer{err: c.answer}}})
		h.services = must.Get(taskservices.New(taskservices.Config{StateDir: t.TempDir(), Log: zap.NewNop()}))(t)
		t.Cleanup(h.services.Close)
		h.samples = &resources.Sampler{}
		l := &taskLease{Host: h}
		answers := make(chan error, 1)
		l.confirm(t.Context(), supervisor.Process{}, pushed, answers)
		assert.Equal(t, c.want, <-answers)
	}
}

// A failure cut in the middle of a character cannot be sent.
func TestBounded(t *testing.T) {
	for shift := range 4 {
		s := bounded(strings.Repeat("x", shift) + strings.Repeat("\u20ac", 1000))
		assert.True(t, utf8.ValidString(s))
		assert.LessOrEqual(t, len(s), maxMessage)
	}
	assert.Equal(t, "a\uFFFDb", bounded("a\xffb"))
	assert.Equal(t, "short", bounded("short"))
}

// A run's hosts together ask the server about it at most 50 times a second.
func TestHostsOfALargeRunAskTheServerRarely(t *testing.T) {
	tasks := []spec.TaskGroup{{Type: "worker", Count: new(8000)}}
	for hosts, want := range map[int]time.Duration{1: 0, 100: 0, 1000: 18 * time.Second} {
		assert.Equal(t, want, restOf(&plan{Spec: &spec.RunSpec{Tasks: tasks}, Cluster: hostapi.Cluster{Hosts: hosts}}), "%d hosts", hosts)
	}
	reserved := &plan{Spec: &spec.RunSpec{Tasks: tasks}, Tasks: []string{"worker-0", "worker-1", "worker-2", "worker-3", "worker-4", "worker-5", "worker-6", "worker-7"}}
	assert.Equal(t, 18*time.Second, restOf(reserved), "before the host knows the others")
	assert.Zero(t, restOf(&plan{Spec: &spec.RunSpec{Tasks: tasks}}), "a host that the run has left")
}

// The plan records the user to read files as. The present owner of their directory proves nothing.
func TestFilesOfAnotherUserAreNotReadAsUs(t *testing.T) {
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Log: zap.NewNop()}))(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, tasklog.StderrFile), []byte("the secret\n"), 0o600))
	ours := supervisor.Process{Key: runkey.Task{Task: "worker-0"}, PID: 1, LogDir: dir, Exit: &supervisor.Exit{Code: 1}}
	theirs := ours
	theirs.User = "alice"
	p := &plan{Spec: (&spec.RunSpec{}).WithDefaults()}

	for _, p := range []*plan{nil, p} {
		e, _ := h.describeExit(p, ours)
		assert.Equal(t, "the secret", e.Message)
		e, _ = h.describeExit(p, theirs)
		assert.Equal(t, "the process ran as the user alice, but the record needed to read its files has been deleted", e.Message)
		assert.Equal(t, 1, e.ExitCode)
		assert.Equal(t, spec.CauseOrigin, e.Cause)
	}
	assert.Len(t, lastOutput(p, []supervisor.Process{ours}), 1)
	assert.Empty(t, lastOutput(p, []supervisor.Process{theirs}))

	alice := &hostuser.User{Name: "alice", UID: 54321}
	user := must.Get((&plan{User: alice}).userOf(theirs))(t)
	assert.Equal(t, alice, user)
}

// A host refuses more tasks than it has slots, unless the tasks belong to its only run and it may
// be oversubscribed.
func TestClaimSlots(t *testing.T) {
	other := runkey.Run{Namespace: "default", WorkflowID: "other", RunID: "1"}
	tasks := (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(3)}}}).TaskList()
	for name, test := range map[string]struct {
		slots         int
		oversubscribe bool
		others        []string
		refusal       string
	}{
		"room":                {slots: 4, others: []string{"worker-0"}},
		"no room":             {slots: 2, refusal: "host a has 2 of 2 slots free, but the run needs 3"},
		"no bound":            {slots: 0, others: []string{"worker-0"}},
		"oversubscribed":      {slots: 2, oversubscribe: true},
		"others are there":    {slots: 3, oversubscribe: true, others: []string{"worker-0"}, refusal: "host a has 2 of 3 slots free, but the run needs 3"},
		"room beside another": {slots: 4, oversubscribe: true, others: []string{"worker-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := must.Get(NewHost(Config{Name: "a", StateDir: t.TempDir(), Slots: test.slots, Oversubscribe: test.oversubscribe, Log: zap.NewNop()}))(t)
			_, err := h.plans.update(other, func(*plan) (*plan, error) {
				return &plan{Run: other, Spec: &spec.RunSpec{}, Tasks: test.others}, nil
			})
			require.NoError(t, err)
			err = h.reservations.claimSlots(servedRun, 0, tasks)
			if test.refusal == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.refusal)
		})
	}
}

// A reservation of an open run without tasks on this host frees its slots, but the run may return,
// because its server may have been away.
func TestAReservationWithoutATaskLapses(t *testing.T) {
	s := &stopped{}
	server := &describes{run: execution("first", servedRun.RunID, running, 9)}
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
	reserved := func(ago time.Duration) *plan {
		return must.Get(h.plans.update(servedRun, func(*plan) (*plan, error) {
			return &plan{Run: servedRun, Tasks: []string{"worker-0"}, Spec: (&spec.RunSpec{}).WithDefaults(), Reserved: time.Now().Add(-ago)}, nil
		}))(t)
	}
	require.NoError(t, h.watch.reconcile(t.Context(), reserved(time.Minute)))
	assert.Len(t, must.Get(h.plans.get(servedRun))(t).Tasks, 1)
	require.NoError(t, h.watch.reconcile(t.Context(), reserved(time.Hour)))
	assert.Empty(t, must.Get(h.plans.get(servedRun))(t).Tasks)
	assert.Empty(t, s.released)
}
