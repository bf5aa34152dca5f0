package taskservices

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// acrossHosts forwards task arrivals to barriers that span hosts.
type acrossHosts struct {
	meetings *barriers.Barriers
	waits    *prometheus.HistogramVec
}

var _ taskapi.Barriers = acrossHosts{}

// released is the outcome of a wait that the barrier's release completed.
const released = "released"

// newAcrossHosts returns barriers that record how long tasks wait.
func newAcrossHosts(meetings *barriers.Barriers, waits *prometheus.HistogramVec) acrossHosts {
	for _, outcome := range []string{
		released, wire.CodeBarrierTimeout, wire.CodeBarrierBroken, wire.CodeBarrierMismatch, wire.CodeAlreadyWaiting, wire.CodeTooLarge,
	} {
		waits.WithLabelValues(outcome) // starts the series at 0
	}
	return acrossHosts{meetings, waits}
}

// Arrive implements [taskapi.Barriers].
func (b acrossHosts) Arrive(ctx context.Context, a barriers.Arrival) (barriers.Release, error) {
	came := time.Now()
	release, err := b.meetings.Arrive(ctx, a)
	outcome := released
	refused, ok := errors.AsType[*barriers.Error](err)
	if ok {
		outcome = refused.Code
	}
	if ok || err == nil {
		b.waits.WithLabelValues(outcome).Observe(time.Since(came).Seconds())
	}
	return release, err
}
