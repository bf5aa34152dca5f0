package bench

import (
	"fmt"
	"os"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// note prints a figure immediately, since the measurement takes many minutes.
func (c *crowd) note(figure float64, unit string) {
	fmt.Fprintf(os.Stderr, "%s: %.4g %s\n", c.b.Name(), figure, unit)
	c.b.ReportMetric(figure, unit)
}

// sample contains what a server and its database have used so far.
type sample struct {
	at               time.Time
	server, database time.Duration
	transactions     int64
}

func (c *crowd) sample() sample {
	s := sample{at: time.Now(), server: cpu(c.b, c.server.PID())}
	if d := c.server.Database; d != nil {
		s.database, s.transactions = d.CPU(), d.Transactions()
	}
	return s
}

// noteSince prints what was used since a sample.
func (c *crowd) noteSince(before sample, what string) {
	now := c.sample()
	c.note(now.at.Sub(before.at).Seconds(), "s/"+what)
	c.note((now.server - before.server).Seconds(), "server-CPU-s/"+what)
	if c.server.Database != nil {
		c.note((now.database - before.database).Seconds(), "database-CPU-s/"+what)
		c.note(float64(now.transactions-before.transactions), "transactions/"+what)
	}
}

// noteRates prints what was used per second since a sample.
func (c *crowd) noteRates(before sample, what string) {
	now := c.sample()
	seconds := now.at.Sub(before.at).Seconds()
	c.note((now.server-before.server).Seconds()/seconds, "server-CPUs/"+what)
	if c.server.Database != nil {
		c.note((now.database-before.database).Seconds()/seconds, "database-CPUs/"+what)
		c.note(float64(now.transactions-before.transactions)/seconds, "transactions/s-"+what)
	}
}

// noteMemory prints each part's memory, and the database's size.
func (c *crowd) noteMemory() {
	c.note(residentMiB(c.b, c.server.PID()), "MiB/server")
	c.note(residentMiB(c.b, harness.Children(c.controller.Cmd.Process.Pid)...), "MiB/controller")
	if d := c.server.Database; d != nil {
		if size, err := Resident(d.PIDs()); err == nil {
			c.note(float64(size)/(1<<20), "MiB/database-memory")
		} else {
			c.b.Logf("the memory of the database is unknown: %s", err) // a process just exited
		}
		c.note(float64(d.Connections()), "connections")
	}
	c.note(float64(c.server.DatabaseBytes())/(1<<20), "MiB/database")
}

// taskClock measures a history's longest workflow task.
type taskClock struct {
	started time.Time
	longest time.Duration
}

func (c *taskClock) see(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED:
		c.started = e.GetEventTime().AsTime()
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		if !c.started.IsZero() { // otherwise it timed out before its start
			c.longest = max(c.longest, e.GetEventTime().AsTime().Sub(c.started))
		}
		c.started = time.Time{}
	}
}

// reportHistory reports the history sizes of the run and its other workflows.
func (c *crowd) reportHistory(id string) {
	c.b.Helper()
	ctx := c.b.Context()
	it := c.client.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	events, failed := 0, map[string]int{}
	var tasks taskClock
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(c.b, err)
		events++
		tasks.see(e)
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
	c.note(ms(tasks.longest), "ms/longest-workflow-task")
	for cause, n := range failed {
		c.note(float64(n), "workflow-tasks/"+cause)
	}
	c.note(float64(d.GetWorkflowExecutionInfo().GetHistorySizeBytes())/(1<<20), "MiB/history")
}
