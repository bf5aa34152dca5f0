package devserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/api/historyservice/v1"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// asCommand makes the test binary behave like clusterrun-devserver, so that the tests can start,
// signal and kill a real one without building it.
const asCommand = "CLUSTERRUN_TEST_AS_DEVSERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// patience is for a busy machine; nothing here takes more than a moment.
const patience = 60 * time.Second

// process is a running clusterrun-devserver.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	ready  Ready
	stderr *syncBuffer
	exited chan struct{} // closed when it has exited, and cmd.ProcessState is set
}

// command returns the command of a server on a new database, unless args name one.
func command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"--db", testFile(t)}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// start returns when the server has reported that it is ready.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, command(t, append([]string{"--json", "--port=0", "--headless"}, args...)...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return startCommandTo(t, cmd, nil)
}

// startCommandTo is startCommand with the given stderr.
func startCommandTo(t *testing.T, cmd *exec.Cmd, stderr *os.File) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, stderr: &syncBuffer{}, exited: make(chan struct{})}
	cmd.Stderr = p.stderr
	if stderr != nil {
		cmd.Stderr = stderr
	}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, readErr := bufio.NewReader(stdout).ReadBytes('\n')
	go func() {
		defer close(p.exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(p.kill)
	if readErr != nil {
		p.await()
		require.NoError(t, readErr, "no ready line; stderr: %s", p.stderr)
	}
	require.NoError(t, json.Unmarshal(line, &p.ready), "%s", line)
	return p
}

// await returns the exit code.
func (p *process) await() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		require.FailNow(p.t, "the server does not end", "stderr: %s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

func (p *process) kill() {
	if p.running() {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.exited
	}
}

func (p *process) client() client.Client {
	p.t.Helper()
	c, err := client.Dial(client.Options{HostPort: p.ready.Address, Namespace: p.ready.Namespace, Logger: quiet})
	require.NoError(p.t, err)
	p.t.Cleanup(c.Close)
	return c
}

// refused runs the command until it exits, which it must do with the given code, and returns its
// output.
func refused(t *testing.T, code int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := command(t, args...)
	cmd := exec.CommandContext(ctx, c.Path, c.Args[1:]...)
	cmd.Env = c.Env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit, "it started: %s", stdout.String())
	require.Equal(t, code, exit.ExitCode(), "%s", stderr.String())
	require.Empty(t, stdout.String(), "only a server that is ready says so")
	return stderr.String()
}

const testQueue = "test"

// startWorker serves testQueue until the test ends or stop is called.
func startWorker(t *testing.T, c client.Client, register func(worker.Registry)) (stop func()) {
	t.Helper()
	w := worker.New(c, testQueue, worker.Options{
		// A cancellation must not be found by a heartbeat.
		MaxHeartbeatThrottleInterval:     time.Hour,
		DefaultHeartbeatThrottleInterval: time.Hour,
	})
	register(w)
	require.NoError(t, w.Start())
	stop = sync.OnceFunc(w.Stop)
	t.Cleanup(stop)
	return stop
}

func startWorkflow(t *testing.T, c client.Client, wf any, args ...any) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: testQueue}, wf, args...)
	require.NoError(t, err)
	return run
}

func awaitResult(t *testing.T, run client.WorkflowRun, result any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return run.Get(ctx, result)
}

// awaitSignal is a workflow that completes on a signal.
func awaitSignal(ctx workflow.Context) (string, error) {
	var s string
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, &s)
	return s, nil
}

func testFile(t *testing.T) string { return filepath.Join(t.TempDir(), "runs.db") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

var quiet = sdklog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))

// syncBuffer can be read while the process writes.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// The first build compiles every package, so this test notices a new version of Temporal with many
// more.
func TestHowManyPackagesThereAre(t *testing.T) {
	_, err := os.ReadFile("go.sum") // for the test cache: a result is for these versions
	require.NoError(t, err)
	out, err := exec.Command("go", "list", "-deps", "./clusterrun-devserver").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	assert.Less(t, len(packages), 1300)
	for _, p := range packages {
		assert.False(t, strings.HasPrefix(p, "k8s.io/") || strings.HasPrefix(p, "google.golang.org/grpc/xds"), p)
	}
}

// The metrics have Temporal's names, and neither queues nor IDs are labels, because every run has
// its own.
func TestMetricsAreServed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	p := start(t, "--metrics="+address)
	defer startWorker(t, p.client(), func(r worker.Registry) { r.RegisterWorkflow(awaitSignal) })()
	run := startWorkflow(t, p.client(), awaitSignal)
	require.NoError(t, p.client().SignalWorkflow(t.Context(), run.GetID(), "", "go", "text"))
	require.NoError(t, awaitResult(t, run, new(string)))

	// They are gathered once a second.
	var text string
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		r, err := http.Get("http://" + address + "/metrics")
		require.NoError(t, err)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		text = string(body)
		assert.Regexp(t, `(?m)^service_requests\{.*operation="StartWorkflowExecution".* 1$`, text)
		assert.Regexp(t, `(?m)^persistence_latency_bucket\{.*operation="CreateWorkflowExecution"`, text)
	}, patience, 100*time.Millisecond)
	assert.NotContains(t, text, run.GetID())
	assert.NotContains(t, text, testQueue)
}

// A database of an earlier version gets the missing search attributes in addition to its users'
// attributes, and existing columns are kept.
func TestAttributesOfAnEarlierVersion(t *testing.T) {
	d := &database{path: filepath.Join(t.TempDir(), "runs.db")}
	require.NoError(t, d.prepare(t.Context()))
	old, err := sqliteschema.NewNamespaceConfig(clusterName, "default", false, map[string]enumspb.IndexedValueType{
		"ClusterRunOwner": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "Mine": enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"One": enumspb.INDEXED_VALUE_TYPE_INT, "Two": enumspb.INDEXED_VALUE_TYPE_INT,
	})
	require.NoError(t, err)
	require.NoError(t, sqliteschema.CreateNamespaces(d.config(), old))

	for range 2 {
		p := start(t, "--db", d.path)
		known, err := p.client().OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: "default"})
		require.NoError(t, err)
		want := maps.Clone(searchAttributes)
		maps.Copy(want, map[string]enumspb.IndexedValueType{
			"Mine": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "One": enumspb.INDEXED_VALUE_TYPE_INT, "Two": enumspb.INDEXED_VALUE_TYPE_INT,
		})
		delete(want, "ClusterRunTasks") // there are three columns of this type
		assert.Equal(t, want, known.GetCustomAttributes())
		p.kill()
	}
}

func TestAttributesKeepTheirColumns(t *testing.T) {
	columns := map[string]string{"Keyword07": "ClusterRunOwner", "Int02": "Mine"}
	before := maps.Clone(columns)
	addColumns(columns)
	for column, name := range before {
		assert.Equal(t, name, columns[column])
	}
	assert.Equal(t, append(slices.Sorted(maps.Keys(searchAttributes)), "Mine"), slices.Sorted(maps.Values(columns)))
}

// handshakes fail, and report how much time they had.
type handshakes struct {
	credentials.TransportCredentials
	time chan time.Duration
}

func (h handshakes) ClientHandshake(ctx context.Context, _ string, _ net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if until, ok := ctx.Deadline(); ok {
		select {
		case h.time <- time.Until(until):
		default: // already reported
		}
	}
	return nil, nil, errors.New("refused")
}

// A slow processor takes long for a handshake, however soon the next one is tried.
func TestTheHandshakeOfTheProbeHasTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	h := handshakes{insecure.NewCredentials(), make(chan time.Duration, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- awaitReady(ctx, listener.Addr().String(), "default", h) }()
	select {
	case had := <-h.time:
		assert.Greater(t, had, 10*time.Second)
	case <-ctx.Done():
		assert.Fail(t, "no handshake with a bound")
	}
	cancel()
	assert.Error(t, <-ended)
}

// busyHistory answers when its caller has given up.
type busyHistory struct {
	historyservice.HistoryServiceClient
	patience context.Context // of the first caller
}

func (h busyHistory) answer(ctx context.Context) error {
	<-h.patience.Done()
	if errors.Is(h.patience.Err(), context.Canceled) {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (h busyHistory) RecordWorkflowTaskStarted(ctx context.Context, _ *historyservice.RecordWorkflowTaskStartedRequest, _ ...grpc.CallOption) (*historyservice.RecordWorkflowTaskStartedResponse, error) {
	return &historyservice.RecordWorkflowTaskStartedResponse{}, h.answer(ctx)
}

func (h busyHistory) RecordActivityTaskStarted(ctx context.Context, _ *historyservice.RecordActivityTaskStartedRequest, _ ...grpc.CallOption) (*historyservice.RecordActivityTaskStartedResponse, error) {
	return &historyservice.RecordActivityTaskStartedResponse{}, h.answer(ctx)
}

// A run of half a second took fourteen: history had recorded that a task has started, and its
// answer came after the second that matching waits.
func TestATaskWhoseStartIsRecordedLateIsNotLost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	h := patientHistory{busyHistory{patience: ctx}}
	_, err := h.RecordWorkflowTaskStarted(ctx, nil)
	require.NoError(t, err)
	_, err = h.RecordActivityTaskStarted(ctx, nil)
	require.NoError(t, err)

	// The worker has hung up, so nothing must be started for it.
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	h = patientHistory{busyHistory{patience: gone}}
	_, err = h.RecordWorkflowTaskStarted(gone, nil)
	assert.ErrorIs(t, err, context.Canceled)
	_, err = h.RecordActivityTaskStarted(gone, nil)
	assert.ErrorIs(t, err, context.Canceled)
}

func TestHelpNamesFlagsExamplesAndExitCodes(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, ExitOK, Main([]string{"--help"}, &out, &errs))
	assert.Empty(t, errs.String())
	for _, want := range []string{
		"--db", "--ip", "--port", "--ui-port", "--headless", "--namespace", "--retention", "--idle-exit",
		"--ready-file", "--lifeline-fd", "--metrics", "--log-level", "--json", "--version", "Examples:", "Exit codes:",
	} {
		assert.Contains(t, out.String(), want)
	}
}

func TestVersionNamesTheServer(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, ExitOK, Main([]string{"--version"}, &out, &errs))
	assert.Regexp(t, `^clusterrun-devserver \(Temporal server 1\.\d+\.\d+, Web UI 2\.\d+\.\d+\)\n$`, out.String())
}

func TestMistakesInTheCommandLine(t *testing.T) {
	notOpen := strconv.Itoa(1 << 20)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--nonsense"}, "unknown flag: --nonsense"},
		{[]string{"runs.db"}, `unexpected argument "runs.db"`},
		{[]string{"--ip=0.0.0.0"}, "--ip 0.0.0.0 is not a loopback address"},
		{[]string{"--ip=192.168.1.2"}, "can run commands as you"},
		{[]string{"--ip=localhost"}, "use 127.0.0.1 or ::1"},
		{[]string{"--port=70000"}, "--port 70000 is not a port"},
		{[]string{"--ui-port=-1"}, "--ui-port -1 is not a port"},
		{[]string{"--port=7233", "--ui-port=7233"}, "the Web UI needs its own port"},
		{[]string{"--db="}, "--db is missing"},
		{[]string{"--namespace="}, "--namespace is empty"},
		{[]string{"--namespace=temporal-system"}, "is reserved for the server"},
		{[]string{"--retention=1m"}, "--retention 1m0s is too short"},
		{[]string{"--idle-exit=-1s"}, "--idle-exit -1s is negative"},
		{[]string{"--idle-exit=soon"}, "--idle-exit"},
		{[]string{"--metrics=9465"}, `--metrics "9465": use HOST:PORT`},
		{[]string{"--metrics=127.0.0.1:70000"}, "use HOST:PORT"},
		{[]string{"--log-level=loud"}, `--log-level "loud"`},
		{[]string{"--lifeline-fd=-7"}, "--lifeline-fd -7"},
		{[]string{"--lifeline-fd=" + notOpen}, "--lifeline-fd " + notOpen + ": bad file descriptor"},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, ExitUsage, Main(append([]string{"--db=runs.db"}, c.args...), &out, &errs), "%s", c.args)
		assert.Contains(t, errs.String(), c.says, "%s", c.args)
		assert.Contains(t, errs.String(), "--help", "%s", c.args)
		assert.Empty(t, out.String(), "%s", c.args)
	}
}

// All taken ports are named, and nothing is half started.
func TestTakenPorts(t *testing.T) {
	db := testFile(t)
	ready := filepath.Join(filepath.Dir(db), "ready.json")
	flags, args := []string{"--port", "--ui-port"}, []string{"--db", db, "--ready-file", ready}
	taken := map[string]string{}
	for _, flag := range append(flags, "--metrics") {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		taken[flag] = l.Addr().String()
		if flag != "--metrics" {
			args = append(args, flag, portOf(t, taken[flag]))
		}
	}
	says := refused(t, ExitFailure, args...)
	for _, flag := range flags {
		assert.Contains(t, says, flag+": "+taken[flag]+" is in use by another program")
	}
	assert.False(t, exists(db))
	assert.False(t, exists(ready))
	assert.Contains(t, refused(t, ExitFailure, "--port=0", "--headless", "--metrics", taken["--metrics"]), "--metrics: "+taken["--metrics"]+" is in use by another program")
}

func TestChosenPortsAreDistinctAndFree(t *testing.T) {
	o := DefaultOptions()
	o.Port, o.UIPort = 0, 0
	p, err := choosePorts(o)
	require.NoError(t, err)
	seen := map[int]bool{}
	for _, port := range []int{p.frontend, p.history, p.matching, p.worker, p.ui} {
		assert.NotZero(t, port)
		assert.False(t, seen[port])
		seen[port] = true
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		require.NoError(t, err, "TIME_WAIT must not keep us out")
		defer l.Close()
	}

	o.Headless = true
	p, err = choosePorts(o)
	require.NoError(t, err)
	assert.Zero(t, p.ui)
}
