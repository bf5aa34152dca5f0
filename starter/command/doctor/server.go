package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/doctor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// examineServer examines the server that commands would use, if it is running, and a queue's
// hosts. It does not start a server.
func examineServer(ctx context.Context, a *cli.App, queue string) []doctor.Finding {
	s, external, err := a.External(ctx)
	if err != nil {
		return notUsage(err)
	}
	remedy := "use another with --address or TEMPORAL_ADDRESS, or check whether it is running: temporal operator cluster health"
	if !external {
		up, err := a.Home().Find(ctx)
		if err != nil {
			return doctor.CheckUnreached(err, "check "+a.Home().Log())
		}
		if up == nil {
			return doctor.CheckNotRunning()
		}
		s = a.Embedded(up)
		remedy = fmt.Sprintf("kill -CONT %d if it was stopped, or else kill %d; the next command starts a new one; its log is %s", up.PID, up.PID, a.Home().Log())
	}
	c, err := a.DialOnce(ctx, s)
	if err != nil {
		return doctor.CheckUnreached(err, remedy)
	}
	defer c.Close()
	facts, found := serverFacts(ctx, a, c, s)
	if found != nil {
		return found
	}
	return append(doctor.CheckServer(facts), examineQueue(ctx, c, queue)...)
}

// serverFacts returns the facts about a server, or the finding that they are unknown.
func serverFacts(ctx context.Context, a *cli.App, c client.Client, s cli.Target) (doctor.ServerFacts, []doctor.Finding) {
	o, err := s.Client()
	if err != nil {
		return doctor.ServerFacts{}, notUsage(err)
	}
	facts := doctor.ServerFacts{Name: s.String(), Namespace: o.Namespace, Register: spec.RegisterAttributes()}
	facts.Namespace = cmp.Or(facts.Namespace, client.DefaultNamespace)
	info, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return facts, doctor.CheckUnreached(err, "check the server's log")
	}
	facts.Version = info.GetServerVersion()
	ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: facts.Namespace})
	if starter.IsError[*serviceerror.NamespaceNotFound](err) {
		return facts, doctor.CheckUnreached(fmt.Errorf("%s has no namespace %s", facts.Name, facts.Namespace), "temporal operator namespace create "+facts.Namespace)
	}
	if err != nil {
		return facts, doctor.CheckUnreached(fmt.Errorf("namespace %s: %w", facts.Namespace, err), "ask its operator to allow DescribeNamespace")
	}
	facts.Retention = ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if s.Embedded {
		facts.Program, _ = a.Home().Version(ctx) // examinePrograms reports its error
	}
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: facts.Namespace})
	facts.AttributesErr = err
	for _, attribute := range spec.Attributes() {
		if _, ok := known.GetCustomAttributes()[attribute.Name]; !ok {
			facts.Missing = append(facts.Missing, attribute.Name)
		}
	}
	return facts, nil
}

// fleetTakes limits the wait for a queue's fleet to list its hosts.
const fleetTakes = 2 * time.Second

func examineQueue(ctx context.Context, c client.Client, queue string) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, fleetTakes)
	defer cancel()
	hosts, err := starter.GetFleet(c, queue).Hosts(ctx)
	if err != nil && !starter.IsError[*starter.NoFleetError](err) {
		return []doctor.Finding{doctor.Unknown(err, "clusterrun worker, or clusterrun dev")}
	}
	return doctor.CheckMembers(queue, spec.Version, hosts)
}
