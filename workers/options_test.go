package workers

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestDefaults(t *testing.T) {
	name := must.Get(os.Hostname())(t)
	o := must.Get(Options{StateDir: "/state"}.withDefaults())(t)
	assert.Equal(t, name, o.Host)
	assert.Equal(t, spec.TaskQueue, o.Queue)
	assert.Equal(t, 2*time.Second, o.OrphanGrace)

	given := Options{StateDir: "/state", Host: "host-a", Queue: "q", OrphanGrace: time.Minute, Slots: 3}
	o = must.Get(given.withDefaults())(t)
	assert.Equal(t, given, o)
	again := must.Get(o.withDefaults())(t)
	assert.Equal(t, o, again, "a side has the options of its supervisor")

	assert.Equal(t, "/state/logs", (&side{Options: o}).logRoot())
	o.LogRoot = "/logs"
	assert.Equal(t, "/logs", (&side{Options: o}).logRoot())
}

// If a host worker cannot run, nothing is started.
func TestAHostWorkerThatCannotBe(t *testing.T) {
	_, err := Supervisor(Options{})
	require.EqualError(t, err, "a host worker needs a state directory")
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, err = Supervisor(Options{StateDir: t.TempDir(), Metrics: l.Addr().String()})
	require.ErrorContains(t, err, l.Addr().String(), "it is in use")
}

// A side is a supervisor's child.
func TestASideByHand(t *testing.T) {
	t.Setenv(optionsVar, "")
	require.ErrorContains(t, Side(context.Background()), "this command is started by a clusterrun supervisor, not by hand")
	text := must.Get(json.Marshal(Options{StateDir: t.TempDir()}))(t)
	t.Setenv(optionsVar, string(text))
	require.Error(t, Side(context.Background()))
	_, told := os.LookupEnv(optionsVar)
	assert.False(t, told, "tasks do not get it")
}

// Without an option, the advertised address is the host's name if other hosts can resolve it, and
// otherwise an address of this host that they can reach.
func TestAdvertised(t *testing.T) {
	outside := loopback
	if ip, err := hostservice.RouteTo(farAway); err == nil {
		outside = ip.String()
	}
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"as the options say":           {Options{Advertise: "gpu-1.example", Host: "a", Queue: spec.TaskQueue}, "gpu-1.example"},
		"a name that nobody knows":     {Options{Host: "a.invalid", Queue: spec.TaskQueue}, outside},
		"a name that only we know":     {Options{Host: "localhost", Queue: spec.TaskQueue}, outside},
		"a server on this machine":     {Options{Host: "a.invalid", Queue: spec.TaskQueue, Server: connect.Options{Address: "127.0.0.1:7233"}}, outside},
		"a run with hosts of its own":  {Options{Host: "a", Queue: spec.PrivateQueue("iris")}, ""},
		"no tasks are executed here":   {Options{Host: "a", Queue: spec.TaskQueue, Role: RoleController}, ""},
		"a server that nobody answers": {Options{Host: "a.invalid", Queue: spec.TaskQueue, Server: connect.Options{Address: "no-such-name.invalid:7233"}}, outside},
	} {
		t.Run(name, func(t *testing.T) {
			s := &side{Options: c.options}
			assert.Equal(t, c.want, s.advertised(t.Context()))
		})
	}
	l, err := net.Listen("tcp", net.JoinHostPort(outside, "0"))
	require.NoError(t, err, "it is an address of this machine")
	require.NoError(t, l.Close())
}

// A thousand host workers ask the same server, which does not answer all of them. The metric has no
// value before the first answer.
func TestOpenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var asked []time.Duration
		var said []int64
		began := time.Now()
		lookForOpen(ctx, func() (int64, error) {
			asked = append(asked, time.Since(began))
			switch len(asked) {
			case 1, 3:
				return 0, errors.New("too many requests")
			case 10:
				cancel()
			}
			return int64(len(asked)), nil
		}, func(n int64) { said = append(said, n) })
		assert.Equal(t, []int64{2, 4, 5, 6, 7, 8, 9, 10}, said)
		assert.Zero(t, asked[0], "the first look is at once")
		waits := map[time.Duration]bool{}
		for i := range asked[1:] {
			wait := asked[i+1] - asked[i]
			waits[wait] = true
			assert.GreaterOrEqual(t, wait, 45*time.Second)
			assert.Less(t, wait, 75*time.Second)
		}
		assert.Greater(t, len(waits), 1, "they spread")
	})
}

// fakeServer is a Temporal server with a fleet.
type fakeServer struct {
	client.Client
	t *testing.T
	// hosts are the fleet's hosts. If it is nil, there is no fleet.
	hosts []fleet.HostStatus
}

func (f *fakeServer) QueryWorkflowWithOptions(_ context.Context, q *client.QueryWorkflowWithOptionsRequest) (*client.QueryWorkflowWithOptionsResponse, error) {
	if f.hosts == nil {
		return nil, errors.New("the fleet does not answer")
	}
	if q.WorkflowID != "q/fleet" || q.QueryType != spec.QueryHosts {
		f.t.Errorf("it was asked for %s of %s", q.QueryType, q.WorkflowID)
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(f.hosts)
	return &client.QueryWorkflowWithOptionsResponse{QueryResult: client.NewValue(p)}, err
}

// A name is taken if another host worker in the fleet has it. One that is about to start has the
// instance of its state directory.
func TestCheckName(t *testing.T) {
	o := Options{StateDir: t.TempDir(), Host: "host-a", Queue: "q"}
	require.NoError(t, os.WriteFile(filepath.Join(o.StateDir, "instance"), []byte("mine\n"), 0o600))
	status := func(name, instance string, state fleet.HostState) fleet.HostStatus {
		return fleet.HostStatus{Host: fleet.Host{Name: name, Instance: instance}, State: state}
	}
	for name, c := range map[string]struct {
		hosts []fleet.HostStatus
		taken bool
	}{
		"there is no fleet":      {nil, false},
		"nobody is there":        {[]fleet.HostStatus{}, false},
		"it is there itself":     {[]fleet.HostStatus{status("host-a", "mine", fleet.HostReady)}, false},
		"another of its name":    {[]fleet.HostStatus{status("host-a", "other", fleet.HostReady)}, true},
		"another that drains":    {[]fleet.HostStatus{status("host-a", "other", fleet.HostDraining)}, true},
		"another that is silent": {[]fleet.HostStatus{status("host-a", "other", fleet.HostSilent)}, false},
		"others":                 {[]fleet.HostStatus{status("host-b", "other", fleet.HostReady)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := o.CheckName(t.Context(), &fakeServer{t: t, hosts: c.hosts})
			if !c.taken {
				require.NoError(t, err)
				return
			}
			var taken *NamesakeError
			require.ErrorAs(t, err, &taken)
			require.Equal(t, NamesakeError{Host: "host-a", Instance: "other", Queue: "q"}, *taken)
			require.ErrorContains(t, err, "--host-name")
		})
	}
	require.EqualError(t, Options{}.CheckName(t.Context(), &fakeServer{t: t}), "a host worker needs a state directory")
}
