package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// byRole is an authorizer that allows each certificate the requests that the help of worker
// lists: a controller workflow tasks, and a host the activities of its own queues.
type byRole struct {
	mu      sync.Mutex
	refused []string
}

// polled returns the queue of a poll, and whether it is the sticky queue of one process.
func polled(r harness.Request) (queue string, sticky bool) {
	switch r.Method {
	case "PollWorkflowTaskQueue":
		var m workflowservice.PollWorkflowTaskQueueRequest
		if proto.Unmarshal(r.Body, &m) == nil {
			return m.GetTaskQueue().GetName(), m.GetTaskQueue().GetKind() == enumspb.TASK_QUEUE_KIND_STICKY
		}
	case "PollActivityTaskQueue":
		var m workflowservice.PollActivityTaskQueueRequest
		if proto.Unmarshal(r.Body, &m) == nil {
			return m.GetTaskQueue().GetName(), false
		}
	}
	return "", false
}

func (a *byRole) allow(r harness.Request) error {
	queue, sticky := polled(r)
	ok := slices.Contains([]string{"GetSystemInfo", "DescribeNamespace", "ShutdownWorker", "RecordWorkerHeartbeat", "PollNexusTaskQueue"}, r.Method)
	if r.Client == "controller" {
		ok = ok || queue == spec.TaskQueue && r.Method == "PollWorkflowTaskQueue" || sticky ||
			slices.Contains([]string{"RespondWorkflowTaskCompleted", "RespondWorkflowTaskFailed", "RespondQueryTaskCompleted", "GetWorkflowExecutionHistory"}, r.Method)
	} else {
		ok = ok || r.Method == "PollActivityTaskQueue" && (queue == spec.HostsQueue(spec.TaskQueue) || strings.HasPrefix(queue, spec.HostQueue(spec.TaskQueue, r.Client)+"/")) ||
			slices.Contains([]string{
				"RespondActivityTaskCompleted", "RespondActivityTaskFailed", "RespondActivityTaskCanceled", "RecordActivityTaskHeartbeat",
				"SignalWorkflowExecution", "SignalWithStartWorkflowExecution", "StartWorkflowExecution", "ExecuteMultiOperation", "QueryWorkflow",
				"UpdateWorkflowExecution", "PollWorkflowExecutionUpdate", "DescribeWorkflowExecution", "GetWorkflowExecutionHistory",
			}, r.Method)
	}
	if ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = append(a.refused, fmt.Sprint(r.Client, " ", r.Method, " ", queue))
	return harness.Refused
}

// One controller and one host, each with a certificate that allows only its part, serve runs
// with barriers, requests and results. A host with another host's certificate gets none of its
// tasks.
func TestRoles(t *testing.T) {
	t.Parallel()
	f := withoutWorker(t)
	g := harness.StartGate(t, f.Server)
	var authorizer byRole
	g.Allow(authorizer.allow)
	start := func(role, host, certificate string) *harness.Process {
		return harness.Start(t, f.dir, harness.Env(t.TempDir(), g.Client(certificate, time.Hour).Env()...), harness.Clusterrun(t),
			"worker", "--role", role, "--host-name", host)
	}

	host := start("host", "host-a", "host-a")
	awaitReady(t, host)
	code, id, stderr := f.CLI(t, "submit", "-n", "2", "--env", "CR="+harness.Clusterrun(t), "--dir", f.dir, "--",
		"bash", "-c", `if [ "$("$CR" task restart-count)" = 0 ]; then "$CR" task barrier && echo met > met-$RANK || exit 1; fi; "$CR" task result "$RANK" && until [ -e go ]; do sleep 0.1; done`)
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "no worker serves the queue clusterrun")
	controller := start("controller", "controller", "controller")
	awaitReady(t, controller)
	id = strings.TrimSpace(id)
	harness.Eventually(t, "the host has the tasks", func() bool {
		_, stdout, _ := f.CLI(t, "host", "list")
		return strings.Contains(stdout, "host-a") && strings.Contains(stdout, id)
	})
	code, stdout, stderr := f.CLI(t, "host", "list")
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2, "a controller has no slots: %s", stdout)
	assert.Equal(t, []string{"host-a", "ready", "host"}, strings.Fields(lines[1])[:3])
	f.file("met-0")
	f.file("met-1")
	code, _, stderr = f.CLI(t, "restart", id, "worker-1")
	require.Zero(t, code, stderr)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o644))
	code, _, stderr = f.CLI(t, "wait", id)
	assert.Zero(t, code, stderr)
	authorizer.mu.Lock()
	assert.Empty(t, authorizer.refused)
	authorizer.mu.Unlock()

	host.Kill(syscall.SIGTERM)
	assert.Zero(t, host.ExitCode(), host.Stderr())
	stranger := start("host", "host-a", "host-b")
	harness.Eventually(t, "it is refused, and says so", func() bool {
		return strings.Contains(stranger.Stderr(), "refuses PollActivityTaskQueue")
	})
	controller.Kill(syscall.SIGTERM)
	assert.Zero(t, controller.ExitCode(), controller.Stderr())
}

func TestRolesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	for want, args := range map[string][]string{
		`--role "chief": give host, controller or both`: {"--role", "chief"},
		`--slots is for hosts`:                          {"--role", "controller", "--slots", "4"},
		`--label is for hosts`:                          {"--role", "controller", "--label", "a=b"},
	} {
		code, _, stderr := l.run(append([]string{"worker"}, args...)...)
		assert.Equal(t, 2, code)
		assert.Contains(t, stderr, want)
	}
}
