package workers

import (
	"context"
	"fmt"
	"os"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// NamesakeError is returned if a queue's fleet contains another host worker with the same name,
// because tasks pinned to that name could go to either of them.
type NamesakeError struct{ Host, Instance, Queue string }

func (e *NamesakeError) Error() string {
	return fmt.Sprintf("another host worker (%[3]s) already serves queue %[2]s as host %[1]s; give this host another name with --host-name, or stop the other host worker",
		e.Host, e.Queue, e.Instance)
}

// identity returns a side's identity for the server.
func identity(host, instance string) string {
	return fmt.Sprintf("%d@%s/%s", os.Getpid(), host, instance)
}

// fleetAnswers is the maximum time to wait for a fleet's answer.
const fleetAnswers = 3 * time.Second

// CheckSockets returns a permanent error if tasks could not reach the host worker through their
// sockets.
func (o Options) CheckSockets() error { return taskapi.CheckDir(o.StateDir) }

// CheckName returns a [NamesakeError] if another host worker has the name in these options. If the
// fleet does not answer, the host worker asks again when it joins.
func (o Options) CheckName(ctx context.Context, c client.Client) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fleetAnswers)
	defer cancel()
	hosts, err := fleet.AllHosts(func(after string) (page []fleet.HostStatus, err error) {
		out, err := c.QueryWorkflowWithOptions(ctx, &client.QueryWorkflowWithOptionsRequest{
			WorkflowID: spec.FleetID(o.Queue), QueryType: spec.QueryHosts, Args: []any{after},
			QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN,
		})
		if err == nil && out.QueryRejected == nil {
			err = out.QueryResult.Get(&page)
		}
		return page, err
	})
	if err != nil {
		return nil
	}
	instance := supervisor.InstanceIn(o.StateDir)
	for _, h := range hosts {
		if h.Name == o.Host && h.Instance != instance && h.State != fleet.HostSilent {
			return &NamesakeError{Host: h.Name, Instance: h.Instance, Queue: o.Queue}
		}
	}
	return nil
}
