package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// BenchmarkManyHosts measures a run on many simulated hosts. This process executes their activities
// and sends their heartbeats, but does not start tasks. A real controller executes the run's
// workflows on a real server. A stub replaces the queue's workflow and gives the run all hosts; for
// the real one, see [BenchmarkManyJoin].
//
// CLUSTERRUN_MANY replaces the sizes: "hosts x tasks on each,…", such as "1000x8".
//
// CLUSTERRUN_BENCH_SERVER=postgresql measures all benchmarks of many hosts with Temporal's own
// server on PostgreSQL (`make postgresql` builds it).
func BenchmarkManyHosts(b *testing.B) {
	crowds(b, "1000x1,1000x8", (*crowd).measure)
}

// crowds calls measure with crowds of these sizes, or of those in CLUSTERRUN_MANY.
func crowds(b *testing.B, sizes string, measure func(*crowd)) {
	b.Helper()
	for size := range strings.SplitSeq(cmp.Or(os.Getenv("CLUSTERRUN_MANY"), sizes), ",") {
		var hosts, each int
		_, err := fmt.Sscanf(size, "%dx%d", &hosts, &each)
		require.NoError(b, err)
		b.Run(size, func(b *testing.B) {
			c := newCrowd(b, hosts, each)
			for i := range hosts {
				c.serve(i)
			}
			c.replaceQueue()
			measure(c)
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (c *crowd) measure() {
	b, ctx := c.b, c.b.Context()
	run := c.launch()

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

	before, beats := c.sample(), c.beats.Load()
	time.Sleep(20 * time.Second) // to measure all tasks' heartbeats
	c.noteRates(before, "running")
	c.note(float64(c.beats.Load()-beats)/time.Since(before.at).Seconds(), "heartbeats/s")
	c.noteMemory()

	before = c.sample()
	close(c.ends)
	var result spec.RunResult
	require.NoError(b, run.Get(ctx, &result))
	c.noteSince(before, "end")
	c.note(float64(size(b, result))/1000, "kB/result")
	c.reportHistory(run.GetID())
	for name, bytes := range c.inputs {
		c.note(float64(bytes), "bytes/"+name)
	}
}

func size(b *testing.B, v any) int {
	b.Helper()
	text, err := json.Marshal(v)
	require.NoError(b, err)
	return len(text)
}
