package activities

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// stopped is a supervisor that records which tasks it was asked to stop.
type stopped struct {
	listed
	stops    []supervisor.StopRequest
	released []runkey.Run
	ended    []supervisor.Process // the answer to a release
	as       supervisor.Stops     // of the last release
	fenced   []supervisor.AttachRequest
	awaited  []supervisor.ProcessRef
}

func (s *stopped) Stop(_ context.Context, r supervisor.StopRequest) (supervisor.TasksReply, error) {
	s.stops = append(s.stops, r)
	return supervisor.TasksReply{}, nil
}

// describes is a server that answers with these descriptions of a run.
type describes struct {
	Server
	run *workflowservice.DescribeWorkflowExecutionResponse
	// groups are the run's groups by ID.
	groups map[string]*workflowservice.DescribeWorkflowExecutionResponse
	// answering is called before each answer.
	answering func()
	// id is its namespace's identity.
	id string
}

func (d *describes) DescribeRun(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if group, ok := d.groups[id]; ok {
		return group, nil
	}
	if d.answering != nil {
		d.answering()
	}
	if d.run == nil {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	return d.run, nil
}

func (d *describes) Identity(context.Context, string) (string, error)      { return d.id, nil }
func (d *describes) KnownIdentity(context.Context, string) (string, error) { return d.id, nil }

// open describes a run with activities that have these IDs.
func open(ids ...string) *workflowservice.DescribeWorkflowExecutionResponse {
	d := &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, HistoryLength: begun},
	}
	for _, id := range ids {
		a := &workflowpb.PendingActivityInfo{ActivityId: id, ActivityType: &commonpb.ActivityType{Name: hostapi.Name(hostapi.Host.RunTask)}}
		d.PendingActivities = append(d.PendingActivities, a)
	}
	return d
}

func living(task string, generation, number int) supervisor.Process {
	return supervisor.Process{Key: runkey.Task{Run: servedRun, Generation: generation, Task: task}, Number: number}
}

// The list of a run's activities does not cover processes that were started after it was made: here
// a group's next generation started while the server answered, and it continues.
func TestOnlyWhatIsOlderThanTheListIsStopped(t *testing.T) {
	s := &stopped{listed: listed{processes: []supervisor.Process{
		living("worker-0", 0, 0), living("worker-1", 0, 2), living("worker-2", 0, 0),
	}}}
	server := &describes{run: open(spec.TaskActivityID("worker-0", 0, 0)), answering: func() {
		s.processes = append(s.processes, living("worker-0", 1, 0), living("worker-1", 1, 0))
	}}
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
	h.leases.attach(living("worker-2", 0, 0).Key)
	p := &plan{Run: servedRun, Generation: 1, Spec: (&spec.RunSpec{}).WithDefaults()}
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	require.Len(t, s.stops, 1)
	assert.Equal(t, []supervisor.ProcessRef{living("worker-1", 0, 2).Ref()}, s.stops[0].Processes)
	assert.Equal(t, supervisor.ReasonCollateral, s.stops[0].Reason)
}

// The server is asked about the run if a lease is released before its process has exited, but never
// afterwards, because the activity reports the exit.
func TestALeaseWithoutItsProcessIsLookedAtAtOnce(t *testing.T) {
	l, key := newLeases(), living("worker-0", 0, 0).Key
	l.attach(key)
	l.detach(key, true)
	assert.Empty(t, l.nudge)
	assert.Len(t, l.ended, 1)
	l.attach(key)
	l.detach(key, false)
	assert.Len(t, l.nudge, 1)
}

// A run with a paused workflow has not ended: its processes live on.
func TestAPausedRunIsNotAbandoned(t *testing.T) {
	s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 0)}}}
	server := &describes{run: open(spec.TaskActivityID("worker-0", 0, 0))}
	server.run.WorkflowExecutionInfo.Status = enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
	require.NoError(t, h.watch.reconcile(t.Context(), &plan{Run: servedRun, Spec: (&spec.RunSpec{}).WithDefaults()}))
	assert.Empty(t, s.stops)
	assert.Empty(t, s.released)
}

// A local run starts its tasks within its first workflow task, and does not list them before its
// end.
func TestARunInItsFirstWorkflowTaskListsNothing(t *testing.T) {
	s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 0)}}}
	server := &describes{run: open()}
	server.run.WorkflowExecutionInfo.HistoryLength = begun - 1
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
	p := &plan{Run: servedRun, Spec: (&spec.RunSpec{}).WithDefaults()}
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	assert.Empty(t, s.stops)
	server.run.WorkflowExecutionInfo.HistoryLength = begun
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	assert.Len(t, s.stops, 1)
}

// The tasks of a large run are listed by its groups. A group lists none before it starts, and other
// hosts' groups are not asked.
func TestTasksOfGroupsAreListedThere(t *testing.T) {
	here, there := spec.TaskGroupWorkflowID("run", "1-2", 0, "host-a", 0), spec.TaskGroupWorkflowID("run", "1-2", 0, "host-b", 0)
	group := open(spec.TaskActivityID("worker-1", 0, 0))
	group.WorkflowExecutionInfo.HistoryLength = begun - 1
	server := &describes{run: open(spec.TaskActivityID("worker-0", 0, 0)), groups: map[string]*workflowservice.DescribeWorkflowExecutionResponse{here: group}}
	child := &workflowpb.PendingChildExecutionInfo{WorkflowTypeName: spec.GroupWorkflowType, WorkflowId: here}
	server.run.PendingChildren = []*workflowpb.PendingChildExecutionInfo{
		{WorkflowTypeName: spec.GroupWorkflowType, WorkflowId: there}, child,
	}
	s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 0), living("worker-1", 0, 0), living("worker-2", 0, 0)}}}
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
	p := &plan{Run: servedRun, Spec: (&spec.RunSpec{}).WithDefaults()}
	require.ErrorIs(t, h.watch.reconcile(t.Context(), p), errNotBegun, "it is not started")
	child.RunId = "0123"
	require.ErrorIs(t, h.watch.reconcile(t.Context(), p), errNotBegun, "it has not had its first workflow task")
	group.WorkflowExecutionInfo.HistoryLength = begun
	group.PendingActivities = append(group.PendingActivities, &workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: hostapi.Name(hostapi.Host.Deny)}})
	require.ErrorIs(t, h.watch.reconcile(t.Context(), p), errNotBegun, "it may offer worker-2 again")
	assert.Empty(t, s.stops)
	group.PendingActivities = group.PendingActivities[:1]
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	require.Len(t, s.stops, 1)
	assert.Equal(t, []supervisor.ProcessRef{living("worker-2", 0, 0).Ref()}, s.stops[0].Processes)
}

type freed struct {
	runs     []fleet.Run
	rejoined int
}

func (f *freed) Rejoin() { f.rejoined++ }

func (f *freed) Freed(_ context.Context, run fleet.Run) error {
	f.runs = append(f.runs, run)
	return nil
}

// A host that was lost and is back releases a generation that is over, even if its run continues,
// as soon as nothing of that generation lives here, unless the run will place tasks on the host
// again.
func TestAHostThatWasLostLeavesTheRun(t *testing.T) {
	ended := living("worker-0", 1, 0)
	ended.Exit = &supervisor.Exit{}
	s := &stopped{listed: listed{processes: []supervisor.Process{ended}}}
	server := &describes{}
	told := &freed{}
	h := must.Get(NewHost(Config{Name: "host-a", Instance: "i", StateDir: t.TempDir(), Supervisor: s, Server: server, Fleet: told, Log: zap.NewNop()}))(t)
	p := &plan{Run: servedRun, Generation: 1, Tasks: []string{"worker-0"}, Spec: (&spec.RunSpec{}).WithDefaults()}
	_, err := h.plans.update(servedRun, func(*plan) (*plan, error) { return p, nil })
	require.NoError(t, err)
	stays := func(run *workflowservice.DescribeWorkflowExecutionResponse, why string) {
		t.Helper()
		server.run = run
		require.NoError(t, h.watch.reconcile(t.Context(), p))
		assert.Empty(t, told.runs, why)
		assert.Len(t, h.Holds(), 1, why)
	}
	later := spec.TaskActivityID("worker-0", 2, 0)
	stays(open(spec.TaskActivityID("worker-1", 1, 0)), "the generation goes on")
	here := open(later)
	here.PendingActivities = append(here.PendingActivities, &workflowpb.PendingActivityInfo{
		ActivityId: "5", ActivityType: &commonpb.ActivityType{Name: hostapi.Name(hostapi.Host.Reserve)},
	})
	stays(here, "a later one is being placed")
	s.processes = append(s.processes, living("worker-1", 1, 0))
	stays(open(later), "a process lives")
	s.processes = s.processes[:1]

	require.NoError(t, h.watch.reconcile(t.Context(), p))
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	assert.Equal(t, []fleet.Run{{WorkflowID: servedRun.WorkflowID, RunID: servedRun.RunID}}, told.runs)
	assert.Empty(t, h.Holds())
	_, err = h.plans.get(servedRun)
	assert.NoError(t, err, "the release tells how it ended")
}

// The same holds for a later generation of a large run, with tasks in its groups.
func TestGenerationsOfGroups(t *testing.T) {
	d := open()
	d.PendingChildren = []*workflowpb.PendingChildExecutionInfo{
		{WorkflowTypeName: spec.GroupWorkflowType, WorkflowId: spec.TaskGroupWorkflowID("a/7/b", "1-2", 3, "x/9", 0)},
		{WorkflowTypeName: spec.BarrierWorkflowType, WorkflowId: "a/9/b/c"},
	}
	assert.True(t, hasLater(d, 2))
	assert.False(t, hasLater(d, 3))
}

func (s *stopped) Release(_ context.Context, r supervisor.ReleaseRequest) (supervisor.ProcessesReply, error) {
	s.released, s.as = append(s.released, r.Run), r.Stops
	return supervisor.ProcessesReply{Processes: s.ended}, nil
}

// A server that does not know a run, because it is another server or has lost its database, does
// not decide the fate of the run's processes.
func TestAnotherServerKillsNothing(t *testing.T) {
	s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 0)}}}
	server := &describes{id: "another"}
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()}))(t)
	p := &plan{Run: servedRun, Server: "one", Spec: (&spec.RunSpec{}).WithDefaults()}
	require.ErrorIs(t, h.watch.reconcile(t.Context(), p), errStranger)
	require.ErrorIs(t, h.watch.reconcile(t.Context(), p), errStranger)
	assert.Empty(t, s.released)
	server.id = "one"
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	assert.Equal(t, []runkey.Run{servedRun}, s.released)
}

func (s *stopped) Attach(_ context.Context, r supervisor.AttachRequest) (supervisor.AttachReply, error) {
	s.fenced = append(s.fenced, r)
	return supervisor.AttachReply{}, nil
}

func (s *stopped) Wait(_ context.Context, r supervisor.ProcessRef) (supervisor.Process, error) {
	s.awaited = append(s.awaited, r)
	return supervisor.Process{}, nil
}

// A host settles a generation by fencing it off and stopping its and earlier generations'
// processes, even without a plan of the run.
func TestSettle(t *testing.T) {
	for _, planned := range []bool{true, false} {
		s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 3), living("worker-1", 1, 0), living("worker-0", 2, 0)}}}
		h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Log: zap.NewNop()})
		require.NoError(t, err)
		if planned {
			_, err = h.plans.update(servedRun, func(*plan) (*plan, error) {
				return &plan{Run: servedRun, Generation: 1, Spec: (&spec.RunSpec{}).WithDefaults()}, nil
			})
			require.NoError(t, err)
		}
		_, err = h.stops.settle(t.Context(), servedRun, hostapi.TasksInput{Group: spec.Group{Generation: 1}, Tasks: []string{"worker-0", "worker-1"}})
		require.NoError(t, err)
		require.Len(t, s.fenced, 2)
		assert.Equal(t, living("worker-1", 1, 0).Key, s.fenced[1].Key)
		assert.False(t, s.fenced[1].Fence.Less(supervisor.Fence{Launch: 1 << 20, Attempt: 1 << 20}))
		want := []supervisor.ProcessRef{living("worker-0", 0, 3).Ref(), living("worker-1", 1, 0).Ref()}
		require.Len(t, s.stops, 1)
		assert.Equal(t, want, s.stops[0].Processes)
		assert.Equal(t, want, s.awaited)
	}
}

// A healthy host tries four times before its processes are stopped.
func TestHurry(t *testing.T) {
	p := &plan{Spec: &spec.RunSpec{OnDisconnect: "6s"}, Cluster: hostapi.Cluster{Hosts: 1}}
	assert.Equal(t, 1500*time.Millisecond, p.hurry(beatPatience))
	p.Spec.OnDisconnect = ""
	assert.Equal(t, beatPatience, p.hurry(beatPatience))
	p.Cluster.Hosts = 2
	assert.Equal(t, 8*time.Second, p.hurry(8*time.Second))
}

// The run's rules depend on this limit.
func TestKillBound(t *testing.T) {
	assert.LessOrEqual(t, supervisor.DefaultKillBound, lifecycle.KillBound)
}

// Rank 0's host counts as reached whether it accepts the connection or refuses it.
func TestReachMaster(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := l.Addr().(*net.TCPAddr).Port
	cluster := func(host, address string, profiles ...spec.EnvProfile) *hostapi.Cluster {
		return &hostapi.Cluster{Members: hostapi.Members{{Host: host}}, MasterAddr: address, MasterPort: port, Profiles: profiles}
	}
	h := assemble(&core{Config: Config{Name: "b"}})
	reach := func(c *hostapi.Cluster) error { return h.reachMaster(t.Context(), c) }
	require.NoError(t, reach(cluster("a", "127.0.0.1", spec.EnvTorch)))
	require.NoError(t, l.Close())
	require.NoError(t, reach(cluster("a", "127.0.0.1", spec.EnvTorch)))

	err := reach(cluster("a", "nobody.invalid", spec.EnvTensorFlow, spec.EnvTorch))
	require.ErrorContains(t, err, "host b cannot reach a, which has rank 0, at its address nobody.invalid (MASTER_ADDR): ")
	assert.ErrorContains(t, err, "--advertise")
	require.NoError(t, reach(cluster("a", "nobody.invalid", spec.EnvTensorFlow)), "nobody is told of it")
	require.NoError(t, reach(cluster("b", "nobody.invalid", spec.EnvTorch)), "it is this host")

	c := newControl(t)
	_, err = c.env.ExecuteActivity(c.host.Prepare, hostapi.PrepareInput{Cluster: *cluster("a", "nobody.invalid", spec.EnvTorch)})
	require.ErrorContains(t, err, "host host-a cannot reach a")
}

// twoHosts is a cluster of two workers; the first is on this host.
func twoHosts() hostapi.Cluster {
	return hostapi.Cluster{Hosts: 2, Members: []hostapi.Member{
		{Type: "worker", Host: "host-a", Address: "host-a:1"}, {Type: "worker", Index: 1, Rank: 1, Host: "host-b", Address: "host-b:1"},
	}}
}

// opens accepts messages, does not release tasks, and reports which barriers were ended.
type opens struct {
	barriers.Server
	told  chan spec.BarrierMessage
	ended chan string
}

func (s opens) Tell(_ context.Context, _ spec.BarrierInput, m spec.BarrierMessage) error {
	s.told <- m
	return nil
}

func (s opens) Result(ctx context.Context, _ string) (spec.BarrierResult, error) {
	<-ctx.Done()
	return spec.BarrierResult{}, ctx.Err()
}

func (s opens) Withdraw(context.Context, string, spec.BarrierMessage) error {
	return barriers.ErrClosed
}

func (s opens) Status(context.Context, string, []string) (spec.BarrierStatus, error) {
	return spec.BarrierStatus{}, barriers.ErrClosed
}

func (s opens) End(_ context.Context, id, _ string) error {
	s.ended <- id
	return nil
}

// releasing is a supervisor that does not have anything of a run to release.
type releasing struct{ listed }

func (*releasing) Release(context.Context, supervisor.ReleaseRequest) (supervisor.ProcessesReply, error) {
	return supervisor.ProcessesReply{}, nil
}

// A run that was closed without being released does not leave barriers behind either.
func TestAbandonedRunsLeaveNoBarriers(t *testing.T) {
	s := opens{told: make(chan spec.BarrierMessage, 1), ended: make(chan string, 1)}
	state := t.TempDir()
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: state, Supervisor: &releasing{}, Rounds: s, Log: zap.NewNop()}))(t)
	t.Cleanup(h.Close)
	run := runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1"}
	p, err := h.plans.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Spec: (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2), Command: []string{"x"}}}}).WithDefaults(), LogRoot: t.TempDir(), Tasks: []string{"worker-0"}, Cluster: twoHosts()}, nil
	})
	require.NoError(t, err)
	socket := must.Get(h.listen(p, runkey.Task{Run: run, Task: "worker-0"}, 0, ""))(t)
	t.Setenv(taskapi.SocketVar, socket)
	c := must.Get(task.Current())(t)
	answered := make(chan error, 1)
	go func() {
		_, err := c.Barrier(t.Context(), "epoch")
		answered <- err
	}()
	select {
	case <-s.told:
	case err := <-answered:
		t.Fatal(err)
	}
	require.NoError(t, h.watch.abandon(p, "the run is closed", nil))
	assert.Equal(t, "iris/barrier/1/0/epoch/1", <-s.ended)
}

func TestTheEndOfARunIsNoted(t *testing.T) {
	h := must.Get(NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: &releasing{}, Log: zap.NewNop()}))(t)
	t.Cleanup(h.Close)
	logs := t.TempDir()
	run := runkey.Run{Namespace: "default", WorkflowID: "iris", RunID: "1"}
	note := tasklog.RunDir(logs, run.WorkflowID, run.RunID) + ".json"
	require.NoError(t, os.MkdirAll(filepath.Dir(note), 0o700))
	require.NoError(t, retention.Begin(logs, run, h.StateDir))
	abandon := func(closed *workflowpb.WorkflowExecutionInfo) string {
		p, err := h.plans.update(run, func(*plan) (*plan, error) {
			return &plan{Run: run, Spec: (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(1), Command: []string{"x"}}}}).WithDefaults(), LogRoot: logs, Tasks: []string{"worker-0"}}, nil
		})
		require.NoError(t, err)
		require.NoError(t, h.watch.abandon(p, "it is closed", closed))
		return must.Read(t, note)
	}
	assert.Contains(t, abandon(&workflowpb.WorkflowExecutionInfo{}), `"ended"`)
}
