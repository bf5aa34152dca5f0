package e2e

import (
	"fmt"
	"net"
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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// guarded is a host worker that can reach its server only through a gate.
func guarded(t *testing.T, env []string, args ...string) *harness.Process {
	t.Helper()
	home := t.TempDir()
	return harness.Start(t, home, harness.Env(home, env...), append([]string{harness.Clusterrun(t), "worker", "--slots", "0", "--host-name", "guarded", "--advertise", "127.0.0.1", "--listen", "off"}, args...)...)
}

func awaitReady(t *testing.T, p *harness.Process) {
	t.Helper()
	harness.Eventually(t, "the worker is ready", func() bool {
		require.False(t, p.Exited(), p.Stderr())
		return strings.Contains(p.Stderr(), "\tready\t")
	})
}

// onlyAnswers is an authorizer that lets clients connect, and refuses all other requests.
func onlyAnswers(r harness.Request) error {
	if r.Method == "GetSystemInfo" || r.Method == "Check" {
		return nil
	}
	return harness.Refused
}

// resets returns a server address where connections are reset after their first byte.
func resets(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1)) // closing with unread data is a reset
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// A program without the required permissions fails immediately, with the remedy.
func TestRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	f := prepare(t, harness.StartServer(t, "--headless"), nil)
	g := harness.StartGate(t, f.Server)
	known, foreign := g.Client("known", time.Hour), harness.StartGate(t, f.Server).Client("foreign", time.Hour)
	env := known.Env()
	with := func(env []string, args ...string) (int, string) {
		t.Helper()
		p := harness.Start(t, f.dir, harness.Env(f.dir, env...), append([]string{harness.Clusterrun(t)}, args...)...)
		return p.ExitCode(), p.Stderr()
	}
	commands := [][]string{{"list"}, {"worker"}, {"run", "--remote", "--", "true"}, {"run", "--", "true"}}
	for _, c := range []struct {
		name, want string
		env        []string
	}{
		{"no certificate", "it refuses the client certificate; set one that it accepts", env[:3]},
		{"one of another authority", "it refuses the client certificate; set one that it accepts",
			append(env[:3:3], "TEMPORAL_TLS_CLIENT_CERT_PATH="+foreign.Cert, "TEMPORAL_TLS_CLIENT_KEY_PATH="+foreign.Key)},
		{"no authority", "its certificate is not trusted", append([]string{env[0], env[1]}, env[3:]...)},
		{"another name", "its certificate is not trusted", append([]string{env[0], "TEMPORAL_TLS_SERVER_NAME=other.test"}, env[2:]...)},
		{"no TLS", "it may require TLS", env[:1]},
		{"no TLS, where our last words are not read", "it may require TLS", []string{"TEMPORAL_ADDRESS=" + resets(t)}},
		{"TLS where there is none", "it does not use TLS", append([]string{"TEMPORAL_ADDRESS=" + f.Address}, env[1:]...)},
		{"half a certificate", "if either client cert or key path is present, other must be present too", env[:4]},
		{"no such file", "no such file or directory", append(env[:4:4], "TEMPORAL_TLS_CLIENT_KEY_PATH=/nonexistent/key.pem")},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, args := range [][]string{{"list"}, {"run", "--", "true"}} {
				code, stderr := with(c.env, args...)
				assert.NotZero(t, code, args)
				assert.Contains(t, stderr, c.want, args)
			}
		})
	}
	g.Allow(onlyAnswers)
	for _, args := range commands {
		code, stderr := with(env, args...)
		assert.Equal(t, 125, code, args)
		assert.Contains(t, stderr, "(Request unauthorized.): its operator must grant that to this program's client certificate or API key", args)
	}
}

// A file's API key is replaced while a host worker serves.
func TestAnAPIKeyIsReplaced(t *testing.T) {
	t.Parallel()
	f := prepare(t, harness.StartServer(t, "--headless"), nil)
	g := harness.StartGate(t, f.Server)
	file := filepath.Join(t.TempDir(), "key")
	wants := func(key string) {
		require.NoError(t, os.WriteFile(file+".new", []byte(key+"\n"), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
		g.Allow(func(r harness.Request) error {
			if strings.Join(r.Metadata.Get("authorization"), "") != "Bearer "+key {
				return status.Error(codes.Unauthenticated, "unknown key")
			}
			return nil
		})
	}
	wants("one")
	env := g.Client("host", time.Hour).Env()
	w := guarded(t, env, "--api-key-file", file)
	awaitReady(t, w)
	wants("two")
	assert.Equal(t, spec.VerdictSucceeded, harness.Result(t, f.start(&spec.RunSpec{Command: []string{"true"}, Dir: f.dir, Tasks: []spec.TaskGroup{{Type: "worker"}}})).Verdict)

	p := harness.Start(t, f.dir, harness.Env(f.dir, append(env, "TEMPORAL_API_KEY=one")...), harness.Clusterrun(t), "list")
	assert.Equal(t, 125, p.ExitCode())
	assert.Contains(t, p.Stderr(), "(unknown key): it does not accept this program's API key or certificate")
	p = harness.Start(t, f.dir, harness.Env(f.dir, append(env, "TEMPORAL_API_KEY=two")...), harness.Clusterrun(t), "list")
	assert.Zero(t, p.ExitCode(), p.Stderr())
}

// byRole is an authorizer that allows each certificate the requests listed in the help of worker:
// workflow tasks for a controller, and activities on its own queues for a host.
type byRole struct {
	mu      sync.Mutex
	refused []string
}

// polled returns a poll's queue, and whether it is a process's sticky queue.
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
			sticky && strings.HasPrefix(queue, "clusterrun-clock-") ||
			slices.Contains([]string{
				"RespondActivityTaskCompleted", "RespondActivityTaskFailed", "RespondActivityTaskCanceled", "RecordActivityTaskHeartbeat",
				"SignalWorkflowExecution", "SignalWithStartWorkflowExecution", "StartWorkflowExecution", "ExecuteMultiOperation", "QueryWorkflow",
				"UpdateWorkflowExecution", "PollWorkflowExecutionUpdate", "DescribeWorkflowExecution", "GetWorkflowExecutionHistory", "DescribeTaskQueue",
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

// One controller and one host, each with a certificate that allows only its role, serve runs with
// barriers, requests and results. A host with a different host's certificate does not get that
// host's tasks.
func TestRoles(t *testing.T) {
	t.Parallel()
	f := prepare(t, harness.StartServer(t, "--headless"), nil)
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
		"bash", "-c", harness.Napping(`if [ "$CLUSTERRUN_RESTART_COUNT" = 0 ]; then "$CR" task barrier && echo met > met-$RANK || exit 1; fi; "$CR" task result "$RANK" && until [ -e go ]; do nap; done`))
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "no worker serves the queue clusterrun")
	controller := start("controller", "controller", "controller")
	awaitReady(t, controller)
	id = strings.TrimSpace(id)
	harness.Eventually(t, "the host has the tasks", func() bool {
		_, stdout, _ := f.CLI(t, "host", "list")
		return strings.Contains(stdout, "host-a") && strings.Contains(stdout, id)
	})
	stdout := f.OK(t, "host", "list")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2, "a controller has no slots: %s", stdout)
	assert.Equal(t, []string{"host-a", "ready", "host"}, strings.Fields(lines[1])[:3])
	f.file("met-0")
	f.file("met-1")
	f.OK(t, "restart", id, "worker-1")
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o644))
	f.OK(t, "wait", id)
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
