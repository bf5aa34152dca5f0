package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// A host's refusal of the spec is final: the run used to wait for the remaining hosts anyway.
func TestARefusalWaitsForNoOtherHost(t *testing.T) {
	env := newEnv(t, activities{"Reserve": func(ctx context.Context) (hostapi.ReserveOutput, error) {
		if hostOf(ctx) == "b" {
			return hostapi.ReserveOutput{}, temporal.NewNonRetryableApplicationError("one port for two tasks", spec.ErrInvalidRunSpec, nil)
		}
		return hostapi.ReserveOutput{}, temporal.NewApplicationError("no slots", spec.ErrPlacement)
	}})
	begun := env.Now()
	execute(t, env, spec.RunSpec{PlacementTimeout: spec.DurationOf(time.Hour), Tasks: workers("a:1", "b:1")}, nil)
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	assert.Equal(t, spec.ErrInvalidRunSpec, app.Type())
	assert.Equal(t, "one port for two tasks", app.Message())
	assert.Less(t, env.Now().Sub(begun), time.Minute)
}

// A host that accepts its tasks but then does not answer is up: nobody has to start it.
func TestAHostThatDoesNotTakeTheCluster(t *testing.T) {
	env := newEnv(t, activities{"Prepare": func(context.Context) (hostapi.PrepareOutput, error) {
		return hostapi.PrepareOutput{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	}})
	execute(t, env, spec.RunSpec{Tasks: workers("a:1", "b:1")}, nil)
	require.ErrorContains(t, env.GetWorkflowError(), "worker-0 could not be placed on host a: its host worker did not answer in time")
}

// A run with its own hosts keeps them for good.
func TestAnElasticRunWantsAFleet(t *testing.T) {
	env := newEnv(t, nil)
	execute(t, env, spec.RunSpec{
		Hosts: spec.Hosts{Count: "1:2"}, RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}},
	}, nil)
	var app *temporal.ApplicationError
	require.ErrorAs(t, env.GetWorkflowError(), &app)
	assert.Equal(t, spec.ErrInvalidRunSpec, app.Type())
	assert.Contains(t, app.Message(), "hosts.count is 1:2, but an elastic run requires a queue of hosts")
}

// worker-1's host does not accept its task. It is given up once another host has promised, and has
// long given no other answer; without a promise it is given up only after the long bound. Without
// two bounds it is not offered again.
func TestASilentHostIsGivenUpWithAPromise(t *testing.T) {
	const open = 26 * time.Second // an offer
	for _, c := range []struct {
		name    string
		reaches bool
		quiet   time.Duration
		refuses bool
		taken   int // the offer that the host accepts
		offers  int
		ok      bool
	}{
		{"the other host was quiet", true, time.Hour, false, 0, 1, false},
		{"it spoke a moment ago", true, time.Second, false, 0, 2, false},
		{"it spoke a moment ago, and the host is back", true, time.Second, false, 2, 2, true},
		{"it does not promise", true, 0, true, 0, 24, false},
		{"it does not promise, and the host is back", true, 0, true, 20, 20, true},
		{"the hosts do not reach each other", false, time.Hour, false, 0, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			denied := 0
			env := newEnv(t, activities{
				"Prepare": func(_ context.Context, in hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
					assert.Len(t, in.Witnesses, 1)
					return hostapi.PrepareOutput{Reaches: c.reaches}, nil
				},
				"Deny": func(ctx context.Context, in hostapi.DenyInput) (hostapi.DenyOutput, error) {
					assert.Equal(t, []string{"worker-1"}, in.Tasks)
					assert.Contains(t, activity.GetInfo(ctx).TaskQueue, "/host/a/i")
					denied++
					if c.refuses {
						return hostapi.DenyOutput{}, errors.New("it is away")
					}
					return hostapi.DenyOutput{Quiet: c.quiet}, nil
				},
			})
			var mu sync.Mutex
			var offers []hostapi.RunTaskInput
			env.OnActivity("RunTask", mock.Anything, mock.Anything).After(open).Return(
				func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
					assert.Equal(t, c.reaches, in.Bounds != nil)
					mu.Lock()
					defer mu.Unlock()
					if in.Task == "worker-1" {
						offers = append(offers, in)
						switch {
						case len(offers) == 1: // an earlier attempt has restarted it twice
							return spec.Exit{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil, spec.Heartbeat{Restarts: 2})
						case len(offers) != c.taken:
							return spec.Exit{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
						}
					}
					return spec.Exit{Cause: spec.CauseCompleted}, nil
				})
			execute(t, env, spec.RunSpec{Tasks: workers("a", "b")}, nil)
			err := env.GetWorkflowError()
			if c.ok {
				require.NoError(t, err)
			} else {
				var app *temporal.ApplicationError
				require.ErrorAs(t, err, &app)
				assert.Equal(t, spec.ErrHostLost, app.Type())
				var r spec.RunResult
				require.NoError(t, app.Details(&r))
				assert.Equal(t, 2, r.Tasks[1].Exit.Restart, "its next process must have a number of its own")
			}
			assert.Len(t, offers, c.offers)
			for i := range offers[1:] {
				assert.Greater(t, offers[i+1].Offer, offers[i].Offer)
			}
			if c.reaches {
				assert.GreaterOrEqual(t, denied, c.offers-1)
			} else {
				assert.Zero(t, denied)
			}
		})
	}
}

// A large run has seven witnesses. Each host asks all of them except itself, and only witnesses
// promise anything. Tasks of a group that lose their host together ask together.
func TestALargeRunHasFewWitnesses(t *testing.T) {
	const hosts, each, gone = 40, 3, "h07"
	var mu sync.Mutex
	asked, denies, denied := map[string]bool{}, 0, map[string]bool{}
	env := newEnv(t, activities{
		"Prepare": func(ctx context.Context, in hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			others := lease.MaxWitnesses
			for _, s := range in.Witnesses {
				asked[s.Host] = true
				assert.NotEqual(t, hostOf(ctx), s.Host)
			}
			assert.Contains(t, []int{others - 1, others}, len(in.Witnesses))
			return hostapi.PrepareOutput{Reaches: true}, nil
		},
		"Deny": func(ctx context.Context, in hostapi.DenyInput) (hostapi.DenyOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			assert.Contains(t, asked, hostOf(ctx))
			denies++
			for _, task := range in.Tasks {
				denied[task] = true
			}
			return hostapi.DenyOutput{Quiet: time.Second}, nil // so that a second promise is needed
		},
	})
	env.OnActivity("RunTask", mock.Anything, mock.Anything).After(30 * time.Second).Return(
		func(ctx context.Context, _ hostapi.RunTaskInput) (spec.Exit, error) {
			if hostOf(ctx) == gone {
				return spec.Exit{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
			}
			return spec.Exit{Cause: spec.CauseCompleted}, nil
		})
	var addresses []string
	for i := range hosts * each {
		addresses = append(addresses, fmt.Sprintf("h%02d", i/each))
	}
	execute(t, env, spec.RunSpec{Tasks: workers(addresses...)}, nil)
	require.ErrorContains(t, env.GetWorkflowError(), "was lost with its host "+gone)
	assert.Len(t, asked, lease.MaxWitnesses)
	assert.Len(t, denied, each)
	if strings.HasPrefix(t.Name(), "TestInGroups/") {
		assert.Less(t, denies, 2*each*3, "the lost tasks ask three hosts twice, and some of them together")
	}
}

// Another host replaces a lost one, and the remaining tasks stay. The fleet is told how the run
// ended on its hosts.
func TestAnotherHostReplacesALostOne(t *testing.T) {
	var mu sync.Mutex
	machine := fleet.New()
	placed := make([]map[string]string, 2) // hosts by task, for each generation
	var env *testsuite.TestWorkflowEnvironment
	env = newEnv(t, activities{
		"Reserve": func(ctx context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			if placed[in.Generation] == nil {
				placed[in.Generation] = map[string]string{}
			}
			for _, task := range in.Tasks {
				placed[in.Generation][task] = hostOf(ctx)
			}
			return reserved(hostOf(ctx), len(in.Tasks)), nil
		},
		"RunTask": func(ctx context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
			if in.Generation > 0 {
				return spec.Exit{Cause: spec.CauseCompleted}, nil
			}
			if hostOf(ctx) == "b" {
				<-ctx.Done()
				return spec.Exit{Cause: spec.CauseCollateral, Signal: "SIGTERM"}, nil
			}
			mu.Lock()
			machine.Step(fleet.Silent{Name: hostOf(ctx), Instance: "i", Now: env.Now()})
			mu.Unlock()
			return spec.Exit{Cause: spec.CauseHostLost, ExitCode: -1}, nil
		},
	})
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.TaskQueue})
	for _, name := range []string{"a", "b", "c"} {
		machine.Step(fleet.Joined{Host: fleet.Host{Name: name, Instance: "i", Slots: 1}, Now: env.Now()})
	}
	env.OnSignalExternalWorkflow(mock.Anything, spec.FleetID(spec.TaskQueue), mock.Anything, spec.SignalFleet, mock.Anything).Return(
		func(_, _, _, _ string, arg any) error {
			mu.Lock()
			defer mu.Unlock()
			m := arg.(fleet.Message)
			var e fleet.Event
			switch now := env.Now(); {
			case m.Asked != nil:
				m.Asked.Now = now
				e = *m.Asked
			case m.Placed != nil:
				m.Placed.Now = now
				e = *m.Placed
			case m.Freed != nil:
				m.Freed.Now = now
				e = *m.Freed
			}
			for _, a := range machine.Step(e) {
				if g, ok := a.(fleet.Grant); ok {
					env.RegisterDelayedCallback(func() { env.SignalWorkflow(spec.SignalFleet, fleet.Answer{Grant: &g}) }, 0)
				}
			}
			return nil
		})
	execute(t, env, spec.RunSpec{
		RestartScope: spec.RestartScopeGroup, Hosts: spec.Hosts{Count: "2"},
		Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}},
	}, nil)
	require.NoError(t, env.GetWorkflowError())
	assert.Equal(t, []map[string]string{{"worker-0": "a", "worker-1": "b"}, {"worker-0": "b", "worker-1": "c"}}, placed)
}

// A host that has reserved but then does not answer gets no tasks: the run releases everything and
// asks for other hosts. A host that explains why it refuses the cluster fails the run, on any
// host.
func TestARunReturnsToTheQueueIfAHostFallsSilent(t *testing.T) {
	for _, answers := range []bool{false, true} {
		var mu sync.Mutex
		var told []string
		grants := [][]string{{"a", "b"}, {"a", "c"}}
		ran := map[string]bool{}
		env := newEnv(t, activities{
			"Prepare": func(ctx context.Context, in hostapi.PrepareInput) (hostapi.PrepareOutput, error) {
				assert.Len(t, in.Cluster.Members, 2)
				switch {
				case hostOf(ctx) != "b":
					return hostapi.PrepareOutput{}, nil
				case answers:
					return hostapi.PrepareOutput{}, temporal.NewNonRetryableApplicationError("host b cannot reach a", "", nil)
				}
				return hostapi.PrepareOutput{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
			},
			"RunTask": func(ctx context.Context, _ hostapi.RunTaskInput) (spec.Exit, error) {
				mu.Lock()
				defer mu.Unlock()
				ran[hostOf(ctx)] = true
				return spec.Exit{Cause: spec.CauseCompleted}, nil
			},
		})
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.TaskQueue})
		env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, spec.SignalFleet, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
			switch m := arg.(fleet.Message); {
			case m.Asked != nil:
				told = append(told, "asked")
				grant := &fleet.Grant{Run: m.Asked.Run, Generation: m.Asked.Generation, Try: m.Asked.Try}
				for i, host := range grants[0] {
					grant.Places = append(grant.Places, fleet.Place{Host: host, Instance: "i", Ranks: []fleet.Ranks{{First: i, End: i + 1}}})
				}
				grants = grants[1:]
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(spec.SignalFleet, fleet.Answer{Grant: grant}) }, time.Second)
			case m.Placed != nil:
				told = append(told, "placed")
			case m.Freed != nil:
				told = append(told, "freed")
			}
			return nil
		})
		execute(t, env, spec.RunSpec{Hosts: spec.Hosts{Count: "2"}, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(2)}}}, nil)
		if answers {
			require.ErrorContains(t, env.GetWorkflowError(), "host b cannot reach a")
			assert.Equal(t, []string{"asked", "placed", "freed"}, told)
			continue
		}
		require.NoError(t, env.GetWorkflowError())
		assert.Equal(t, map[string]bool{"a": true, "c": true}, ran)
		assert.Equal(t, []string{"asked", "placed", "freed", "asked", "placed", "freed"}, told)
	}
}

// A run with notice informs its hosts, is stopped at the deadline, releases its hosts, and asks
// for hosts with its age, in this execution or the next. None of that counts as a failure.
func TestAPreemptedRunReturnsToTheQueue(t *testing.T) {
	for _, long := range []bool{false, true} {
		var mu sync.Mutex
		var asked []fleet.Asked
		var inputs []hostapi.ReserveInput
		var order []string
		note := func(what string) { order = append(order, what) }
		var told []spec.Stopping
		over := make(chan struct{})
		run := func(long bool, from *workflows.Resumption) (*world, error) {
			w := newWorld(t)
			w.SetStartWorkflowOptions(client.StartWorkflowOptions{TaskQueue: spec.TaskQueue})
			w.SetContinueAsNewSuggested(long)
			register(w.TestWorkflowEnvironment, activities{
				"TellStopping": func(_ context.Context, in hostapi.TellStoppingInput) (hostapi.None, error) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, in.Stopping)
					return hostapi.None{}, nil
				},
				"Unreserve": func(context.Context) (hostapi.None, error) {
					mu.Lock()
					defer mu.Unlock()
					note("unreserve")
					return hostapi.None{}, nil
				},
				"Reserve": func(_ context.Context, in hostapi.ReserveInput) (hostapi.ReserveOutput, error) {
					mu.Lock()
					defer mu.Unlock()
					inputs = append(inputs, in)
					return reserved("a", 1), nil
				},
				"RunTask": func(_ context.Context, in hostapi.RunTaskInput) (spec.Exit, error) {
					if in.Generation == 0 {
						<-over
					}
					return spec.Exit{Restart: in.Generation, Cause: spec.CauseCompleted}, nil
				},
			})
			w.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, spec.SignalFleet, mock.Anything).Return(func(_, _, _, _ string, arg any) error {
				mu.Lock()
				defer mu.Unlock()
				switch m := arg.(fleet.Message); {
				case m.Asked != nil:
					note("ask")
					asked = append(asked, *m.Asked)
					w.RegisterDelayedCallback(func() {
						if m.Asked.Generation > 0 {
							v := must.Get(w.QueryWorkflow(spec.QueryStatus))(t)
							var s spec.Status
							require.NoError(t, v.Get(&s))
							assert.Equal(t, spec.RunPlacing, s.State)
							assert.Equal(t, 1, s.Preemptions)
							assert.False(t, s.PendingSince.IsZero())
							assert.Equal(t, "host a is draining: maintenance", s.GroupRestarts[0].Reason)
						}
						w.SignalWorkflow(spec.SignalFleet, fleet.Answer{Grant: &fleet.Grant{
							Run: m.Asked.Run, Generation: m.Asked.Generation, Places: []fleet.Place{{Host: "a", Instance: "i", Ranks: []fleet.Ranks{{First: 0, End: 1}}}},
						}})
					}, time.Millisecond)
				case m.Placed != nil && m.Placed.Generation == 0:
					w.RegisterDelayedCallback(func() {
						w.SignalWorkflow(spec.SignalFleet, fleet.Answer{Move: &fleet.Move{Run: m.Placed.Run, Host: "a", Reason: "maintenance", Deadline: w.Now().Add(50 * time.Millisecond)}})
					}, time.Millisecond)
				case m.Freed != nil && m.Freed.Host != "":
					note("free " + m.Freed.Host)
				}
				return nil
			})
			err := w.start(t, spec.RunSpec{MaxRunTime: spec.DurationOf(time.Hour)}, from)
			return w, err
		}
		w, err := run(long, nil)
		if long {
			w, err = run(false, next(t, err))
		}
		close(over)
		require.NoError(t, err)
		assert.Equal(t, []string{"ask", "unreserve", "free a", "ask"}, order)
		require.Len(t, asked, 2)
		assert.True(t, asked[1].Since.Equal(asked[0].Since))
		assert.Empty(t, asked[1].Demand.Prefer, "it left the host")
		require.Len(t, told, 1)
		assert.Equal(t, spec.NoticeFromDrain, told[0].Notice.From)
		require.Len(t, inputs, 2)
		assert.Greater(t, inputs[1].Stopping.Seq, told[0].Seq)
		assert.Nil(t, inputs[1].Stopping.Notice)
		assert.Zero(t, inputs[1].Elapsed, "max_run_time counts from the next start")
		var r spec.RunResult
		require.NoError(t, w.GetWorkflowResult(&r))
		assert.Equal(t, 1, r.Preemptions)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict)
	}
}
