package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// BenchmarkManyHosts measures a run on many hosts that have no processes: they are in this process,
// join the queue of a real server, execute the activities of the run and send its heartbeats. The
// workflows are executed by a real controller.
//
// CLUSTERRUN_MANY replaces the sizes: "hosts x tasks on each,…", such as "1000x8".
func BenchmarkManyHosts(b *testing.B) {
	sizes := "1000x1,1000x8"
	if s := os.Getenv("CLUSTERRUN_MANY"); s != "" {
		sizes = s
	}
	for size := range strings.SplitSeq(sizes, ",") {
		var hosts, each int
		_, err := fmt.Sscanf(size, "%dx%d", &hosts, &each)
		require.NoError(b, err)
		b.Run(size, func(b *testing.B) { newCrowd(b, hosts, each).measure() })
	}
}

// crowd is a server and many hosts without processes.
type crowd struct {
	b           *testing.B
	server      *harness.Server
	controller  *harness.Process
	client      client.Client
	connection  *server.Server
	hosts, each int

	leases     atomic.Int64
	running    atomic.Int64
	allRunning chan time.Time
	// ends is closed when all tasks end.
	ends chan struct{}
	// inputs are the sizes of the largest input of each activity, in bytes.
	mu     sync.Mutex
	inputs map[string]int
}

func newCrowd(b *testing.B, hosts, each int) *crowd {
	b.Helper()
	s := harness.StartServer(b, "--headless")
	c := &crowd{
		b: b, server: s, controller: s.StartCLI(b, "worker", "--role", "controller", "--host-name", "controller"), client: s.Client(), connection: &server.Server{},
		hosts: hosts, each: each, allRunning: make(chan time.Time, 1), ends: make(chan struct{}), inputs: map[string]int{},
	}
	c.connection.Connect(c.client)
	const together = 20
	for i := range hosts {
		c.join(i)
		if (i+1)%together == 0 {
			harness.Eventually(b, "the hosts have joined", func() bool { return c.leases.Load() > int64(i) })
		}
	}
	harness.Within(b, 10*time.Minute, "the queue has all hosts", func() bool {
		return c.joined() == hosts
	})
	return c
}

func (c *crowd) joined() (n int) {
	all, err := fleet.AllHosts(func(after string) (page []fleet.HostStatus, err error) {
		v, err := c.client.QueryWorkflow(c.b.Context(), spec.FleetID(spec.TaskQueue), "", spec.QueryHosts, after)
		if err == nil {
			err = v.Get(&page)
		}
		return page, err
	})
	if err != nil {
		return 0
	}
	for _, h := range all {
		if h.State == fleet.HostReady {
			n++
		}
	}
	return n
}

// join starts a host and makes it join the queue.
func (c *crowd) join(i int) {
	c.b.Helper()
	h := &crowdHost{crowd: c, i: i, name: fmt.Sprintf("gpu-%04d.cluster.example.org", i), instance: fmt.Sprintf("%08x%08x", i, i)}
	member := server.NewMembership(c.connection, spec.TaskQueue, fleet.Host{
		Name: h.name, Instance: h.instance, Address: h.address(), Version: spec.Version, Slots: c.each, CPUs: 64, Memory: 1 << 40,
	}, noChecks{})
	w := worker.New(c.client, spec.InstanceQueue(spec.TaskQueue, h.name, h.instance), worker.Options{
		DisableWorkflowWorker: true, MaxConcurrentActivityTaskPollers: 1, DisableRegistrationAliasing: true,
	})
	named := func(f any, name string) { w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name}) }
	named(func(ctx context.Context, in fleet.HostLeaseInput) error {
		c.leases.Add(1)
		return member.HostLease(ctx, in)
	}, spec.ActivityHostLease)
	named(member.FleetCheck, spec.ActivityFleetCheck)
	named(h.Reserve, hostapi.Name(hostapi.Host.Reserve))
	named(h.Prepare, hostapi.Name(hostapi.Host.Prepare))
	named(h.RunTask, hostapi.Name(hostapi.Host.RunTask))
	named(h.Release, hostapi.Name(hostapi.Host.Release))
	require.NoError(c.b, w.Start())
	ctx, cancel := context.WithCancel(context.Background())
	c.b.Cleanup(func() { cancel(); w.Stop() })
	go member.Keep(ctx, func() []fleet.Holding { return nil }, func(error) {})
}

type noChecks struct{}

func (noChecks) First(context.Context, time.Duration) {}
func (noChecks) Names() []string                      { return nil }
func (noChecks) Failing() []fleet.Failing             { return nil }
func (noChecks) Changed() <-chan struct{}             { return nil }
func (noChecks) Results() []fleet.CheckResult         { return nil }

// crowdHost is a host without processes.
type crowdHost struct {
	*crowd
	i              int
	name, instance string
	tasks          []string
}

func (h *crowdHost) address() string { return fmt.Sprintf("10.%d.%d.7", h.i/250, h.i%250) }

func (h *crowdHost) noteInput(name string, input any) {
	text, _ := json.Marshal(input)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inputs[name] = max(h.inputs[name], len(text))
}

func (h *crowdHost) service() *spec.HostService {
	return &spec.HostService{Host: h.name, Address: h.address() + ":7070", Fingerprint: strings.Repeat("f", 64), Token: strings.Repeat("t", 64)}
}

func (h *crowdHost) Reserve(ctx context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
	h.noteInput("reserve", in)
	if in.SharedSpec != nil {
		var shared hostapi.ReserveInput
		if err := h.connection.ReadShared(ctx, *in.SharedSpec, &shared); err != nil {
			return hostapi.ReserveOutput{}, err
		}
		in.Spec = shared.Spec
	}
	h.tasks = in.Tasks
	out := hostapi.ReserveOutput{Host: h.name, Instance: h.instance, MasterPort: 29500, JAXPort: 29501, Service: h.service(), Witness: h.service()}
	for range in.Tasks {
		out.Addresses = append(out.Addresses, fmt.Sprint(h.address(), ":", 20000+rand.IntN(10000))) //nolint:gosec // no secret
	}
	return out, in.Spec.Validate()
}

func (h *crowdHost) Prepare(ctx context.Context, in hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
	h.noteInput("prepare", in)
	if in.SharedCluster != nil {
		if err := h.connection.ReadShared(ctx, *in.SharedCluster, &in.Cluster); err != nil {
			return hostapi.PrepareOutput{}, err
		}
	}
	if n := len(in.Cluster.Members); n != h.hosts*h.each {
		return hostapi.PrepareOutput{}, fmt.Errorf("the cluster has %d tasks", n)
	}
	_, err := in.Cluster.Member(h.tasks[0])
	return hostapi.PrepareOutput{}, err
}

// RunTask sends heartbeats as often as a host until the tasks end.
func (h *crowdHost) RunTask(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
	h.noteInput("run-task", in)
	exit := spec.Exit{PID: 1000 + h.i, Cause: spec.CauseCompleted, Started: time.Now(), LogDir: "/var/log/clusterrun/runs/many/" + in.Task}
	if h.running.Add(1) == int64(h.hosts*h.each) {
		h.allRunning <- time.Now()
	}
	info := activity.GetInfo(ctx)
	beat := info.HeartbeatTimeout * 2 / 5
	next := time.NewTimer(time.Duration(rand.Int64N(int64(beat)))) //nolint:gosec // no secret
	defer next.Stop()
	for {
		select {
		case <-next.C:
			next.Reset(beat)
			if err := h.connection.RecordActivityHeartbeat(ctx, info.TaskToken, spec.Heartbeat{PID: exit.PID, Host: h.name, Started: exit.Started, LogDir: exit.LogDir}); server.IsGone(err) {
				return exit, err
			}
		case <-h.ends:
			exit.Ended = time.Now()
			return exit, nil
		case <-ctx.Done():
			return exit, ctx.Err()
		}
	}
}

func (h *crowdHost) Release(context.Context, hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
	out := hostapi.ReleaseOutput{Exits: map[string][]spec.Exit{}}
	for _, t := range h.tasks {
		out.Exits[t] = []spec.Exit{{PID: 1000 + h.i, Cause: spec.CauseCompleted, Started: time.Now(), Ended: time.Now(), LogDir: "/var/log/clusterrun/runs/many/" + t}}
	}
	return out, nil
}

const mib = 1 << 20

// note prints a figure at once: the measurement takes many minutes.
func (c *crowd) note(figure float64, unit string) {
	fmt.Fprintf(os.Stderr, "%s: %.4g %s\n", c.b.Name(), figure, unit)
	c.b.ReportMetric(figure, unit)
}

func (c *crowd) measure() {
	b, ctx := c.b, c.b.Context()
	fmt.Fprintln(os.Stderr, b.Name(), "all hosts have joined")
	before, busy := c.cpu(), time.Now()
	time.Sleep(10 * time.Second) // the heartbeats of hosts without tasks are measured
	idle := (c.cpu() - before) / time.Since(busy).Seconds()
	before = c.cpu()
	started := time.Now()
	run, err := c.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "many", TaskQueue: spec.TaskQueue, WorkflowTaskTimeout: spec.WorkflowTaskTimeout}, spec.WorkflowType, &spec.RunSpec{
		Command: []string{"python3", "train.py"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: count(c.hosts * c.each)}},
		Hosts: spec.Hosts{Count: spec.HostCount(strconv.Itoa(c.hosts))},
	})
	require.NoError(b, err)
	var all time.Time
	select {
	case all = <-c.allRunning:
	case <-time.After(20 * time.Minute):
		b.Fatalf("%d tasks run after 20 minutes", c.running.Load())
	}
	launched := c.cpu() - before
	c.note(all.Sub(started).Seconds(), "s/launch")
	c.note(launched, "server-CPU-s/launch")

	v, err := c.client.QueryWorkflow(ctx, run.GetID(), "", spec.QueryStatus)
	require.NoError(b, err)
	var status spec.Status
	require.NoError(b, v.Get(&status))
	require.Len(b, status.Tasks, c.hosts*c.each)
	c.note(float64(size(b, status))/1000, "kB/status")
	d, err := c.client.DescribeWorkflowExecution(ctx, run.GetID(), "")
	require.NoError(b, err)
	c.note(float64(proto.Size(d))/1000, "kB/description")
	asked := time.Now()
	code, _, stderr := c.server.CLI(b, "status", "many", "--json")
	require.Zero(b, code, stderr)
	c.note(time.Since(asked).Seconds(), "s/status-command")

	before, busy = c.cpu(), time.Now()
	time.Sleep(20 * time.Second) // the heartbeats of all tasks are measured
	c.note((c.cpu()-before)/time.Since(busy).Seconds(), "server-CPUs/running")
	c.note(idle, "server-CPUs/idle")
	c.note(residentMiB([]int{c.server.PID()}), "MiB/server")
	c.note(residentMiB(harness.Children(c.controller.Cmd.Process.Pid)), "MiB/controller")

	before = c.cpu()
	ended := time.Now()
	close(c.ends)
	var result spec.RunResult
	require.NoError(b, run.Get(ctx, &result))
	c.note(time.Since(ended).Seconds(), "s/end")
	c.note(c.cpu()-before, "server-CPU-s/end")
	c.note(float64(size(b, result))/1000, "kB/result")
	c.reportHistory(run.GetID())
	for name, bytes := range c.inputs {
		c.note(float64(bytes), "bytes/"+name)
	}
	b.ReportMetric(0, "ns/op")
}

func size(b *testing.B, v any) int {
	b.Helper()
	text, err := json.Marshal(v)
	require.NoError(b, err)
	return len(text)
}

// cpu returns the processor time that the server has used, in seconds.
func (c *crowd) cpu() float64 {
	c.b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.server.PID()), "stat"))
	require.NoError(c.b, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	require.NoError(c.b, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(c.b, err)
	return float64(user+system) / 100
}

// reportHistory reports the sizes of the histories of the run and of what belongs to it.
func (c *crowd) reportHistory(id string) {
	c.b.Helper()
	ctx := c.b.Context()
	it := c.client.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	events, failed := 0, map[string]int{}
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(c.b, err)
		events++
		if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil {
			failed[a.GetCause().String()]++
		}
		if a := e.GetWorkflowTaskTimedOutEventAttributes(); a != nil {
			failed[a.GetTimeoutType().String()]++
		}
	}
	d, err := c.client.DescribeWorkflowExecution(ctx, id, "")
	require.NoError(c.b, err)
	c.note(float64(events), "events/run")
	for cause, n := range failed {
		c.note(float64(n), "workflow-tasks/"+cause)
	}
	c.note(float64(d.GetWorkflowExecutionInfo().GetHistorySizeBytes())/mib, "MiB/history")
}
