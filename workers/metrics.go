package workers

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/metrics"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// MetricsFlag is the flag for [Options.Metrics].
const MetricsFlag = "metrics"

// CheckMetrics returns why metrics cannot be served at a flag's address, or nil if the flag is
// empty or the address is valid.
func CheckMetrics(flag, address string) error {
	if address == "" {
		return nil
	}
	l, err := metrics.Listen(flag, address)
	if err == nil {
		l.Close()
	}
	return err
}

// serveMetrics serves metrics until ctx is done. If the address is in use, perhaps by an earlier
// side that is still exiting, it retries in the background, because processes matter more.
func (s *side) serveMetrics(ctx context.Context) {
	tries := retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}
	again, said := tries, ""
	for ctx.Err() == nil {
		l, err := metrics.Listen(MetricsFlag, s.Metrics)
		if err == nil {
			s.serveMetricsOn(ctx, l)
			again, said = tries, ""
			continue
		}
		if why := err.Error(); why != said {
			said = why
			s.log.Warn("metrics are not being served; trying again", zap.Error(err))
		}
		_ = again.Sleep(ctx)
	}
}

func (s *side) serveMetricsOn(ctx context.Context, l net.Listener) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	s.metrics.Serve(l)
}

// countRuns counts ended runs, from 0, and sets the number of open runs.
func (s *side) countRuns(ctx context.Context, c client.Client) {
	o, err := s.Server.Client()
	if err != nil {
		return // these options do not yield a client either
	}
	namespace := cmp.Or(o.Namespace, client.DefaultNamespace)
	s.metrics.BeginRuns(namespace, s.Queue)
	lookForOpen(ctx, func() (int64, error) { return s.openRuns(ctx, c) }, func(n int64) {
		s.metrics.RunsOpen(namespace, s.Queue).Set(float64(n))
	})
}

// openRunsLook is the approximate time between requests for the number of open runs. All sides that
// execute workflows send such requests, which a server limits.
const openRunsLook = time.Minute

// lookForOpen calls ask repeatedly until ctx is done, and calls say with each answer. It varies the
// interval, so that host workers that started together do not keep asking at the same time.
func lookForOpen(ctx context.Context, ask func() (int64, error), say func(int64)) {
	for ctx.Err() == nil {
		if n, err := ask(); err == nil {
			say(n)
		}
		next := openRunsLook*3/4 + rand.N(openRunsLook/2) //nolint:gosec // not a secret: it spreads the polls
		_ = retry.Sleep(ctx, next)
	}
}

func (s *side) openRuns(ctx context.Context, c client.Client) (int64, error) {
	return OpenRuns(ctx, c, s.Queue)
}

// OpenRuns asks the server how many of a queue's runs are open.
func OpenRuns(ctx context.Context, c client.Client, queue string) (int64, error) {
	r, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND %s", spec.WorkflowType, queue, workflowstatus.Open),
	})
	return r.GetCount(), err
}

// sdkMetrics adapts our metrics to the Temporal SDK.
type sdkMetrics struct{ metrics.Tagged }

var _ client.MetricsHandler = sdkMetrics{}

func (m sdkMetrics) WithTags(tags map[string]string) client.MetricsHandler {
	return sdkMetrics{m.With(tags)}
}

func (m sdkMetrics) Counter(name string) client.MetricsCounter {
	c := m.Tagged.Counter(name)
	return sdkCounter(func(n int64) { c.Add(float64(n)) })
}

func (m sdkMetrics) Gauge(name string) client.MetricsGauge { return sdkGauge(m.Tagged.Gauge(name).Set) }

func (m sdkMetrics) Timer(name string) client.MetricsTimer { return sdkTimer(m.Tagged.Timer(name)) }

type (
	sdkCounter func(int64)
	sdkGauge   func(float64)
	sdkTimer   func(time.Duration)
)

func (f sdkCounter) Inc(n int64)          { f(n) }
func (f sdkGauge) Update(v float64)       { f(v) }
func (f sdkTimer) Record(d time.Duration) { f(d) }
