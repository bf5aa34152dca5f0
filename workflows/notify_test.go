package workflows_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// The run starts a workflow for each notice, and ends although no notice is ever sent.
func TestRunNotifies(t *testing.T) {
	w := newWorld(t)
	w.SetContinueAsNewSuggested(false)
	var mu sync.Mutex // child workflows are started side by side
	var told []workflows.NotifyInput
	w.OnWorkflow(spec.NotifyWorkflowType, mock.Anything, mock.Anything).Return(func(ctx workflow.Context, in workflows.NotifyInput) error {
		mu.Lock()
		told = append(told, in)
		mu.Unlock()
		return workflow.Sleep(ctx, 24*time.Hour)
	})
	mail := spec.Notification{Events: []spec.NotifyOn{spec.NotifyRestart}, Command: []string{"mail"}}
	hook := spec.Notification{Webhook: spec.Variable{From: spec.Source{FromFile: "/hook"}}}
	s := spec.RunSpec{RestartScope: spec.RestartScopeGroup, MaxRestarts: new(1), Notify: []spec.Notification{mail, hook}}
	require.Error(t, w.start(t, s, nil))

	mu.Lock()
	defer mu.Unlock()
	require.Len(t, told, 2)
	slices.SortFunc(told, func(a, b workflows.NotifyInput) int { return cmp.Compare(a.Each[0].Notice.ID, b.Each[0].Notice.ID) })
	restart, end := told[0].Each, told[1].Each
	require.Len(t, restart, 1)
	assert.Equal(t, mail, restart[0].Notification)
	assert.Equal(t, "run default-test-workflow-id: worker-0 on a (rank 0) exited with exit code 3; all tasks restarted (attempt_1)", restart[0].Notice.Text)
	require.Len(t, end, 1)
	assert.Equal(t, hook, end[0].Notification)
	n := end[0].Notice
	assert.Equal(t, "run default-test-workflow-id failed: Subprocess worker-0 exited with exit code 3", n.Text)
	assert.Equal(t, spec.NotifyFailure, n.Event)
	assert.Equal(t, spec.NoticeID(n.Run, n.Execution, 2), n.ID)
	assert.Equal(t, 3, *n.ExitCode)
	assert.Equal(t, []string{spec.InstanceQueue(spec.PrivateQueue("test"), "a", "i"), spec.HostsQueue(spec.PrivateQueue("test"))}, told[1].Queues)
}

// A host that does not take a notice up is followed by the next, and one receiver that refuses it
// does not keep it from the others.
func TestNoticeIsSent(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	w := suite.NewTestWorkflowEnvironment()
	w.RegisterWorkflowWithOptions(workflows.Notify, workflow.RegisterOptions{Name: spec.NotifyWorkflowType})
	tries := map[string]int{}
	w.RegisterActivityWithOptions(func(ctx context.Context, in hostapi.NotifyInput) (hostapi.None, error) {
		queue := activity.GetInfo(ctx).TaskQueue
		tries[queue]++
		switch {
		case queue == "away":
			return hostapi.None{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
		case in.Notification.IsWebhook():
			return hostapi.None{}, temporal.NewNonRetryableApplicationError("example.com answered 404 Not Found", spec.ErrNotify, nil)
		case activity.GetInfo(ctx).Attempt < 3:
			return hostapi.None{}, temporal.NewApplicationError("busy", spec.ErrNotify)
		}
		return hostapi.None{}, nil
	}, activity.RegisterOptions{Name: hostapi.Name(hostapi.Host.Notify)})
	w.ExecuteWorkflow(spec.NotifyWorkflowType, workflows.NotifyInput{
		Queues: []string{"away", "here"},
		Each: []hostapi.NotifyInput{
			{Notification: spec.Notification{Webhook: spec.Variable{Value: "https://example.com/secret"}}},
			{Notification: spec.Notification{Command: []string{"mail"}}},
		},
	})
	require.ErrorContains(t, w.GetWorkflowError(), "webhook: example.com answered 404 Not Found")
	assert.NotContains(t, w.GetWorkflowError().Error(), "mail")
	assert.Equal(t, 4, tries["here"], "one for the webhook, three for the command")
}
