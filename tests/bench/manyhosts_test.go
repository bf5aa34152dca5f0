package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
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
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// BenchmarkManyHosts measures a run on many hosts that have no processes: they are in this process,
// execute the activities of the run and send its heartbeats. A real controller executes its workflows
// on a real server. The workflow of the queue is replaced by one that gives the run all hosts: for the
// real one see [BenchmarkManyJoin].
//
// CLUSTERRUN_MANY replaces the sizes: "hosts x tasks on each,…", such as "1000x8".
func BenchmarkManyHosts(b *testing.B) {
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("CLUSTERRUN_MANY"), "1000x1,1000x8"), ",") {
		var hosts, each int
		_, err := fmt.Sscanf(size, "%dx%d", &hosts, &each)
		require.NoError(b, err)
		b.Run(size, func(b *testing.B) {
			c := newCrowd(b, hosts, each)
			for i := range hosts {
				c.serve(i)
			}
			c.replaceQueue()
			c.measure()
		})
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
	return c
}

func hostName(i int) string { return fmt.Sprintf("gpu-%04d.cluster.example.org", i) }

func instance(i int) string { return fmt.Sprintf("%08x%08x", i, i) }

// replaceQueue starts a workflow in the place of the queue's.
func (c *crowd) replaceQueue() {
	c.b.Helper()
	const queue = "bench/queue"
	w := worker.New(c.client, queue, worker.Options{LocalActivityWorkerOnly: true})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		messages := workflow.GetSignalChannel(ctx, spec.SignalFleet)
		for {
			var m fleet.Message
			messages.Receive(ctx, &m)
			if m.Asked == nil {
				continue
			}
			grant := fleet.Grant{Run: m.Asked.Run, Generation: m.Asked.Generation, Try: m.Asked.Try}
			for i := range c.hosts {
				grant.Places = append(grant.Places, fleet.Place{
					Host: hostName(i), Instance: instance(i), Ranks: []fleet.Ranks{{First: i * c.each, End: (i + 1) * c.each}},
				})
			}
			if err := workflow.SignalExternalWorkflow(ctx, grant.Run.WorkflowID, "", spec.SignalFleet, fleet.Answer{Grant: &grant}).Get(ctx, nil); err != nil {
				return err
			}
		}
	}, workflow.RegisterOptions{Name: "queue"})
	require.NoError(c.b, w.Start())
	c.b.Cleanup(w.Stop)
	_, err := c.client.ExecuteWorkflow(c.b.Context(), client.StartWorkflowOptions{ID: spec.FleetID(spec.TaskQueue), TaskQueue: queue}, "queue")
	require.NoError(c.b, err)
}

// serve starts a host.
func (c *crowd) serve(i int) {
	c.b.Helper()
	h := c.host(i)
	h.execute(map[string]any{
		hostapi.Name(hostapi.Host.Reserve): h.Reserve,
		hostapi.Name(hostapi.Host.Prepare): h.Prepare,
		hostapi.Name(hostapi.Host.RunTask): h.RunTask,
		hostapi.Name(hostapi.Host.Release): h.Release,
	})
}

// crowdHost is a host without processes.
type crowdHost struct {
	*crowd
	i              int
	name, instance string
	tasks          []string
}

func (c *crowd) host(i int) *crowdHost {
	return &crowdHost{crowd: c, i: i, name: hostName(i), instance: instance(i)}
}

// execute starts to execute the activities of the host.
func (h *crowdHost) execute(activities map[string]any) {
	h.b.Helper()
	w := worker.New(h.client, spec.InstanceQueue(spec.TaskQueue, h.name, h.instance), worker.Options{
		DisableWorkflowWorker: true, MaxConcurrentActivityTaskPollers: 1, DisableRegistrationAliasing: true,
	})
	for name, f := range activities {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	require.NoError(h.b, w.Start())
	h.b.Cleanup(w.Stop)
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

// note prints a figure at once: the measurement takes many minutes.
func (c *crowd) note(figure float64, unit string) {
	fmt.Fprintf(os.Stderr, "%s: %.4g %s\n", c.b.Name(), figure, unit)
	c.b.ReportMetric(figure, unit)
}

func (c *crowd) measure() {
	b, ctx := c.b, c.b.Context()
	before := c.cpu()
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

	before, busy := c.cpu(), time.Now()
	time.Sleep(20 * time.Second) // the heartbeats of all tasks are measured
	c.note((c.cpu()-before)/time.Since(busy).Seconds(), "server-CPUs/running")
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
func (c *crowd) cpu() float64 { return cpu(c.b, []int{c.server.PID()}).Seconds() }

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
	c.note(float64(d.GetWorkflowExecutionInfo().GetHistorySizeBytes())/(1<<20), "MiB/history")
}
