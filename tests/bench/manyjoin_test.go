package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkManyJoin measures how long many simulated hosts take to join a queue simultaneously,
// and then the server's cost of their heartbeats.
func BenchmarkManyJoin(b *testing.B) {
	for _, hosts := range []int{200, 1000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			c := newCrowd(b, hosts, 8)
			var leases atomic.Int64
			before := c.sample()
			for i := range hosts {
				c.join(i, &leases)
			}
			harness.Within(b, 20*time.Minute, "the queue has all hosts", func() bool { return c.joined() == hosts })
			c.noteSince(before, "join")
			before = c.sample()
			time.Sleep(time.Minute) // to measure their heartbeats
			c.noteRates(before, "joined")
			require.Equal(b, hosts, c.joined(), "all of them stay")
			c.note(float64(leases.Load()), "leases")
			c.noteMemory()
			c.reportHistory(spec.FleetID(spec.TaskQueue))
			b.ReportMetric(0, "ns/op")
		})
	}
}

// join starts a host that joins the queue.
func (c *crowd) join(i int, leases *atomic.Int64) {
	c.b.Helper()
	h := c.host(i)
	member := server.NewMembership(c.connection, spec.TaskQueue, fleet.Host{
		Name: h.name, Instance: h.instance, Address: h.address(), Version: spec.Version, Slots: c.each, CPUs: 64, Memory: 1 << 40,
	}, noChecks{})
	h.execute(map[string]any{
		spec.ActivityHostLease: func(ctx context.Context, in fleet.HostLeaseInput) error {
			leases.Add(1)
			return member.HostLease(ctx, in)
		},
		spec.ActivityFleetCheck: member.FleetCheck,
	})
	ctx, cancel := context.WithCancel(context.Background())
	c.b.Cleanup(cancel)
	go member.Keep(ctx, func() []fleet.Holding { return nil }, func(error) {})
}

// joined returns the number of hosts in the queue.
func (c *crowd) joined() (n int) {
	all, err := fleet.AllHosts(func(after string) (page []fleet.HostStatus, err error) {
		v, err := c.client.QueryWorkflow(c.b.Context(), spec.FleetID(spec.TaskQueue), "", spec.QueryHosts, after)
		if err == nil {
			err = v.Get(&page)
		}
		return page, err
	})
	if err != nil {
		return 0 // it did not answer in time
	}
	for _, h := range all {
		if h.State == fleet.HostReady {
			n++
		}
	}
	return n
}

type noChecks struct{}

func (noChecks) First(context.Context, time.Duration) {}
func (noChecks) Names() []string                      { return nil }
func (noChecks) Failing() []fleet.FailedCheck         { return nil }
func (noChecks) Changed() <-chan struct{}             { return nil }
func (noChecks) Results() []fleet.CheckResult         { return nil }
