package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

// crowd is a server and many simulated hosts, which do not start processes.
type crowd struct {
	b           *testing.B
	server      *harness.Server
	controller  *harness.Process
	client      client.Client
	connection  *server.Server
	hosts, each int
	all         []*crowdHost

	running    atomic.Int64
	beats      atomic.Int64
	allRunning chan time.Time
	// ends is closed to make all tasks finish.
	ends chan struct{}
	// inputs are the largest input sizes per activity, in bytes.
	mu     sync.Mutex
	inputs map[string]int
}

func newCrowd(b *testing.B, hosts, each int) *crowd {
	b.Helper()
	s := startServer(b)
	c := &crowd{
		b: b, server: s, controller: s.StartCLI(b, "worker", "--role", "controller", "--host-name", "controller"), client: s.Client(), connection: &server.Server{},
		hosts: hosts, each: each, allRunning: make(chan time.Time, 1), ends: make(chan struct{}), inputs: map[string]int{},
	}
	c.connection.Connect(c.client)
	return c
}

func hostName(i int) string { return fmt.Sprintf("gpu-%04d.cluster.example.org", i) }

func instance(i int) string { return fmt.Sprintf("%08x%08x", i, i) }

// replaceQueue replaces the queue's workflow.
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
		hostapi.Name(hostapi.Host.Reserve):       h.Reserve,
		hostapi.Name(hostapi.Host.Prepare):       h.Prepare,
		hostapi.Name(hostapi.Host.RunTask):       h.RunTask,
		hostapi.Name(hostapi.Host.Release):       h.Release,
		hostapi.Name(hostapi.Host.SignalTasks):   h.SignalTasks,
		hostapi.Name(hostapi.Host.RestartTasks):  h.RestartTasks,
		hostapi.Name(hostapi.Host.CaptureStacks): h.CaptureStacks,
		spec.ActivityBarrierCheck:                server.NewBarriers(h.connection, spec.TaskQueue).BarrierCheck,
	})
	c.all = append(c.all, h)
}

// crowdHost is a simulated host.
type crowdHost struct {
	*crowd
	i              int
	name, instance string
	tasks          []string
}

func (c *crowd) host(i int) *crowdHost {
	return &crowdHost{crowd: c, i: i, name: hostName(i), instance: instance(i)}
}

// execute starts executing the host's activities.
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

// RunTask sends heartbeats as often as a real host until the tasks finish.
func (h *crowdHost) RunTask(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
	h.noteInput("run-task", in)
	exit := spec.Exit{PID: 1000 + h.i, Cause: spec.CauseCompleted, Started: time.Now(), LogDir: logDir(in.Task)}
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
			h.beats.Add(1)
			if err := h.connection.RecordActivityHeartbeat(ctx, info.TaskToken, spec.Heartbeat{PID: exit.PID, Host: h.name, Started: exit.Started, LogDir: exit.LogDir}); server.IsGone(err) {
				return exit, err
			}
		case <-h.ends:
			exit.Ended = time.Now()
			return exit, nil
		case <-ctx.Done():
			exit.Ended, exit.Cause = time.Now(), spec.CauseCollateral
			return exit, nil
		}
	}
}

func (h *crowdHost) Release(context.Context, hostapi.ReleaseInput) (hostapi.ReleaseOutput, error) {
	out := hostapi.ReleaseOutput{Exits: map[string][]spec.Exit{}}
	for _, t := range h.tasks {
		out.Exits[t] = []spec.Exit{{PID: 1000 + h.i, Cause: spec.CauseCompleted, Started: time.Now(), Ended: time.Now(), LogDir: logDir(t)}}
	}
	return out, nil
}

func logDir(task string) string { return "/var/log/clusterrun/runs/many/" + task }

func (h *crowdHost) SignalTasks(_ context.Context, in spec.HostRequest[spec.SignalRequest]) (spec.RequestAnswer, error) {
	return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
}

func (h *crowdHost) RestartTasks(_ context.Context, in spec.HostRequest[spec.TaskRequest]) (spec.RequestAnswer, error) {
	return spec.RequestAnswer{Tasks: in.Request.Tasks}, nil
}

// CaptureStacks returns stacks with all tasks but one in a collective operation.
func (h *crowdHost) CaptureStacks(_ context.Context, in spec.HostRequest[spec.StacksRequest]) (spec.RequestAnswer, error) {
	out := spec.RequestAnswer{Files: map[string]string{}}
	for i, task := range h.tasks {
		rank := h.i*h.each + i
		top := "all_reduce"
		if rank == 7 {
			top = "load"
		}
		out.Tasks, out.Files[task] = append(out.Tasks, task), logDir(task)+"/stacks-1.txt"
		out.Stacks = stacktree.Merge(out.Stacks, stacktree.Of(rank, stacktree.Stack{
			{Kind: stacktree.Python, Function: top, File: "train.py", Line: 40}, {Kind: stacktree.Python, Function: "step", File: "train.py", Line: 20},
		}))
	}
	return out, nil
}

// launch starts a run, and returns it when all its tasks are running.
func (c *crowd) launch() client.WorkflowRun {
	b := c.b
	b.Helper()
	before := c.sample()
	run, err := c.client.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: "many", TaskQueue: spec.TaskQueue, WorkflowTaskTimeout: spec.WorkflowTaskTimeout}, spec.WorkflowType, &spec.RunSpec{
		Command: []string{"python3", "train.py"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(c.hosts * c.each)}},
		Hosts: spec.Hosts{Count: spec.HostCount(strconv.Itoa(c.hosts))},
	})
	require.NoError(b, err)
	select {
	case <-c.allRunning:
	case <-time.After(20 * time.Minute):
		b.Fatalf("%d tasks run after 20 minutes", c.running.Load())
	}
	c.noteSince(before, "launch")
	return run
}
